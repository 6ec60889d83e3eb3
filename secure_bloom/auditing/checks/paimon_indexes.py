"""Check that the filters of a Paimon index of a data file hold values of their columns alone.

An index is in clear. If values of a sensitive column were in the filter of another column, anyone
could test for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from secure_bloom.auditing.checks.column_filters import are_read
from secure_bloom.auditing.checks.subjects import Findings, FooterSubject
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.filter_rules import FILTER_CROWDED
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_VALUES
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock_to_read
from secure_bloom.storage import is_object_uri, name_of, open_input, sibling
from secure_bloom.storage.dispatch import tree_of

_FIX = (
    "build the index anew with Paimon or secure-bloom paimon build, and find the writer of this one"
)


def check_index_bits(subject: FooterSubject) -> Findings:
    """Check that each filter of an index has no bits that the values of its column do not set."""
    request = subject.of.request
    for content in _contents(subject) if request.has_secrets else ():
        yield from _foreign(subject, content)


def _contents(subject: FooterSubject) -> Iterator[bytes]:
    path = subject.of.file.path
    listed = subject.of.run.paimon_file(path)
    if listed is not None and listed.embedded_index is not None:
        yield listed.embedded_index
    names = (f"{name_of(path)}.index",) if listed is None else listed.index_names
    for place in (sibling(path, name) for name in names):
        # In a store each look is a request, so there only a table's own indexes are read.
        if listed is not None or not (is_object_uri(path) or not tree_of(path).is_file(place)):
            yield from _content(place)


def _content(path: str) -> Iterator[bytes]:
    # Imported here: few files have an index.
    from secure_bloom.paimon.container import MAGIC
    from secure_bloom.paimon.index_files import MAX_INDEX_BYTES

    # One that cannot be read is a finding of the check of its folder.
    with suppress(SecureBloomError), open_input(path) as index:
        is_paimons = index.read_at(0, min(index.size, len(MAGIC))) == MAGIC
        if is_paimons and index.size <= MAX_INDEX_BYTES:
            yield index.all_bytes()


def _foreign(subject: FooterSubject, content: bytes) -> Iterator[Finding]:
    from secure_bloom.paimon.container import BLOOM_FILTER, FileIndex

    try:
        index_columns = FileIndex.from_bytes(content).columns
    except SecureBloomError:
        # A damaged index is a finding of the check of its folder.
        return
    columns = {
        column.name: index.body
        for column in index_columns
        for index in column.indexes
        if index.type == BLOOM_FILTER and index.body is not None
    }
    if not columns:
        return
    # An index has the names of the file, and a footer may have been opened with the table's.
    with open_input(subject.of.file.path) as file:
        footer = unlock_to_read(read_tail(file), subject.of.keys)
        for name, body in columns.items():
            # One column that cannot be read must not hide the others.
            try:
                is_foreign = _has_foreign_bits(subject, footer, name, bytes(body))
            except SecureBloomError as error:
                # Without `check_values` nobody asked for the values.
                if subject.of.request.check_values:
                    yield UNCHECKED_VALUES.finding(
                        error.message, path=subject.of.file.path, column=name
                    )
                continue
            if is_foreign:
                what = "the column's filter in the index has bits that no value of the column sets"
                found = FILTER_CROWDED.finding(what, path=subject.of.file.path, column=name)
                yield replace(found, fix=_FIX)


def _has_foreign_bits(subject: FooterSubject, footer: Footer, name: str, body: bytes) -> bool:
    from secure_bloom.paimon.bloom_filter64 import BloomFilter64
    from secure_bloom.paimon.column_filter import IndexOptions, column_hashes_of, column_sources

    (source,) = column_sources(footer, {name: IndexOptions()})
    if not all(are_read(subject.of, chunk) for group in source.chunks for chunk in group):
        return False
    found = BloomFilter64.from_bytes(body)
    made = BloomFilter64(found.bit_count, max(1, found.hash_functions))
    for hashes in column_hashes_of(subject.of.file, source) if found.hash_functions else ():
        made.insert_hashes(hashes)
    bits, explained = (int.from_bytes(it.bitset, "big") for it in (found, made))
    # A filter that lacks values of its column hashes them otherwise: its bits explain nothing.
    return not explained & ~bits and bool(bits & ~explained)
