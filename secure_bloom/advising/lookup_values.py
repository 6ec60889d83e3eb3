"""Choose values to look up: some that rows have, and others between them that no row has."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from secure_bloom.advising.sample import TableSample
from secure_bloom.reading.lookup_trials import LookupTrials

#: The values come from this many row groups.
_ORIGINS = 8
#: The number of tries to find a value between two others.
_TRIES = 60
#: Distinct values of several row groups are counted together up to this many bytes.
_COUNTED_BYTES = 64 * 1024 * 1024
#: Longer texts are not looked up.
_LONGEST = 64 * 1024
#: The digits of the longest decimal of Arrow.
_DIGITS = 76
#: Characters of a kind; others give way to one of the last.
_KINDS = ("0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_TEXT_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledValue:
    """A value to look up. ``path`` and ``row_group`` say where it was found, or derived from."""

    path: str
    row_group: int
    value: pa.Scalar = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctValues:
    """Estimated numbers of distinct values in a row group, and in the table."""

    row_group: int
    table: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupValues:
    """The values of one column to look up. ``present`` is empty if the column has no values."""

    present: tuple[SampledValue, ...]
    absent: tuple[SampledValue, ...]
    distinct: DistinctValues


def lookup_values(
    trials: LookupTrials, sample: TableSample, column: Sequence[str], count: int
) -> LookupValues:
    """Return ``count`` values of random rows, and as many values that these row groups lack.

    An absent value lies between two values of a row group. Another row group of the table may have
    it. There may be fewer absent values than ``count``, or none.
    """
    chance = random.Random(".".join(column))  # noqa: S311 - the same values in every run
    counter = _DistinctCounter()
    present: list[SampledValue] = []
    absent: list[SampledValue] = []
    origins = _origins(sample, chance)
    each = -(-count // max(1, len(origins)))
    for path, group in origins:
        found = _Rows.of(trials.values(path, group, column))
        if not len(found.rows):
            continue
        ascending = found.distinct().sort()
        counter.add(ascending)
        drawn = (found.value(chance.randrange(len(found.rows))) for _ in range(each))
        rows = [row for row in drawn if _can_be_asked(row)]
        beside = filter(None, (_absent(ascending, row, chance) for row in rows))
        present += [SampledValue(path=path, row_group=group, value=row) for row in rows]
        absent += [SampledValue(path=path, row_group=group, value=value) for value in beside]
    absent = [it for it in absent if not counter.has(it.value)]
    # Shuffled together with their origins: the first few must not all be of one row group.
    chance.shuffle(present)
    chance.shuffle(absent)
    return LookupValues(
        present=tuple(present[:count]),
        absent=tuple(absent[:count]),
        distinct=counter.estimate(sample),
    )


def _origins(sample: TableSample, chance: random.Random) -> list[tuple[str, int]]:
    """Return random row groups. One with more rows is chosen more often."""
    groups = [(path, group, rows) for path, group, rows in sample.groups() if rows]
    if len(groups) <= _ORIGINS:
        return [(path, group) for path, group, _ in groups]
    # Efraimidis and Spirakis: weighted, without replacement.
    keyed = sorted(groups, key=lambda it: chance.random() ** (1 / it[2]), reverse=True)
    return [(path, group) for path, group, _ in keyed[:_ORIGINS]]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The values of rows: ``rows`` has, for each row, the index of its value in ``entries``.

    For a column with a dictionary, ``entries`` is the dictionary. Without one, ``rows`` is a range.
    So this takes little memory: a file of 4 KB may have gigabytes of rows.
    """

    entries: pa.Array = field(repr=False)
    rows: NDArray[np.integer] | range = field(repr=False)

    @classmethod
    def of(cls, values: pa.ChunkedArray) -> _Rows:
        """Return the rows that can be looked up, without NaN and very long values."""
        if pa.types.is_dictionary(values.type):
            found = values.unify_dictionaries().combine_chunks()
            # pyarrow returns chunks where they cannot be one array.
            found = found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
            entries, rows = _plain(found.dictionary), found.indices.to_numpy()
            return cls(entries, rows[_can_be_looked_up(entries)[rows]])
        found = values.combine_chunks()
        if isinstance(found, pa.ChunkedArray):
            chunks = found.chunks
            found = pa.concat_arrays(chunks) if chunks else pa.array([], found.type)
        entries = _plain(found)
        can_be_asked = _can_be_looked_up(entries)
        if not can_be_asked.all():
            entries = entries.filter(pa.array(can_be_asked))
        return cls(entries, range(len(entries)))

    def distinct(self) -> pa.Array:
        """Return each value of the rows once."""
        if isinstance(self.rows, range):
            return self.entries.unique()
        is_used = np.zeros(len(self.entries), np.bool_)
        is_used[self.rows] = True
        return self.entries.filter(pa.array(is_used)).unique()

    def value(self, row: int) -> pa.Scalar:
        """Return the value of one row."""
        return self.entries[int(self.rows[row])]


