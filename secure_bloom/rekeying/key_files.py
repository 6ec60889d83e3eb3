"""Key material files of files whose keys change: at every moment one opens the data beside it.

    old and new material | data file replaced | new material alone

References of a new writing are fresh, so old and new material can stand in one file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from secure_bloom.encryption.keys import ExternalReference, KeyMaterial
from secure_bloom.errors import FormatError, MissingPathError, SecureBloomError
from secure_bloom.parquet.footer import Footer
from secure_bloom.parquet.key_material_files import key_material_name, read_material
from secure_bloom.storage import InputFile, name_of, open_input, replace_tail, sibling
from secure_bloom.storage.siblings import remove_file


def carried(file: InputFile, target: str | None) -> Mapping[str, str]:
    """The material of the file that stands where the new one is to be; it must stay until then."""
    if target is None:
        return _material_of(file)
    try:
        with open_input(target) as old:
            return _material_of(old)
    except (MissingPathError, FormatError):
        # Nothing stands there, or nothing that key material would open.
        return {}


def _material_of(file: InputFile) -> Mapping[str, str]:
    return read_material(file) if file.has_sibling(key_material_name(file.name)) else {}


def publish_material(
    file: InputFile, target: str | None, new: Mapping[str, str], *, kept: Mapping[str, str]
) -> None:
    """Write the new material, with what is kept, beside the data file that is to be."""
    if new:
        # Old references stay until the data is replaced: a run that is killed here leaves a file
        # that opens.
        write_material(file, file.path if target is None else target, {**kept, **new})


def withdraw_material(
    file: InputFile, target: str | None, new: Mapping[str, str], *, kept: Mapping[str, str]
) -> None:
    """Leave the old material alone, after the data could not be written.

    Where that fails too, material lies there that nothing refers to: the next run removes it.
    """
    if not new:
        return
    path = file.path if target is None else target
    with suppress(SecureBloomError):
        if kept:
            write_material(file, path, kept)
        else:
            remove_material(path)


def retire_material(
    path: str, new: Mapping[str, str], *, kept: Mapping[str, str]
) -> tuple[str, ...]:
    """Leave the new material alone beside the data file at ``path``, now that it is replaced.

    Where the system does not let it, the data is done all the same: a note is returned.
    """
    if not kept:
        return ()
    try:
        if new:
            with open_input(path) as replaced:
                write_material(replaced, path, new)
        else:
            remove_material(path)
    except SecureBloomError as error:
        return (f"key material of the old file stays, the next run removes it: {error}",)
    return ()


def tidy_material(file: InputFile, footer: Footer) -> None:
    """Leave the material alone that a file refers to: a run that was cut short left more."""
    kept = _material_of(file)
    if not kept:
        return
    named = {reference for key in key_metadata_of(footer) if (reference := _reference(key))}
    new = {reference: kept[reference] for reference in kept if reference in named}
    if new != kept:
        retire_material(file.path, new, kept=kept)


def key_metadata_of(footer: Footer) -> dict[bytes, int | None]:
    """Each piece of key metadata once, with the ordinal of its column; None for the footer's."""
    found: dict[bytes, int | None] = {}
    if footer.tail.key_metadata is not None:
        found[footer.tail.key_metadata] = None
    for chunks in footer.columns:
        for ordinal, chunk in enumerate(chunks):
            crypto = chunk.crypto_metadata
            own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
            if own is not None and own.key_metadata is not None:
                found[own.key_metadata] = ordinal
    return found


def _reference(key_metadata: bytes) -> str | None:
    parsed = KeyMaterial.parse(key_metadata)
    return parsed.key_reference if isinstance(parsed, ExternalReference) else None


def remove_material(data_path: str) -> None:
    """Remove the key material file beside a data file, durably; none there is as good."""
    remove_file(sibling(data_path, key_material_name(name_of(data_path))))


def write_material(file: InputFile, data_path: str, material: Mapping[str, str]) -> None:
    """Write the whole key material file beside a data file, atomically; ``file`` is one like it."""
    content = json.dumps(dict(material), separators=(",", ":")).encode()
    path = sibling(data_path, key_material_name(name_of(data_path)))
    replace_tail(file, 0, [content], output=path)
