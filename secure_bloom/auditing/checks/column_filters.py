"""Check a column chunk's Bloom filter: it exists, is encrypted, undamaged, useful and right.

Zeros are a case of their own: a filter must have both 0.0 and -0.0, or neither, or its column must
have no zero.  Filters hash bits, but engines find 0.0 equal to -0.0.  The statistics show that a
column has a zero if its smallest or largest value is zero. Otherwise only the values show it.
"""

from __future__ import annotations

import math
import struct
from contextlib import suppress

from secure_bloom.auditing.checks.filter_search import LONGEST_HEADER, is_plain_filter
from secure_bloom.auditing.checks.subjects import (
    ChunkSubject,
    FileSubject,
    Findings,
    FooterSubject,
    ZeroTally,
)
from secure_bloom.auditing.rules import Rule
from secure_bloom.auditing.rules.filter_rules import (
    FILTER_CROWDED,
    FILTER_DAMAGED,
    FILTER_IMPOSSIBLE,
    FILTER_IN_CLEAR,
    FILTER_LENGTH_ABSENT,
    FILTER_MISSING,
    FILTER_NOT_AUTHENTIC,
    FILTER_ONE_ZERO,
    FILTER_SATURATED,
    FILTER_WRONG,
)
from secure_bloom.auditing.rules.unchecked_rules import (
    UNCHECKED_FILE,
    UNCHECKED_VALUES,
    UNCHECKED_ZEROS,
)
from secure_bloom.bloom.entries import forms
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import StoredBloomFilter, read_bloom_filter
from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from secure_bloom.parquet.dictionary_pages import claims_full_dictionary
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.schema import Leaf, require_filterable
from secure_bloom.parquet.structures.metadata import PageHeader, Type
from secure_bloom.parquet.structures.records import measured_record
from secure_bloom.storage import is_object_uri

#: A filter may have this many times the requested probability.  The formula of other writers gives
#: filters that miss the request 1.15 times at 10 %, and 10 times at 0.001 %.
_FAR = 4.0
#: Types whose bounds are values.  Some writers cut longer texts; zeros of floats have two signs.
_LONGEST_BOUND = {Type.INT32: 4, Type.INT64: 8, Type.BYTE_ARRAY: 7, Type.FIXED_LEN_BYTE_ARRAY: 16}
#: The most bytes of filters that are read of one file: no honest file has as many.
MOST_FILTERS = 256 * 1024 * 1024
#: A filter that says "maybe" to every second absent value is useless, whatever was requested.
_USELESS = 0.5
#: A filter may have one zero by chance, by the bits of other values.  If that is less likely than
#: this, it is a finding.
_CHANCE = 1e-6
#: A value sets at most this number of bits, one in each word of a block.
_BITS = 8
#: The values of a chunk of at most this size are always read to explain the bits of a filter.
_FEW_BYTES = 1024 * 1024
#: The header of a dictionary page is in its first bytes.
_PAGE_HEADER = 64
#: Values that a filter may have beyond those of its column: both zeros, and forms of NaN.
_EXTRA = 8
_FORMATS = {Type.FLOAT: "<f", Type.DOUBLE: "<d"}


def check_filter(subject: ChunkSubject) -> Findings:
    """Yield all findings about the filter that can be made with the keys."""
    meta_data = subject.meta_data
    if meta_data is None:
        return
    offset = meta_data.bloom_filter_offset
    if offset is None:
        yield from _check_missing(subject)
    elif subject.is_encrypted and _is_in_clear(subject, offset):
        yield subject.finding(FILTER_IN_CLEAR, "the column is encrypted, its filter is in clear")
    else:
        if meta_data.bloom_filter_length is None:
            yield subject.finding(FILTER_LENGTH_ABSENT, "the filter's length is not stored")
        if subject.chunk is not None:
            yield from _check_content(subject, subject.chunk)


def _check_missing(subject: ChunkSubject) -> Findings:
    if subject.wanted.bloom is None:
        return
    try:
        require_filterable(subject.leaf)
    except UnsupportedFeatureError as error:
        yield subject.finding(FILTER_IMPOSSIBLE, error.message)
        return
    yield subject.finding(FILTER_MISSING, "the policy asks for a filter, there is none")


def _is_in_clear(subject: ChunkSubject, offset: int) -> bool:
    file = subject.of.file
    room = file.size - offset
    if offset < 0 or room <= 0:
        return False
    return is_plain_filter(file.read_at(offset, min(LONGEST_HEADER, room)), room)


def _check_content(subject: ChunkSubject, chunk: Chunk) -> Findings:
    if subject.of.tally.filter_bytes >= MOST_FILTERS:
        yield subject.finding(
            UNCHECKED_FILE, "the filter was not read: those before it are too large together"
        )
        return
    try:
        stored = read_bloom_filter(subject.of.file, chunk)
    except (IntegrityError, FormatError) as error:
        yield subject.finding(_broken(error), error.message)
        return
    if stored is not None:
        subject.of.tally.filter_bytes += stored.length
        yield from _check_saturated(subject, stored)
        yield from _check_crowded(subject, chunk, stored)
        yield from _check_bounds(subject, chunk, stored)
        yield from check_zeros(subject, chunk, stored.filter)
        if subject.of.request.check_values:
            yield from _check_values(subject, chunk, stored)


