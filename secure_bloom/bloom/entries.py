"""Turn a column's physical values, as arrays, into the entries of its filter.

A filter hashes bits, but engines compare values, and some equal values have different bits:

- 0.0 and -0.0: if one occurs, both are inserted;
- NaN: if any occurs, the quiet NaN of either sign is inserted too.  Spark finds NaN equal to NaN,
  and looks ``x = NaN`` up in the filter by one of those two.

Some values are inserted in a second form, because some reader looks for that form:

- a FLOAT16 also as the four bytes of a FLOAT: otherwise DuckDB (seen in 2.0.0) would lose every
  row, because it looks for these bytes instead of the format's;
- a BYTE_ARRAY decimal also without the leading bytes that only repeat its sign: readers look
  numbers up in their shortest form;
- a FIXED_LEN_BYTE_ARRAY decimal also as 16 bytes: DataFusion before 55, and deltalake 1.1 to 1.6.2
  with it, look for these, whatever the width of the column;
- a binary value also as the text that DuckDB shows for it: DuckDB before 2.0 looks for this text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeGuard

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom import xxh64
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.plain_pages import as_arrays
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import Binary, EncodedValues, Entries, is_float16


def forms(leaf: Leaf) -> int:
    """Return the number of forms in which a value of ``leaf`` is inserted into its filter."""
    return 1 if _second_form_of(leaf) is None else 2


def insert_entries(
    bloom_filter: SplitBlockBloomFilter, leaf: Leaf, values: Entries | EncodedValues
) -> None:
    """Insert physical values of ``leaf`` in all their forms."""
    if isinstance(values, EncodedValues):
        # Only a value that has no other form is inserted by its own bits.
        if not (leaf.type in (Type.FLOAT, Type.DOUBLE) or forms(leaf) > 1):
            bloom_filter.insert_plain(values.content, values.count, values.width or 0)
            return
        values = as_arrays(leaf, values)
    entries = _with_nans(_with_both_zeros(values))
    _insert(bloom_filter, entries)
    second_form = _second_form_of(leaf)
    if second_form is not None:
        for more in second_form(entries):
            _insert(bloom_filter, more)


def count_missed(
    bloom_filter: SplitBlockBloomFilter, values: Entries, *, both_zeros: bool = True
) -> int:
    """Return the number of ``values`` that the filter lacks.

    Only the form that the format prescribes is looked up. With ``both_zeros``, both zeros are
    looked up if one occurs.  Other writers' filters need not have NaN.
    """
    chunks = hashes_of(_without_nans(_with_both_zeros(values) if both_zeros else values))
    return sum(int((~bloom_filter.check_hashes(chunk)).sum()) for chunk in chunks)


def _insert(bloom_filter: SplitBlockBloomFilter, entries: Entries) -> None:
    if isinstance(entries, Binary):
        bloom_filter.insert_binary(entries.offsets, entries.data, prefix=entries.prefix)
    else:
        bloom_filter.insert_fixed(entries)


def hashes_of(entries: Entries) -> Iterator[NDArray[np.uint64]]:
    """Yield the hashes of values, some at a time."""
    if isinstance(entries, Binary):
        return xxh64.binary_chunks(entries.offsets, entries.data, prefix=entries.prefix)
    return xxh64.fixed_chunks(entries)


def _second_form_of(leaf: Leaf) -> Callable[[Entries], Iterator[Entries]] | None:
    """Return the function that gives values of the column in their second form, if there is one."""
    if is_float16(leaf):
        return _as_floats
    is_fixed = leaf.type is Type.FIXED_LEN_BYTE_ARRAY
    if leaf.logical.kind is Kind.DECIMAL and is_fixed:
        return None if leaf.width == _INT128 else _as_int128
    if leaf.logical.kind is Kind.DECIMAL and leaf.type is Type.BYTE_ARRAY:
        return _without_padding
    return _as_shown_text if leaf.logical.kind is Kind.BYTES else None


def _as_floats(entries: Entries) -> Iterator[Entries]:
    # Exact: every FLOAT16 is a FLOAT.
    yield _fixed(entries).astype("<f4")


#: The width of the decimals of DataFusion.
_INT128: Final = 16


def _as_int128(entries: Entries) -> Iterator[Entries]:
    """Yield big-endian numbers of one width as numbers of 16 bytes."""
    numbers = _fixed(entries)
    width = numbers.dtype.itemsize
    stored = np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, width)
    wide = np.empty((len(numbers), _INT128), np.uint8)
    wide[:] = np.where(stored[:, :1] < 0x80, 0x00, 0xFF)
    # A wider number has leading bytes that only repeat its sign.
    kept = min(width, _INT128)
    wide[:, _INT128 - kept :] = stored[:, width - kept :]
    yield wide.view(f"V{_INT128}").ravel()


#: How DuckDB shows a byte: printable ASCII as it is, but for quotes and backslashes.
_SHOWN: Final = [
    bytes([byte]) if 32 <= byte < 127 and byte not in b"\\'\"" else b"\\x%02X" % byte
    for byte in range(256)
]
_SHOWN_LENGTHS: Final = np.array([len(text) for text in _SHOWN], np.uint8)
#: For each byte the four bytes that show it, as one number.
_SHOWN_BYTES: Final = np.frombuffer(b"".join(text.ljust(4) for text in _SHOWN), np.uint32)
#: For each number of bytes, which of four bytes these are.
_SHOWN_PLACES: Final = np.frombuffer(
    b"".join(bytes([1] * length).ljust(4, b"\0") for length in range(5)), np.uint32
)
#: About how many bytes are shown at a time: what is made of them stays in the cache.
_PIECE: Final = 64 * 1024


def _as_shown_text(entries: Entries) -> Iterator[Entries]:
    """Yield binary values as DuckDB shows them, such as ``ab\\x00`` for three bytes."""
    values = entries if isinstance(entries, Binary) else _as_binary(entries)
    first = 0
    while first < len(values):
        end = values.offsets[first] + _PIECE
        # At least one value, however long it is.
        last = max(first + 1, int(np.searchsorted(values.offsets, end, "right")) - 1)
        shown = _shown(values, first, last)
        if shown is not None:
            yield shown
        first = last


def _shown(values: Binary, first: int, last: int) -> Binary | None:
    """Return DuckDB's texts of values that it shows in another form, or None if there are none."""
    offsets = values.offsets[first : last + 1].astype(np.int64)
    data = values.data[offsets[0] : offsets[-1]]
    offsets -= offsets[0]
    lengths = _SHOWN_LENGTHS[data]
    for byte in range(values.prefix):
        lengths[offsets[:-1] + byte] = 0
    ends = _ends(lengths)[offsets]
    sizes = np.diff(offsets)
    is_changed = np.diff(ends) != sizes - values.prefix
    if not is_changed.any():
        return None
    if not is_changed.all():
        # The others are in the filter already.
        kept = np.repeat(is_changed, sizes)
        data, lengths = data[kept], lengths[kept]
        ends = np.concatenate([[0], np.cumsum(np.diff(ends)[is_changed])])
    places = _SHOWN_PLACES[lengths]
    return Binary(offsets=ends, data=_SHOWN_BYTES[data].view(np.uint8)[places.view(np.bool_)])


