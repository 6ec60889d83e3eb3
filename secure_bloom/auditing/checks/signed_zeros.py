"""Check zeros: a filter has both 0.0 and -0.0, or neither, or its column has no zero.

Filters hash bits, but engines find 0.0 equal to -0.0.  The statistics show that a column has a zero
if its smallest or largest value is one. Otherwise only the values show it.
"""

from __future__ import annotations

import math
import struct

from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings, FooterSubject, ZeroTally
from secure_bloom.auditing.rules.filter_rules import FILTER_ONE_ZERO
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_ZEROS
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.parquet.footer.opened import Chunk
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type

#: A filter may have one zero by chance, by the bits of other values.  If that is less likely than
#: this, it is a finding.
_CHANCE = 1e-6
_FORMATS = {Type.FLOAT: "<f", Type.DOUBLE: "<d"}


def check_zeros(
    subject: ChunkSubject, chunk: Chunk, bloom_filter: SplitBlockBloomFilter
) -> Findings:
    """Check that both signs of zero are in the filter, or none is, or the column has no zero."""
    layout = _layout(chunk.leaf)
    if layout is None:
        return
    plus, minus = (bloom_filter.check(struct.pack(layout, zero)) for zero in (0.0, -0.0))
    has_zero = _statistics_say(chunk, layout)
    if has_zero is None:
        tally = subject.of.tally.zeros.setdefault(chunk.leaf.name, ZeroTally())
        # Twice, because the bits of other values may make either zero pass.
        tally.by_chance += 2 * bloom_filter.fpp()
    if plus == minus:
        return
    if has_zero is None and subject.of.request.check_values:
        # Imported here: the other checks need no pyarrow.
        from secure_bloom.auditing.checks.sampled_values import has_zero as look

        has_zero = look(subject.of.file, chunk)
    if has_zero:
        yield subject.finding(FILTER_ONE_ZERO, "the filter holds one sign of zero only")
    elif has_zero is None:
        tally.row_groups.append(subject.row_group)


def check_doubts(subject: FooterSubject) -> Findings:
    """Check that no column has more filters with only one zero than chance explains."""
    for column, tally in subject.of.tally.zeros.items():
        if _is_chance(len(tally.row_groups), tally.by_chance):
            continue
        for row_group in tally.row_groups:
            yield UNCHECKED_ZEROS.finding(
                "the filter knows one sign of zero, the values were not read",
                path=subject.of.file.path,
                row_group=row_group,
                column=column,
            )


def _is_chance(count: int, expected: float) -> bool:
    """Return whether chance explains this count.

    Uses Chernoff's bound on the tail of a Poisson distribution: P(X >= n) <= e^-m (e m / n)^n for a
    mean m below n.
    """
    if count <= expected:
        return True
    likelihood = count * (1 + math.log(expected / count)) - expected if expected else -math.inf
    return likelihood > math.log(_CHANCE)


def _layout(leaf: Leaf) -> str | None:
    """Return the struct format of the column's values, or None if they are not floating-point."""
    if leaf.logical.kind is Kind.FLOAT16:
        return "<e"
    return _FORMATS.get(leaf.type)


def _statistics_say(chunk: Chunk, layout: str) -> bool | None:
    """Return whether there is a zero, or None if the statistics do not show it."""
    statistics = chunk.meta_data.statistics
    bounds = [] if statistics is None else [statistics.min_value, statistics.max_value]
    size = struct.calcsize(layout)
    if len(bounds) < 2 or not all(bound is not None and len(bound) == size for bound in bounds):
        return None
    low, high = (struct.unpack(layout, bound)[0] for bound in bounds if bound is not None)
    if low == 0 or high == 0:
        # Writers may change the sign of a zero bound so that it covers both, but invent no zero.
        return True
    return None if low < 0 < high else False