def _broken(error: IntegrityError | FormatError) -> Rule:
    is_altered = isinstance(error, IntegrityError)
    return FILTER_NOT_AUTHENTIC if is_altered else FILTER_DAMAGED


def _check_saturated(subject: ChunkSubject, stored: StoredBloomFilter) -> Findings:
    fpp, wanted = stored.filter.fpp(), subject.wanted.bloom
    if fpp > _USELESS:
        yield subject.finding(
            FILTER_SATURATED, "the filter lets more than half of absent values pass"
        )
    elif (
        wanted is not None
        and fpp > _FAR * wanted.fpp
        # Unless the policy itself bounds the size.
        and 2 * stored.filter.byte_count <= wanted.max_bytes
    ):
        yield subject.finding(
            FILTER_SATURATED,
            f"the policy says fpp {wanted.fpp:.3g}, the filter has more than {_FAR:.0f} times that",
        )


def _check_crowded(subject: ChunkSubject, chunk: Chunk, stored: StoredBloomFilter) -> Findings:
    """Check that a filter has no bits that the values of its chunk do not set."""
    request = subject.of.request
    # What an encrypted filter holds is for those who have the column's key, who need not have that
    # of another column.  One that lets most values pass is a finding already.
    is_checked = request.has_secrets and (request.check_values or not subject.is_encrypted)
    if not is_checked or stored.filter.fpp() > _USELESS:
        return
    bits = round(stored.filter.fill() * 8 * stored.filter.byte_count)
    most = _BITS * (forms(chunk.leaf) * _value_count(subject, chunk) + _EXTRA)
    if bits > most:
        yield subject.finding(
            FILTER_CROWDED, "the filter has more bits set than the values of the column can set"
        )
    elif are_read(subject.of, chunk):
        yield from _check_bits(subject, chunk, stored)


def are_read(subject: FileSubject, chunk: Chunk) -> bool:
    """Return whether the values of a chunk are read, to compare the filter's bits with them."""
    meta_data, file = chunk.meta_data, subject.file
    if subject.request.check_values:
        return True
    # In a store each look is a request.
    if is_object_uri(file.path):
        return False
    return meta_data.total_uncompressed_size <= _FEW_BYTES or claims_full_dictionary(meta_data)


def _check_bits(subject: ChunkSubject, chunk: Chunk, stored: StoredBloomFilter) -> Findings:
    # Imported here: the other checks need no numpy.
    from secure_bloom.auditing.checks.sampled_values import has_foreign_bits

    try:
        is_foreign = has_foreign_bits(subject.of.file, chunk, stored.filter)
    except SecureBloomError as error:
        # Without `check_values` nobody asked for the values.
        if subject.of.request.check_values:
            yield subject.finding(UNCHECKED_VALUES, error.message)
        return
    if is_foreign:
        yield subject.finding(
            FILTER_CROWDED, "the filter has bits set that no value of the column sets"
        )


def _value_count(subject: ChunkSubject, chunk: Chunk) -> int:
    """Return an upper bound of the number of different values in a chunk."""
    meta_data, file = chunk.meta_data, subject.of.file
    nulls = None if meta_data.statistics is None else meta_data.statistics.null_count
    count = meta_data.num_values - max(0, min(nulls or 0, meta_data.num_values))
    # In a store each look is a request.
    is_looked_at = subject.of.request.check_values or not is_object_uri(file.path)
    if is_looked_at and claims_full_dictionary(meta_data):
        start, length = chunk_extent(chunk)
        # The header alone: the column is in clear, and its dictionary may be large.
        head = file.read_at(start, min(_PAGE_HEADER, length))
        with suppress(FormatError):
            header = measured_record(PageHeader, head)[0].dictionary_page_header
            if header is None or header.num_values < 0:
                return count
            return min(count, header.num_values)
    return count


def _check_bounds(subject: ChunkSubject, chunk: Chunk, stored: StoredBloomFilter) -> Findings:
    """Check that the filter has the smallest and the largest value.

    The filter of another column would most likely have neither.
    """
    statistics, type_ = chunk.meta_data.statistics, subject.leaf.type
    if statistics is None or type_ not in _LONGEST_BOUND:
        return
    bounds = [it for it in (statistics.min_value, statistics.max_value) if it is not None]
    if any(len(bound) > _LONGEST_BOUND[type_] for bound in bounds):
        return
    if bounds and not any(map(stored.filter.check, bounds)):
        yield subject.finding(
            FILTER_WRONG,
            "the filter has neither the smallest nor the largest value of its column: it may be "
            "that of another column",
        )


def _check_values(subject: ChunkSubject, chunk: Chunk, stored: StoredBloomFilter) -> Findings:
    # Imported here: the other checks need no pyarrow.
    from secure_bloom.auditing.checks.sampled_values import check_values

    yield from check_values(subject, chunk, stored.filter)


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
