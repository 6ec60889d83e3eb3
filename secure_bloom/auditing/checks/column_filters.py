"""Check a column chunk's Bloom filter: it exists, is encrypted, undamaged, useful and right."""

from __future__ import annotations

from secure_bloom.auditing.checks.filter_search import HEADER_SIZE, is_plain_filter
from secure_bloom.auditing.checks.signed_zeros import check_zeros
from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings
from secure_bloom.auditing.rules import Rule
from secure_bloom.auditing.rules.filter_rules import (
    FILTER_DAMAGED,
    FILTER_IMPOSSIBLE,
    FILTER_IN_CLEAR,
    FILTER_LENGTH_ABSENT,
    FILTER_MISSING,
    FILTER_NOT_AUTHENTIC,
    FILTER_SATURATED,
    FILTER_WRONG,
)
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_FILE
from secure_bloom.bloom.stored import StoredBloomFilter, read_bloom_filter
from secure_bloom.errors import FormatError, IntegrityError, UnsupportedFeatureError
from secure_bloom.parquet.footer.opened import Chunk
from secure_bloom.parquet.schema import require_filterable
from secure_bloom.parquet.structures.metadata import Type

#: A filter may have this many times the requested probability.  The formula of other writers gives
#: filters that miss the request 1.15 times at 10 %, and 10 times at 0.001 %.
_FAR = 4.0
#: The most bytes of filters that are read of one file: no honest file has as many.
#: Types whose bounds are values.  Some writers cut longer texts; zeros of floats have two signs.
_LONGEST_BOUND = {Type.INT32: 4, Type.INT64: 8, Type.BYTE_ARRAY: 7, Type.FIXED_LEN_BYTE_ARRAY: 16}
MOST_FILTERS = 256 * 1024 * 1024
#: A filter that says "maybe" to every second absent value is useless, whatever was requested.
_USELESS = 0.5


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
    return is_plain_filter(file.read_at(offset, min(HEADER_SIZE, room)), room)


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
    from secure_bloom.auditing.checks.sampled_values import check_sample

    yield from check_sample(subject, chunk, stored.filter)
