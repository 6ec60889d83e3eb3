"""With ``check_values``, search everything in a lake for values of its sensitive columns.

    index = sensitive_words(columns, chunks, policy)   the values of all files, once
    traced = trace_footer(subject)                     columns in clear, bounds, texts, gaps
    traced = trace_other(file, index)                  any other file, opened and unpacked
    findings = confirmed_findings(traced, index)       compared with the values, for all together

How values are searched for is in :mod:`secure_bloom.tracing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import accumulate, chain, repeat
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.auditing.checks.clear_structures import chunk_texts, footer_texts, open_texts
from secure_bloom.auditing.checks.subjects import FooterSubject
from secure_bloom.auditing.checks.unreferenced_bytes import gap_steps
from secure_bloom.auditing.failures import ERRORS, error_message
from secure_bloom.auditing.findings import Finding, Rule, Severity
from secure_bloom.auditing.naming import secret_partition
from secure_bloom.auditing.rules.leak_rules import (
    PAGE_INDEX_IN_CLEAR,
    VALUES_IN_CLEAR,
    VALUES_MENTIONED,
    VALUES_NOT_SEARCHED,
)
from secure_bloom.auditing.rules.unchecked_rules import (
    UNCHECKED_COPY,
    UNCHECKED_FOOTER,
    UNCHECKED_VALUES,
)
from secure_bloom.bloom.entries import hashes_of
from secure_bloom.bloom.stored import read_bloom_filter
from secure_bloom.bloom.xxh64 import hash_value
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import KmsUnavailableError, SecureBloomError
from secure_bloom.parquet.column_values import read_entries
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.logical_arrays import logical_array
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import fixed_type
from secure_bloom.running.memory_budget import memory_budget
from secure_bloom.storage import InputFile
from secure_bloom.tracing.content import Part
from secure_bloom.tracing.forms import plain_texts
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import occurrences
from secure_bloom.tracing.search import (
    FileTrace,
    confirm,
    texts_with_values,
    trace_file,
    trace_parts,
    trace_text,
)
from secure_bloom.tracing.subjects import WORTH, SearchedColumn
from secure_bloom.tracing.verdicts import Meaning

#: Yields the chunks of a column in all files, each with its open file.
ChunksOf = Callable[[str], Iterator[tuple[InputFile, Chunk]]]
#: Files and columns whose values could not be read, with the reasons.
_Unread = dict[tuple[str, str | None], str]
_OTHER = "a file that is no data file of the table holds values of the column"
#: The names that a finding shows.
_MOST_NAMED = 3
_NAMES = "names of files or folders hold values of the column"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedValues:
    """The words of sensitive columns that one file may hold. They are still to be confirmed.

    ``texts`` has, for the place of each part of the file, the text of its finding and its column.
    ``footer_key`` is the key under which the footer is encrypted. Whoever has it may read columns
    under the same key, so their values in the footer's texts are no finding.
    """

    trace: FileTrace
    texts: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    path: str | None = None
    policy: KeyPolicy | None = None
    unread: _Unread = field(default_factory=dict)


def sensitive_words(
    columns: Iterable[str], chunks_of: ChunksOf, policy: KeyPolicy, unread: _Unread
) -> WordIndex:
    """Read the values of all sensitive columns into one index.

    Chunks that cannot be read are left out, and ``unread`` gets the reasons.
    """
    searched = [_searched(name, chunks_of, policy, unread) for name in columns]
    index = WordIndex.build(searched, memory_budget())
    index.unread = unread
    return index


def _searched(name: str, chunks_of: ChunksOf, policy: KeyPolicy, unread: _Unread) -> SearchedColumn:
    def values() -> Iterator[pa.Array]:
        return of_chunks(repeat(True))

    def lookup(texts: Sequence[bytes]) -> Iterator[pa.Array] | None:
        hashes = np.array([hash_value(text) for text in texts], np.uint64)
        asked = [(chunk, _may_have(file, chunk, hashes)) for file, chunk in chunks_of(name)]
        left = sum(chunk.num_rows for chunk, found in asked if found)
        every = sum(chunk.num_rows for chunk, _ in asked)
        return of_chunks(found for _, found in asked) if left <= WORTH * every else None

    def of_chunks(wanted: Iterable[bool]) -> Iterator[pa.Array]:
        for (file, chunk), is_wanted in zip(chunks_of(name), wanted, strict=False):
            if is_wanted:
                yield from _arrays(file, chunk, unread)

    rule = policy.columns.get(name)
    parts = () if rule is None else rule.parts
    return SearchedColumn(name=name, values=values, parts=parts, lookup=lookup)


def _may_have(file: InputFile, chunk: Chunk, hashes: NDArray[np.uint64]) -> bool:
    """Return whether a chunk may have a text with one of ``hashes``, by its Bloom filter."""
    if chunk.leaf.type is not Type.BYTE_ARRAY:
        return True
    try:
        stored = read_bloom_filter(file, chunk)
    except KmsUnavailableError:
        raise
    # Another check says what is wrong with the filter.
    except SecureBloomError:
        return True
    return stored is None or bool(stored.filter.check_hashes(hashes).any())


def _arrays(file: InputFile, chunk: Chunk, unread: _Unread) -> Iterator[pa.Array]:
    """Yield the values of a chunk, as far as they can be read. ``unread`` gets the reason."""
    # No word has one bit.
    if chunk.leaf.type is Type.BOOLEAN:
        return
    try:
        for entries in read_entries(file, chunk).entries:
            yield logical_array(chunk.leaf, entries)
    except KmsUnavailableError:
        raise
    except (SecureBloomError, ValueError, OverflowError, pa.ArrowException) as error:
        unread[file.path, chunk.leaf.name] = error_message(error)


def trace_footer(subject: FooterSubject, index: WordIndex) -> TracedValues:
    """Search what a Parquet file shows: its columns in clear, bounds, texts and gaps."""
    texts: dict[str, tuple[str, str | None]] = {
        "texts": (_FOOTER.format(_readers(subject)), None),
        "open texts": (_OPEN_TEXTS, None),
        "gaps": (_GAPS, None),
    }
    parts = [
        Part(place="texts", texts=footer_texts(subject)),
        Part(place="open texts", texts=open_texts(subject)),
        Part(place="gaps", pieces=gap_steps(subject)),
    ]
    clear: dict[str, list[Chunk]] = {}
    unread: _Unread = {}
    for chunk in subject.chunks:
        if not chunk.is_sensitive and chunk.chunk is not None:
            clear.setdefault(chunk.leaf.name, []).append(chunk.chunk)
    for name, chunks in clear.items():
        for part, what in _column_parts(subject, name, chunks, unread):
            parts.append(part)
            texts[part.place] = what, name
    trace = trace_parts(subject.of.file.path, parts, index)
    return TracedValues(trace=trace, texts=texts, policy=_sealed(subject), unread=unread)


def _readers(subject: FooterSubject) -> str:
    return "anyone" if subject.of.is_readable else "whoever has the footer key"


def _column_parts(
    subject: FooterSubject, name: str, chunks: list[Chunk], unread: _Unread
) -> Iterator[tuple[Part, str]]:
    """Yield the parts of a column in clear to be searched: headers, values and bounds.

    Values of a column that the policy names are left out: the policy allows them to be in clear.
    """
    file = subject.of.file
    found = [chunk_texts(file, chunk) for chunk in chunks]
    texts = [text for some, _ in found for text in some]
    yield Part(place=f"headers of {name}", texts=texts), _HEADERS
    if name not in subject.of.request.policy.columns:
        arrays = (array for chunk in chunks for array in _arrays(file, chunk, unread))
        yield Part(place=name, arrays=arrays), _REPEATED
    bounds = (
        text
        for chunk, (_, in_pages) in zip(chunks, found, strict=True)
        for text in _foreign_bounds(file, chunk, {*_bounds(chunk), *in_pages})
    )
    yield Part(place=f"bounds of {name}", texts=bounds), _REPEATED


_FOOTER = "the names and texts of the footer, which {} can read, hold values of the column"
_OPEN_TEXTS = "key material, or what precedes the encrypted footer, holds values of the column"
_GAPS = "bytes that nothing refers to hold values of the column"
#: Page indexes are searched as gaps are: a forged length must not hide a filter.
_INDEXES = "page indexes in clear, or bytes that nothing refers to, hold values of the column"
_HEADERS = "headers of filters or pages, or page indexes, hold values of {}, which anyone can read"
_REPEATED = "the column is in clear and repeats values of {}, or digests of them"


def _foreign_bounds(file: InputFile, chunk: Chunk, bounds: set[bytes]) -> Iterator[bytes]:
    """Yield the bounds that are no values of the chunk, as bytes and as texts of their type."""
    left = {hash_value(bound): bound for bound in bounds}
    # Another check says what is wrong with the pages.
    with suppress(SecureBloomError):
        for entries in read_entries(file, chunk).entries if left else ():
            for hashes in hashes_of(entries):
                for found in np.intersect1d(hashes, np.array(list(left), np.uint64)).tolist():
                    del left[found]
    yield from left.values()
    width = chunk.leaf.width
    whole = b"".join(bound for bound in left.values() if len(bound) == width)
    if width and whole:
        entries = np.frombuffer(whole, fixed_type(chunk.leaf))
        with suppress(ValueError, OverflowError, pa.ArrowException):
            for texts in plain_texts(logical_array(chunk.leaf, entries)):
                yield from texts.to_pylist()


def _sealed(subject: FooterSubject) -> KeyPolicy | None:
    return None if subject.of.is_readable else subject.of.request.policy


def trace_other(file: InputFile, index: WordIndex) -> TracedValues:
    """Search a file for the words in ``index``, whatever its format is."""
    return TracedValues(trace=trace_file(file, index))


class SearchedNames:
    """The names of files and folders that hold a value of a column.

    Partitions by a sensitive column are left out: other rules report and mask them.
    """

    def __init__(self, paths: Iterable[str], policy: KeyPolicy, index: WordIndex) -> None:
        self._paths = list(paths)
        names = {part for path in self._paths for part in path.split("/")}
        self._index = index
        self._searched = {
            _encoded(name) for name in names if secret_partition(name, policy) is None
        }
        # Each name counts for itself: one of a thousand that is an address is one too many.
        self._found = texts_with_values(self._searched, index)

    def trace(self, roots: Sequence[str], mask: Callable[[str], str]) -> TracedValues:
        """Return what was found in all names together. The first ones are named, with masks."""
        # The path of the finding is the one that was given: many names may have values.
        path = roots[0] if len(roots) == 1 else None
        trace = trace_text(path or "", "names", b"\n".join(sorted(self._found)), self._index)
        places = list(dict.fromkeys(self._places())) if self._found else []
        named = ", ".join(map(mask, places[:_MOST_NAMED]))
        more = f" and {len(places) - _MOST_NAMED:,} more" if len(places) > _MOST_NAMED else ""
        # The name of the column is filled in.
        what = f"{_NAMES}: {named}{more}".replace("{", "{{").replace("}", "}}")
        return TracedValues(trace=trace, texts={"names": (what, None)}, path=path)

    def _places(self) -> Iterator[str]:
        """Yield the paths of files and folders whose own names have a word of a column."""
        for path in self._paths:
            parts = path.split("/")
            for place, part in zip(accumulate(parts, "{}/{}".format), parts, strict=True):
                if _encoded(part) in self._found:
                    yield place

    def has_value(self, name: str) -> bool:
        """Return whether a name holds a value of a column."""
        text = _encoded(name)
        if text not in self._searched:
            self._searched.add(text)
            self._found |= texts_with_values([text], self._index)
        return text in self._found


def _encoded(name: str) -> bytes:
    return unquote(name).encode("utf-8", "surrogatepass")


def confirmed_findings(
    traced: Sequence[TracedValues], index: WordIndex, found: Iterable[Finding]
) -> Iterator[Finding]:
    """Compare what was found with the values, and yield a finding for each place and column.

    ``found`` has the other findings of the files: they say which page indexes are in clear.
    """
    confirm([it.trace for it in traced], index)
    with_index = {it.path for it in found if it.id == PAGE_INDEX_IN_CLEAR.id}
    for it in traced:
        if it.trace.path in with_index:
            it.texts["gaps"] = _INDEXES, None
        yield from dict.fromkeys(_findings(it, index))
        for place, reason in dict.fromkeys(it.trace.unread):
            what = f"{place}: {reason}" if place else reason
            yield UNCHECKED_COPY.finding(f"not searched for values: {what}", path=it.trace.path)


def partly_searched(index: WordIndex, path: str | None = None) -> Iterator[Finding]:
    """Yield a finding for each column of which not all words were searched for in a file."""
    for column in index.columns:
        if not column.is_whole:
            what = "memory is too small for the words that may be values: not all were searched for"
            yield UNCHECKED_VALUES.finding(what, path=path, column=column.name)


def unread_values(
    traced: Sequence[TracedValues],
    index: WordIndex,
    found: Iterable[Finding],
    only: str | None = None,
) -> Iterator[Finding]:
    """Yield findings for values that the search could not read, of one file with ``only``.

    Where the audit of a file, which reads it again, has a finding of a column, that is enough.
    """
    told = {
        (it.path, it.column)
        for it in found
        if it.id in _TELL or (it.column is not None and it.severity is not Severity.NOTE)
    }
    each = (index.unread, *(it.unread for it in traced))
    every = dict(chain.from_iterable(it.items() for it in each))
    for (path, column), reason in every.items():
        if only in (None, path) and not told & {(path, None), (path, column)}:
            what = f"values were not read for the search: {reason}"
            yield UNCHECKED_VALUES.finding(what, path=path, column=column)


#: Rules that say that a whole file was not read.
_TELL: Final = {it.id for it in (*ERRORS, UNCHECKED_FOOTER)}


def not_searched(index: WordIndex) -> Iterator[Finding]:
    """Yield findings for columns of which no value, or only a part, was searched for."""
    for column in index.columns:
        if column.not_searched is not None:
            what = f"no value was searched for elsewhere: {column.not_searched}"
            yield VALUES_NOT_SEARCHED.finding(what, column=column.name)
        for what in column.partly_searched():
            yield VALUES_NOT_SEARCHED.finding(what, column=column.name)


def leak_search(
    traced: Sequence[TracedValues], index: WordIndex, mask: Callable[[str], str]
) -> dict[str, Any]:
    """Return the counts of a confirmed search for a report, with masked paths."""
    found = [
        {
            "path": mask(it.path if it.path is not None else it.trace.path) or None,
            **asdict(each),
            "verdict": str(each.verdict),
        }
        for it in traced
        for part in it.trace.parts
        for each in occurrences(part, index)
    ]
    return {
        "columns": [it.to_dict() for it in index.columns],
        "asked": sum(it.trace.asked for it in traced),
        "found": found,
    }


def _findings(traced: TracedValues, index: WordIndex) -> Iterator[Finding]:
    path = traced.path if traced.path is not None else traced.trace.path or None
    for found in chain.from_iterable(occurrences(part, index) for part in traced.trace.parts):
        what, column = traced.texts.get(found.place, (_OTHER, None))
        if found.place == "texts" and _is_under_footer_key(found.column, traced.policy):
            continue
        rule = _RULES[found.verdict]
        yield rule.finding(what.format(found.column), path=path, column=column or found.column)


_RULES: dict[Meaning, Rule] = {
    Meaning.VALUES: VALUES_IN_CLEAR,
    Meaning.MENTION: VALUES_MENTIONED,
}


def _is_under_footer_key(name: str, policy: KeyPolicy | None) -> bool:
    """Return whether whoever can read an encrypted footer may read the column too."""
    return policy is not None and policy.key_for(tuple(name.split("."))) == policy.footer_key


def _bounds(chunk: Chunk) -> Iterator[bytes]:
    statistics = chunk.meta_data.statistics
    if statistics is not None:
        shown = (statistics.min, statistics.max, statistics.min_value, statistics.max_value)
        yield from (bound for bound in shown if bound)
