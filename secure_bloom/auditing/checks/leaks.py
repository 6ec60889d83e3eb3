"""Check what a file shows of a sensitive column: statistics, page indexes, texts.

A column in clear under a similar name is checked too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from secure_bloom.auditing.checks.filter_search import begins_with_page
from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings, FooterSubject
from secure_bloom.auditing.checks.writer_schemas import columns_with_metadata, has_attributes
from secure_bloom.auditing.rules.leak_rules import (
    ENCODING_DATA_IN_CLEAR,
    HUDI_FILTER_PRESENT,
    HUDI_KEYS_IN_CLEAR,
    HUDI_KEYS_UNRULED,
    PAGE_INDEX_IN_CLEAR,
    PAGES_IN_CLEAR,
    SCHEMA_IN_CLEAR,
    SIZES_IN_CLEAR,
    STATISTICS_IN_CLEAR,
)
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption import cipher
from secure_bloom.encryption.likeness import column_levels
from secure_bloom.errors import FormatError
from secure_bloom.hudi.record_keys.footer_entry import COLUMN as KEY_COLUMN
from secure_bloom.hudi.record_keys.footer_entry import FILTER, MAX_KEY, MIN_KEY, OLD_FILTER
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.structures.metadata import ColumnMetaData, KeyValue, Statistics
from secure_bloom.parquet.structures.wire_fields import find_fields
from secure_bloom.storage import is_object_uri

#: The first bytes of a page, which hold what is looked for in its header.
_PAGE_HEADER = 64
_HUDI_COLUMN = "_hoodie_record_key"
#: The most bytes of a page index; a real one has some hundred bytes for each page.
_MOST_INDEX = 16 * 1024 * 1024


def check_statistics(subject: ChunkSubject) -> Findings:
    """Check that neither values nor counts of the column can be read without its key."""
    shown = subject.column_chunk.meta_data
    if shown is None or not _is_shown_to_others(subject):
        return
    readers = "anyone" if subject.of.is_readable else "whoever has the footer key"
    if has_bounds(shown):
        yield subject.finding(
            STATISTICS_IN_CLEAR, f"{readers} can read its smallest and largest values"
        )
    # A finding of its own, a note: writers of signed footers leave size statistics in, and a user
    # cannot change that.
    sizes_are_noted = subject.of.is_readable and (
        subject.of.request.policy.footer_mode is FooterMode.SIGNED
    )
    if shown.size_statistics is not None and sizes_are_noted:
        yield subject.finding(SIZES_IN_CLEAR, f"{readers} can read its size statistics")
    if counts := list(_shown_counts(shown, with_sizes=not sizes_are_noted)):
        yield subject.finding(
            ENCODING_DATA_IN_CLEAR, f"{readers} can read its {' and '.join(counts)}"
        )


def _shown_counts(shown: ColumnMetaData, *, with_sizes: bool) -> Iterator[str]:
    """Yield the parts of the metadata that reveal something about values other than bounds."""
    if shown.statistics is not None and not has_bounds(shown):
        yield "counts"
    if shown.encoding_stats is not None:
        yield "encoding statistics"
    if with_sizes and shown.size_statistics is not None:
        yield "size statistics"


def _is_shown_to_others(subject: ChunkSubject) -> bool:
    """Return whether people without the column's key can read its metadata in the footer."""
    crypto = subject.column_chunk.crypto_metadata
    if crypto is None:
        return False
    # Under the footer key of an encrypted footer, whoever can read the metadata has the column's
    # key, too (Encryption.md 5.4).
    return subject.of.is_readable or crypto.ENCRYPTION_WITH_COLUMN_KEY is not None


def has_bounds(meta_data: ColumnMetaData) -> bool:
    """Return whether the metadata holds a smallest or largest value, or bounds of geography."""
    if meta_data.geospatial_statistics is not None:
        return True
    statistics = meta_data.statistics
    return statistics is not None and _has_any(statistics)


def _has_any(statistics: Statistics) -> bool:
    bounds = (statistics.min, statistics.max, statistics.min_value, statistics.max_value)
    return any(bound is not None for bound in bounds)


def check_page_indexes(subject: ChunkSubject) -> Findings:
    """Check that the page indexes of an encrypted column are encrypted modules."""
    if not subject.is_encrypted:
        return
    listed = subject.column_chunk
    for name, offset, length in (
        ("column index", listed.column_index_offset, listed.column_index_length),
        ("offset index", listed.offset_index_offset, listed.offset_index_length),
    ):
        if offset is not None and length is not None and _is_in_clear(subject, offset, length):
            yield subject.finding(
                PAGE_INDEX_IN_CLEAR, f"the column is encrypted, its {name} is in clear"
            )


def _is_in_clear(subject: ChunkSubject, offset: int, length: int) -> bool:
    """Return whether a Thrift structure is there instead of a module.

    Raises FormatError if it is neither.
    """
    if not cipher.LENGTH_SIZE <= length <= _MOST_INDEX:
        raise FormatError(f"a page index has {length} bytes")
    file = subject.of.file
    framed = int.from_bytes(file.read_at(offset, cipher.LENGTH_SIZE), "little")
    # A module begins with the length of its other bytes (Encryption.md 5.1).  A structure in clear
    # has fields there, and ends where the footer says.
    if framed == length - cipher.LENGTH_SIZE:
        return False
    if find_fields(file.read_at(offset, length)).stop + 1 != length:
        raise FormatError("a page index is neither an encrypted module nor one in clear")
    return True


