"""With ``check_values``, check whether sampled values of sensitive columns are in clear elsewhere.

Values of the first page of each sensitive column are looked for in the first pages of columns in
clear, in their bounds, in the footer's names and texts, and in bytes that nothing refers to.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from secure_bloom.auditing.checks.sensitive_values import SensitiveValues, sparse
from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings, FooterSubject
from secure_bloom.auditing.checks.unreferenced_bytes import gap_steps
from secure_bloom.auditing.rules.leak_rules import VALUES_IN_CLEAR
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.column_values import read_sample
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import Binary

#: The most values of a column that are looked for, and that they are looked for in.
_MOST_LOOKED_FOR, _MOST_SEARCHED = 1_000, 10_000
_TEXTS = (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
_NUMBERS = (Type.INT32, Type.INT64)


def check_repeated_values(subject: FooterSubject) -> Findings:
    """Yield a finding for each column in clear, or text, that repeats values of a sensitive one."""
    secrets = values_of(subject) | subject.of.run.secrets
    if not secrets:
        return
    policy, seen = subject.of.request.policy, "anyone can read"
    if not subject.of.is_readable:
        seen = "whoever has the footer key can read"
    for name in secrets.columns_in(_texts(subject)):
        if subject.of.is_readable or policy.key_for(name.split(".")) != policy.footer_key:
            what = f"the names and texts of the footer, which {seen}, hold values of the column"
            yield subject.of.finding(VALUES_IN_CLEAR, what, column=name)
    for chunk in _first_chunks(subject, sensitive=False):
        if chunk.leaf.name not in policy.columns:
            yield from _check_column(chunk, secrets)
    for name in {it for step in gap_steps(subject) for it in secrets.columns_in(step)}:
        what = "bytes that nothing refers to hold values of the column"
        yield subject.of.finding(VALUES_IN_CLEAR, what, column=name)


def values_of(subject: FooterSubject) -> SensitiveValues:
    """Return a sample of the values of the sensitive columns of a file."""
    return SensitiveValues(
        {
            chunk.leaf.name: _sample(chunk, _MOST_LOOKED_FOR)
            if chunk.leaf.type in _TEXTS
            else sparse(_numbers(chunk))
            for chunk in _first_chunks(subject, sensitive=True)
        }
    )


def _check_column(chunk: ChunkSubject, secrets: SensitiveValues) -> Findings:
    found = _sample(chunk, _MOST_SEARCHED)
    if chunk.leaf.type in _NUMBERS:
        width = chunk.leaf.width or 0
        found = [it.to_bytes(width, "little", signed=True) for it in _numbers(chunk)]
    bounds = _bounds(chunk)
    repeated = dict.fromkeys((*secrets.columns_repeated(found), *secrets.columns_bounding(bounds)))
    for name in repeated:
        yield chunk.of.finding(
            VALUES_IN_CLEAR,
            f"the column is in clear and repeats values of {name}, or digests of them",
            column=chunk.leaf.name,
        )


def _first_chunks(subject: FooterSubject, *, sensitive: bool) -> Iterator[ChunkSubject]:
    """Yield the first chunk of each column of texts, bytes or whole numbers."""
    seen: set[str] = set()
    for chunk in subject.chunks:
        is_searched = chunk.leaf.type in (*_TEXTS, *_NUMBERS)
        if is_searched and chunk.is_sensitive is sensitive and chunk.leaf.name not in seen:
            seen.add(chunk.leaf.name)
            yield chunk


def _sample(chunk: ChunkSubject, most: int) -> list[bytes]:
    """Return texts of the first page; none where it cannot be read, which other checks say."""
    found: list[bytes] = []
    if chunk.chunk is None:
        return found
    try:
        for entries in read_sample(chunk.of.file, chunk.chunk):
            if isinstance(entries, Binary):
                found += _values(entries, most - len(found))
    except SecureBloomError:
        return []
    return found


def _numbers(chunk: ChunkSubject) -> list[int]:
    """Return whole numbers of the first page; none where it cannot be read."""
    found: list[int] = []
    try:
        for entries in () if chunk.chunk is None else read_sample(chunk.of.file, chunk.chunk):
            if isinstance(entries, np.ndarray) and entries.dtype.kind in "iu":
                found += entries[:_MOST_SEARCHED].view(f"i{entries.itemsize}").tolist()
    except SecureBloomError:
        return []
    return found


def _values(entries: Binary, most: int) -> list[bytes]:
    data, offsets = entries.data.tobytes(), entries.offsets[: max(most, 0) + 1].tolist()
    return [data[start + entries.prefix : end] for start, end in pairwise(offsets)]


def _bounds(chunk: ChunkSubject) -> frozenset[bytes]:
    statistics = None if chunk.meta_data is None else chunk.meta_data.statistics
    if statistics is None:
        return frozenset()
    shown = (statistics.min, statistics.max, statistics.min_value, statistics.max_value)
    return frozenset(bound for bound in shown if bound is not None)


def _texts(subject: FooterSubject) -> bytes:
    """Return the names of columns and the texts of a footer."""
    metadata = subject.footer.metadata
    pairs = metadata.key_value_metadata or []
    texts = [*(f"{pair.key}\n{pair.value or ''}" for pair in pairs), metadata.created_by or ""]
    names = (part for leaf in subject.footer.leaves for part in leaf.path)
    return "\n".join((*texts, *names)).encode("utf-8", "surrogatepass")
