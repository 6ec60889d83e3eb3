"""Key material files beside files that are written: at every moment one opens the data beside it.

    old and new material | data file replaced | new material alone

References of a new writing are fresh, so old and new material can stand in one file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

from secure_bloom.errors import (
    FormatError,
    MissingPathError,
    SecureBloomError,
    UnfinishedWriteError,
    UnsupportedFeatureError,
)
from secure_bloom.parquet.key_material_files import key_material_name, outside_material
from secure_bloom.storage import InputFile, name_of, open_input, replace_tail, sibling
from secure_bloom.storage.siblings import remove_file

_Written = TypeVar("_Written")


def write_with_material(
    file: InputFile, target: str | None, new: Mapping[str, str], write: Callable[[], _Written]
) -> tuple[_Written, tuple[str, ...]]:
    """Let ``write`` put a data file at ``target``, or back, and its key material beside it.

    Returns the result of ``write``, and notes on old key material that could not be removed.
    Raises UnsupportedFeatureError, before anything is written, where one reference would stand for
    a key of the old file and for another one of the new file.
    """
    kept = _carried(file, target)
    path = file.path if target is None else target
    _refuse_one_name_for_two(kept, new)
    publish_material(file, path, new, kept=kept)
    try:
        written = write()
    except UnfinishedWriteError:
        # The data may be the new one.
        raise
    except SecureBloomError:
        _withdraw_material(file, path, new, kept=kept)
        raise
    return written, retire_material(path, new, kept=kept)


def _carried(file: InputFile, target: str | None) -> Mapping[str, str]:
    """The material of the file that stands where the new one is to be; it must stay until then."""
    if target is None:
        return outside_material(file)
    try:
        with open_input(target) as old:
            return outside_material(old)
    except (MissingPathError, FormatError):
        # Nothing stands there, or nothing that key material would open.
        return {}


def _refuse_one_name_for_two(kept: Mapping[str, str], new: Mapping[str, str]) -> None:
    # parquet-java calls the keys of each file footerKey, columnKey1 and so on.
    if any(kept.get(reference, text) != text for reference, text in new.items()):
        raise UnsupportedFeatureError(
            "another file with key material outside stands there, and both call their keys by the "
            "same names: a run that is killed could leave data with the key material of the other",
            hint="remove that file with its key material, or name another folder",
        )


def publish_material(
    file: InputFile, path: str, new: Mapping[str, str], *, kept: Mapping[str, str]
) -> None:
    """Write the new material, with what is kept, beside the data file that is to be."""
    if new:
        # Old references stay until the data is replaced: a run that is killed here leaves a file
        # that opens.
        write_material(file, path, {**kept, **new})


def _withdraw_material(
    file: InputFile, path: str, new: Mapping[str, str], *, kept: Mapping[str, str]
) -> None:
    """Leave the old material alone, after the data could not be written.

    If that fails too, material lies there that nothing refers to; the next run removes it.
    """
    if not new:
        return
    with suppress(SecureBloomError):
        if kept:
            write_material(file, path, kept)
        else:
            remove_material(path)


def retire_material(
    path: str, new: Mapping[str, str], *, kept: Mapping[str, str]
) -> tuple[str, ...]:
    """Leave the new material alone beside the data file at ``path``, now that it is replaced.

    If the system does not allow that, the data is done all the same, and a note is returned.
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


def remove_material(data_path: str) -> None:
    """Remove the key material file beside a data file, durably; none there is as good."""
    remove_file(sibling(data_path, key_material_name(name_of(data_path))))


def write_material(file: InputFile, data_path: str, material: Mapping[str, str]) -> None:
    """Write the whole key material file beside a data file, atomically; ``file`` is one like it."""
    content = json.dumps(dict(material), separators=(",", ":")).encode()
    path = sibling(data_path, key_material_name(name_of(data_path)))
    # Nothing of the old file is kept; the new one is put in its place as atomically as data is.
    replace_tail(file, 0, [content], output=path)