def _plain(found: pa.Array) -> pa.Array:
    """Return the values in a type that can be sorted."""
    if isinstance(found, pa.ExtensionArray):
        found = found.storage
    # Arrow neither sorts nor compares numbers of 16 bits.
    return found.cast(pa.float32()) if pa.types.is_float16(found.type) else found


def _can_be_looked_up(entries: pa.Array) -> NDArray[np.bool_]:
    """Return which values are finite and short. A file of 13 KB may hold a value of 400 MiB."""
    # Each value that is drawn is copied, and dozens are.
    found = np.ones(len(entries), np.bool_)
    if pa.types.is_floating(entries.type):
        found = pc.is_finite(entries)
    elif pa.types.is_fixed_size_binary(entries.type):
        found[:] = entries.type.byte_width <= _LONGEST
    elif _is_text(entries.type):
        found = pc.less_equal(pc.binary_length(entries), _LONGEST)
    return np.asarray(found, np.bool_)


def _absent(ascending: pa.Array, row: pa.Scalar, chance: random.Random) -> pa.Scalar | None:
    """Return a value near ``row`` that no row has, or None if none was found.

    It lies between the smallest and the largest value.
    """
    if len(ascending) < 2:
        return None
    place = pc.index(ascending, row).as_py()
    make = _texts if _is_text(ascending.type) else _numbers
    return next(make(ascending, place, chance), None)


def _is_text(type_: pa.DataType) -> bool:
    return any(is_kind(type_) for is_kind in _TEXT_TYPES)


def _numbers(ascending: pa.Array, place: int, chance: random.Random) -> Iterator[pa.Scalar]:
    """Yield numbers between two neighbouring values: those at ``place`` first, then random ones."""
    last = len(ascending) - 2
    is_whole = not pa.types.is_floating(ascending.type)
    if is_whole and _number(ascending[-1]) - _number(ascending[0]) <= last + 1:
        # Consecutive integers leave none between two neighbours.
        return
    for start in (min(place, last), *(chance.randint(0, last) for _ in range(_TRIES))):
        low, high = _number(ascending[start]), _number(ascending[start + 1])
        between = _between(low, high, ascending.type, chance)
        if between is not None:
            yield _scalar(between, ascending.type)


def _number(scalar: pa.Scalar) -> int | float:
    """Return a number with the same order as the value. A decimal becomes its unscaled integer."""
    if pa.types.is_floating(scalar.type):
        return float(scalar.as_py())
    if pa.types.is_decimal(scalar.type):
        with localcontext(prec=_DIGITS):
            return int(scalar.as_py().scaleb(scalar.type.scale))
    return int(scalar.value if hasattr(scalar, "value") else scalar.as_py())


def _between(
    low: float, high: float, type_: pa.DataType, chance: random.Random
) -> int | float | None:
    if isinstance(low, int) and isinstance(high, int):
        return chance.randrange(low + 1, high) if high - low > 1 else None
    middle = float(pa.scalar((low + high) / 2).cast(type_, safe=False).as_py())
    return middle if low < middle < high else None


