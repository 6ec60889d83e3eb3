"""With ``check_values``, check whether sampled values of sensitive columns are in clear elsewhere.

Texts of the first page of each sensitive column are looked for in the first pages of columns in
clear, in their bounds, and in the texts of a readable footer: as they are, and as digests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from itertools import pairwise

from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings, FooterSubject
from secure_bloom.auditing.rules.leak_rules import VALUES_IN_CLEAR
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.column_values import read_sample
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import Binary

#: Shorter texts occur everywhere; a column is said to repeat another from this many values on.
_SHORTEST, _LEAST_MATCHES = 6, 3
#: The most values of a column that are looked for, and that they are looked for in.
_MOST_LOOKED_FOR, _MOST_SEARCHED = 1_000, 10_000
#: Inside longer texts fewer are looked for.
_MOST_INSIDE = 100
_DIGESTS = ("md5", "sha1", "sha256", "sha512")


def check_repeated_values(subject: FooterSubject) -> Findings:
    """Yield a finding for each column in clear, or text, that repeats sensitive values."""
    secrets = {name: values for name, values in _secrets(subject) if values}
    if not secrets:
        return
    texts = _texts(subject)
    for name, values in secrets.items():
        if any(value.lower() in texts for value in values):
            yield subject.of.finding(
                VALUES_IN_CLEAR, "texts of the footer hold values of the column", column=name
            )
    for chunk in _first_chunks(subject, sensitive=False):
        if chunk.leaf.name not in subject.of.request.policy.columns:
            yield from _check_column(chunk, secrets)


def _check_column(chunk: ChunkSubject, secrets: dict[str, tuple[bytes, ...]]) -> Findings:
    found, bounds = _sample(chunk, _MOST_SEARCHED), _bounds(chunk)
    known = {value.lower() for value in found}
    # The end of a value is no letter, so that no match lies across two of them.
    whole = b"\0".join(known)
    for name, values in secrets.items():
        matches = sum(
            not known.isdisjoint(_spellings(value)) or (i < _MOST_INSIDE and value.lower() in whole)
            for i, value in enumerate(values)
        )
        if matches >= min(_LEAST_MATCHES, len(values)) or (bounds and bounds <= set(values)):
            yield chunk.of.finding(
                VALUES_IN_CLEAR,
                f"the column is in clear and repeats values of {name}, or digests of them",
                column=chunk.leaf.name,
            )


def _spellings(value: bytes) -> Iterator[bytes]:
    """Yield the forms of a value that are looked for, in lower case as the searched values are."""
    yield value.lower()
    yield base64.b64encode(value).lower()
    for text in {value, value.lower()}:
        for kind in _DIGESTS:
            digest = hashlib.new(kind, text, usedforsecurity=False)
            yield digest.hexdigest().encode()
            yield digest.digest().lower()
            yield base64.b64encode(digest.digest()).lower()


def _secrets(subject: FooterSubject) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    for chunk in _first_chunks(subject, sensitive=True):
        values = (value for value in _sample(chunk, _MOST_LOOKED_FOR) if len(value) >= _SHORTEST)
        yield chunk.leaf.name, tuple(dict.fromkeys(values))


def _first_chunks(subject: FooterSubject, *, sensitive: bool) -> Iterator[ChunkSubject]:
    """Yield the first chunk of each column of texts or bytes."""
    seen: set[str] = set()
    for chunk in subject.chunks:
        is_text = chunk.leaf.type in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
        if is_text and chunk.is_sensitive is sensitive and chunk.leaf.name not in seen:
            seen.add(chunk.leaf.name)
            yield chunk


def _sample(chunk: ChunkSubject, most: int) -> list[bytes]:
    """Return values of the first page, or [] if it cannot be read, which other checks report."""
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
    """Return the texts of a readable footer in lower case."""
    if not subject.of.is_readable:
        return b""
    metadata = subject.footer.metadata
    pairs = metadata.key_value_metadata or []
    texts = [*(f"{pair.key}\n{pair.value or ''}" for pair in pairs), metadata.created_by or ""]
    return "\n".join(texts).encode("utf-8", "surrogatepass").lower()
