"""Check of the zero hazard: a filter that knows one sign of zero, of a column that has a zero.

Filters hash bits, engines find 0.0 equal to -0.0.  Whether the column has a zero is told by its
statistics where its smallest or largest value is one; else only the values tell.
"""

from __future__ import annotations

import math
import struct

from secure_bloom.auditing import rules
from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings, FooterSubject
from secure_bloom.auditing.checks.tally import ZeroTally
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.parquet.footer import Chunk
from secure_bloom.parquet.logical_types import Kind, logical_type
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type

#: A filter that has other values knows one zero by chance; what is less likely is told.
_CHANCE = 1e-6
_FORMATS = {Type.FLOAT: "<f", Type.DOUBLE: "<d"}


def check_zeros(
    subject: ChunkSubject, chunk: Chunk, bloom_filter: SplitBlockBloomFilter
) -> Findings:
    """Both signs of zero are in the filter, or none is, or there is no zero."""
    layout = _layout(chunk.leaf)
    if layout is None:
        return
    plus, minus = (bloom_filter.check(struct.pack(layout, zero)) for zero in (0.0, -0.0))
    has_zero = _statistics_say(chunk, layout)
    if has_zero is None:
        tally = subject.of.tally.zeros.setdefault(chunk.leaf.name, ZeroTally())
        tally.by_chance += 2 * bloom_filter.fpp()
    if plus == minus:
        return
    if has_zero is None and subject.of.request.check_values:
        # Imported here: all but this needs no pyarrow.
        from secure_bloom.auditing.checks.sampled_values import has_zero as look

        has_zero = look(subject.of.file, chunk)
    if has_zero:
        yield subject.finding(rules.FILTER_ONE_ZERO, "the filter holds one sign of zero only")
    elif has_zero is None:
        tally.row_groups.append(subject.row_group)


def check_doubts(subject: FooterSubject) -> Findings:
    """No column has more filters that know one zero than would do so by chance."""
    for column, tally in subject.of.tally.zeros.items():
        if _is_chance(len(tally.row_groups), tally.by_chance):
            continue
        for row_group in tally.row_groups:
            yield rules.UNCHECKED_ZEROS.finding(
                "the filter knows one sign of zero, the values were not read",
                path=subject.of.file.path,
                row_group=row_group,
                column=column,
            )


def _is_chance(count: int, expected: float) -> bool:
    """Whether as many may come by chance: Chernoff's bound on the tail of Poisson's distribution.

    P(X >= n) <= e^-m (e m / n)^n for a mean m below n.
    """
    if count <= expected:
        return True
    likelihood = count * (1 + math.log(expected / count)) - expected if expected else -math.inf
    return likelihood > math.log(_CHANCE)


def _layout(leaf: Leaf) -> str | None:
    """How the column's values are packed; None for a column that is not floating-point."""
    if logical_type(leaf.element).kind is Kind.FLOAT16:
        return "<e"
    return _FORMATS.get(leaf.type)


def _statistics_say(chunk: Chunk, layout: str) -> bool | None:
    """Whether there is a zero; None where the statistics do not tell."""
    statistics = chunk.meta_data.statistics
    bounds = [] if statistics is None else [statistics.min_value, statistics.max_value]
    size = struct.calcsize(layout)
    if len(bounds) < 2 or not all(bound is not None and len(bound) == size for bound in bounds):
        return None
    low, high = (struct.unpack(layout, bound)[0] for bound in bounds if bound is not None)
    if low == 0 or high == 0:
        # Writers widen a zero to the sign that covers both, but never invent one.
        return True
    return None if low < 0 < high else False