def _ends(lengths: NDArray[np.uint8]) -> NDArray[np.int64]:
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _as_binary(entries: NDArray[Any]) -> Binary:
    width = entries.dtype.itemsize
    data = np.ascontiguousarray(entries).view(np.uint8)
    return Binary(offsets=np.arange(len(entries) + 1) * width, data=data)


def _fixed(entries: Entries) -> NDArray[Any]:
    if isinstance(entries, Binary):
        raise TypeError("values of one width are wanted")
    return entries


def _without_padding(entries: Entries) -> Iterator[Entries]:
    """Yield big-endian numbers without leading bytes that only repeat the sign."""
    numbers = entries
    if not isinstance(numbers, Binary):
        raise TypeError("values of any length are wanted")
    offsets, data = numbers.offsets, numbers.data
    kept = np.ones(len(data), np.bool_)
    # Values of PLAIN pages follow their lengths, which are no part of the number.
    for byte in range(numbers.prefix):
        kept[offsets[:-1] + byte] = False
    starts, ends = offsets[:-1] + numbers.prefix, offsets[1:]
    while len(starts):
        # The last byte stays, because a number has at least one.
        has_two = ends - starts > 1
        starts, ends = starts[has_two], ends[has_two]
        sign_of_next = np.where(data[starts + 1] < 0x80, 0x00, 0xFF)
        is_padded = data[starts] == sign_of_next
        starts, ends = starts[is_padded], ends[is_padded]
        kept[starts] = False
        starts = starts + 1
    kept_before = np.concatenate([[0], np.cumsum(kept)])
    yield Binary(offsets=kept_before[offsets], data=data[kept])


def _with_both_zeros(values: Entries) -> Entries:
    # Only where one occurs: else each filter of numbers would say "maybe" of zero.
    if _is_floating(values) and (values == 0).any():
        return np.concatenate([values, np.array([0.0, -0.0], dtype=values.dtype)])
    return values


def _with_nans(entries: Entries) -> Entries:
    """Return the entries, with the quiet NaN of either sign added if there is any NaN."""
    if not _is_floating(entries) or not np.isnan(entries).any():
        return entries
    quiet = np.array([np.nan], dtype=entries.dtype)
    # Java makes NaN without a sign, x86 with one, and their hashes differ.
    return np.concatenate([entries, np.copysign(quiet, 1), np.copysign(quiet, -1)])


def _without_nans(entries: Entries) -> Entries:
    return entries[~np.isnan(entries)] if _is_floating(entries) else entries


def _is_floating(entries: Entries) -> TypeGuard[NDArray[Any]]:
    return not isinstance(entries, Binary) and entries.dtype.kind == "f"