def check_pages(subject: ChunkSubject) -> Findings:
    """Check that the first page of an encrypted column is not in clear."""
    meta_data, file = subject.meta_data, subject.of.file
    if not subject.is_encrypted or meta_data is None:
        return
    # In a store each look is a request.
    if is_object_uri(file.path) and not subject.of.request.check_values:
        return
    places = (meta_data.dictionary_page_offset or 0, meta_data.data_page_offset)
    start = min((place for place in places if place > 0), default=0)
    room = subject.of.tail.offset - start
    if start and room > 0 and begins_with_page(file.read_at(start, min(room, _PAGE_HEADER))):
        yield subject.finding(PAGES_IN_CLEAR, "the column is encrypted, its first page is in clear")


def check_hudi(subject: FooterSubject) -> Findings:
    """Check that a footer that anyone can read shows no sensitive record keys."""
    shown = shown_record_keys(_texts(subject))
    if shown is not None and _has_secret_record_keys(subject):
        yield subject.of.finding(HUDI_KEYS_IN_CLEAR, shown)
    elif _has_unruled_record_keys(subject):
        yield subject.of.finding(
            HUDI_KEYS_UNRULED, "the record keys are in clear", column=_HUDI_COLUMN
        )


def shown_record_keys(texts: Mapping[str, str]) -> str | None:
    """Return which part of Hudi's record keys a footer's texts show, or None."""
    filters, bounds = texts.keys() & {FILTER, OLD_FILTER}, texts.keys() & {MIN_KEY, MAX_KEY}
    shown = ["a Bloom filter of"] * bool(filters) + ["the smallest and largest of"] * bool(bounds)
    return f"anyone can read {' and '.join(shown)} the record keys" if shown else None


def _has_secret_record_keys(subject: FooterSubject) -> bool:
    """Return whether the shown keys come from a sensitive column, or possibly from one."""
    sensitive = subject.sensitive()
    name = _texts(subject).get(KEY_COLUMN, _HUDI_COLUMN)
    is_column = any(leaf.name == name for leaf in subject.footer.leaves)
    return name in sensitive if is_column else bool(sensitive)


def _has_unruled_record_keys(subject: FooterSubject) -> bool:
    """Return whether a file with sensitive columns has record keys in clear that no rule names."""
    sensitive = subject.sensitive()
    return (
        bool(sensitive)
        and _HUDI_COLUMN not in sensitive
        and _HUDI_COLUMN not in subject.of.request.policy.columns
        and any(leaf.name == _HUDI_COLUMN for leaf in subject.footer.leaves)
    )


def check_own_texts(subject: ChunkSubject) -> Findings:
    """Check that no metadata that the column's writer added can be read without its key."""
    shown = subject.column_chunk.meta_data
    if shown is not None and shown.key_value_metadata and _is_shown_to_others(subject):
        yield subject.finding(SCHEMA_IN_CLEAR, "the footer holds metadata of the column")


def check_schemas(subject: FooterSubject) -> Findings:
    """Check that no other tool's schema in a readable footer reveals more about the column."""
    sensitive = subject.sensitive()
    if not sensitive:
        return
    texts = _texts(subject)
    # Schemas have the names of the file, which may not be those of its table.
    paths = (it for leaf in sensitive.values() for it in (leaf.path, leaf.stored_path) if it)
    known = {
        levels[:depth]
        for levels in map(column_levels, paths)
        for depth in range(1, len(levels) + 1)
    }
    for writer, columns in columns_with_metadata(texts).items():
        for column in sorted(columns):
            if column_levels(column.split(".")) in known:
                yield subject.of.finding(
                    SCHEMA_IN_CLEAR,
                    f"the {writer} schema in the footer holds metadata of the column",
                    column=column,
                )
    if has_attributes(texts):
        yield subject.of.finding(
            SCHEMA_IN_CLEAR, "the pandas schema in the footer holds attributes of the table"
        )


def _texts(subject: FooterSubject) -> dict[str, str]:
    """Return the key-value metadata that anyone can read."""
    return texts_of(subject.footer) if subject.of.is_readable else {}


def texts_of(footer: Footer) -> dict[str, str]:
    """Return the key-value metadata of a footer."""
    texts: list[KeyValue] = footer.metadata.key_value_metadata or []
    return {text.key: text.value or "" for text in texts}


def check_hudi_filter(subject: FooterSubject) -> Findings:
    """Yield a note if anyone who reads the footer can test for record keys in Hudi's filter.

    Nothing is yielded if :func:`check_hudi` reports the filter as a finding.
    """
    if shown_record_keys(texts_of(subject.footer)) is None:
        return
    if any(finding.id == HUDI_KEYS_IN_CLEAR.id for finding in check_hudi(subject)):
        return
    readers = "anyone" if subject.of.is_readable else "whoever has the footer key"
    yield subject.of.finding(
        HUDI_FILTER_PRESENT, f"{readers} can ask which record keys Hudi's filter holds"
    )
