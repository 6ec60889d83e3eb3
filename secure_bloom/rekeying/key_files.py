"""The keys that a file refers to, and its key material file left with these alone."""

from __future__ import annotations

from secure_bloom.encryption.keys import ExternalReference, KeyMaterial
from secure_bloom.parquet.footer import Footer
from secure_bloom.parquet.key_material_files import outside_material
from secure_bloom.parquet.key_material_writes import retire_material
from secure_bloom.storage import InputFile


def tidy_material(file: InputFile, footer: Footer) -> None:
    """Leave the material alone that a file refers to: a run that was cut short left more."""
    kept = outside_material(file)
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
