"""Find the keys that a file refers to, and what reveals old content after a change of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from secure_bloom.adding.report import hard_link_note
from secure_bloom.calling.options import FooterMode
from secure_bloom.hudi.record_keys.footer_entry import RECORD_KEY_TEXTS, read_entry
from secure_bloom.paimon.index_files import index_path
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.key_material_files import reference_of
from secure_bloom.rekeying.protection import Protection
from secure_bloom.storage import InputFile, name_of


def named_references(footer: Footer) -> set[str]:
    """Return the file's references to key material outside it."""
    return {reference for key in key_metadata_of(footer) if (reference := reference_of(key))}


def key_metadata_of(footer: Footer) -> dict[bytes, int | None]:
    """Return each piece of key metadata once, with the ordinal of its column.

    The ordinal of the footer is None.
    """
    found: dict[bytes, int | None] = {}
    if footer.tail.key_metadata is not None:
        found[footer.tail.key_metadata] = None
    for chunks in footer.column_chunks:
        for ordinal, chunk in enumerate(chunks):
            crypto = chunk.crypto_metadata
            own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
            if own is not None and own.key_metadata is not None:
                # Row groups repeat the key metadata of a column, so its bytes are the key.
                found[own.key_metadata] = ordinal
    return found


def leftovers(file: InputFile, after: Protection | None = None) -> Iterator[str]:
    """Yield notes on files that still show the old content after the file was replaced.

    Yields nothing if the protection of columns stays.
    """
    # Another name leads to the old content, which the old keys still open.
    if file.names > 1:
        yield hard_link_note(file.names)
    index = name_of(index_path(file))
    # Anyone can look a value up in Paimon's index, as it is never encrypted.
    if after is not None and any(after.columns) and file.has_sibling(index):
        yield f"{index} stays unchanged, and shows values in clear: remove it, or build it anew"


def shown_record_keys(footer: Footer, after: Protection) -> frozenset[str]:
    """Return names of the footer's texts that would show Hudi's record keys of an encrypted column.

    Returns none for an encrypted footer.  If the file has no column of the record keys, any
    encrypted column counts, because the keys may be made from it.
    """
    secret = _encrypted(footer, after)
    entry = read_entry(footer) if after.footer_mode is FooterMode.SIGNED else None
    if entry is None or not secret:
        return frozenset()
    # An index by a column in clear shows nothing that the column itself does not.
    is_open = entry.column in {leaf.name for leaf in footer.leaves} - secret
    return frozenset() if is_open else RECORD_KEY_TEXTS


def _encrypted(footer: Footer, after: Protection) -> set[str]:
    uses: Iterable[tuple[object, str]] = zip(
        after.columns, (leaf.name for leaf in footer.leaves), strict=True
    )
    return {name for use, name in uses if use is not None}
