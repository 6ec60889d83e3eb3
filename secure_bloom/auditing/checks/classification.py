"""Check that the policy says of each column whether it may be in clear."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings, FooterSubject
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.policy_rules import COLUMN_LOOKS_SENSITIVE, COLUMN_UNCLASSIFIED
from secure_bloom.encryption.personal_data import kind_of_path, kind_of_values
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.structures.metadata import Type

_UNRULED = "no rule of the policy names the column, and it is stored in clear"
#: The values of a column that are looked at, with ``check_values``.
_MOST_VALUES = 100


def check_classified(subject: FooterSubject) -> Findings:
    """Check that each column in clear has a rule.

    Without ``strict``, check only columns that look sensitive.
    """
    request, clear = subject.of.request, dict[str, list[ChunkSubject]]()
    for chunk in subject.chunks:
        if not chunk.is_sensitive and not request.is_classified(chunk.leaf.path):
            clear.setdefault(chunk.leaf.name, []).append(chunk)
    for name, chunks in clear.items():
        # A row group may have other values than the first one, or nothing but nulls.
        reason = next(filter(None, map(_reason, chunks)), None)
        if request.strict:
            what = f"{_UNRULED}; {reason}" if reason else _UNRULED
            yield subject.of.finding(COLUMN_UNCLASSIFIED, what, column=name)
        elif reason:
            yield subject.of.finding(COLUMN_LOOKS_SENSITIVE, f"{_UNRULED}; {reason}", column=name)


def _reason(chunk: ChunkSubject) -> str | None:
    """Return why a column may be sensitive, or None."""
    kind = kind_of_path(chunk.leaf.path)
    if kind is not None:
        return f"by its name it has {kind}"
    if chunk.leaf.type is Type.BYTE_ARRAY:
        kind = kind_of_values(_bounds(chunk))
        if kind is not None:
            return f"its smallest and largest values are {kind}"
    # Two bounds that are numbers may have the check digits of cards by chance.
    if chunk.leaf.type in (Type.BYTE_ARRAY, Type.INT64) and chunk.of.request.check_values:
        kind = kind_of_values(_sample(chunk))
    return None if kind is None else f"the first values are {kind}"


def _bounds(chunk: ChunkSubject) -> list[str]:
    statistics = None if chunk.meta_data is None else chunk.meta_data.statistics
    if statistics is None:
        return []
    shown = (statistics.min_value, statistics.max_value)
    # Not UTF-8: no kind has such values.
    return [bound.decode("utf-8", "replace") for bound in shown if bound is not None]


def _sample(chunk: ChunkSubject) -> list[str]:
    from secure_bloom.auditing.checks.sampled_values import first_texts

    with suppress(SecureBloomError):
        if chunk.chunk is not None:
            return list(islice(first_texts(chunk.of.file, chunk.chunk), _MOST_VALUES))
    return []


def check_partitions_classified(
    tables: Mapping[str, Collection[str]], policy: KeyPolicy
) -> Iterator[Finding]:
    """Check that a rule names each partition column, because names of folders show its values.

    ``tables`` has the partition columns of each table by its folder.
    """
    for folder, names in sorted(tables.items()):
        for name in sorted(names):
            if not policy.is_classified((name,)):
                what = "no rule of the policy names the column, and it partitions the table"
                yield COLUMN_UNCLASSIFIED.finding(what, path=folder, column=name)