def _scalar(number: float, type_: pa.DataType) -> pa.Scalar:
    if pa.types.is_decimal(type_):
        with localcontext(prec=_DIGITS):
            return pa.scalar(Decimal(number).scaleb(-type_.scale), type_)
    if pa.types.is_temporal(type_):
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.scalar(number, width).cast(type_)
    return pa.scalar(number, type_)


def _texts(ascending: pa.Array, place: int, chance: random.Random) -> Iterator[pa.Scalar]:
    """Yield texts like the one at ``place``, with one character changed or added."""
    type_, like = ascending.type, _text(ascending[place])
    least, greatest = _bytes(_text(ascending[0])), _bytes(_text(ascending[-1]))
    for attempt in range(_TRIES):
        text = _changed(like, chance, longer=attempt % 2 == 1)
        if least < _bytes(text) < greatest:
            scalar = pa.scalar(text, type_) if _fits(text, type_) else None
            if scalar is not None and pc.index(ascending, scalar).as_py() < 0:
                yield scalar


def _can_be_asked(row: pa.Scalar) -> bool:
    """Return whether the value can be in a condition. A text that is not UTF-8 cannot."""
    is_named_text = pa.types.is_string(row.type) or pa.types.is_large_string(row.type)
    return not is_named_text or isinstance(_text(row), str)


def _text(scalar: pa.Scalar) -> str | bytes:
    """Return the text or bytes of a value.

    A text that is not UTF-8, as files may have it, is returned as bytes.
    """
    try:
        found: str | bytes = scalar.as_py()
    except UnicodeDecodeError:
        found = scalar.as_buffer().to_pybytes()
    return found


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def _fits(text: str | bytes, type_: pa.DataType) -> bool:
    return not pa.types.is_fixed_size_binary(type_) or len(text) == type_.byte_width


def _changed(text: str | bytes, chance: random.Random, *, longer: bool) -> str | bytes:
    """Return a similar text: one character is replaced by another of its kind, or one is added."""
    if isinstance(text, bytes):
        if not text or longer:
            return text + bytes([chance.randrange(256)])
        place = chance.randrange(len(text))
        return text[:place] + bytes([chance.randrange(256)]) + text[place + 1 :]
    if not text or longer:
        return text + chance.choice("0123456789abcdefghijklmnopqrstuvwxyz")
    place = chance.randrange(len(text))
    kind = next((kind for kind in _KINDS if text[place] in kind), _KINDS[-1])
    return text[:place] + chance.choice(kind) + text[place + 1 :]


class _DistinctCounter:
    """Counts distinct values by row group and in all of them, and extrapolates to the table."""

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._together: list[pa.Array] = []
        self._bytes = 0

    def add(self, distinct: pa.Array) -> None:
        """Count the distinct values of one row group."""
        self._counts.append(len(distinct))
        if not self._together or self._bytes + distinct.nbytes <= _COUNTED_BYTES:
            self._together.append(distinct)
            self._bytes += distinct.nbytes

    def has(self, value: pa.Scalar) -> bool:
        """Return whether one of the row groups counted so far has the value."""
        return any(pc.index(distinct, value).as_py() >= 0 for distinct in self._together)

    def estimate(self, sample: TableSample) -> DistinctValues:
        """Return the number of distinct values in a row group, and an estimate for the table."""
        if not self._counts:
            return DistinctValues(row_group=0, table=0)
        mean = sum(self._counts) / len(self._counts)
        merged = len(pa.chunked_array(self._together).unique())
        count = len(self._together)
        alone = sum(self._counts[:count]) / count
        # U(n) = alone * n ** growth: 0 where all row groups have the same values, 1 where others.
        growth = math.log(merged / alone) / math.log(count) if count > 1 else 1.0
        table = mean * sample.row_group_count ** min(1.0, max(0.0, growth))
        if count == sample.row_group_count:
            table = merged
        return DistinctValues(row_group=round(mean), table=min(round(table), sample.rows))
