"""The texts in which a typed value may be written, and the digests of a text.

A form is a function from an Arrow array to arrays of texts.  The texts that a CSV writer makes come
first, because columns in clear are searched as these texts.  Case, marks and white space do not
matter: :mod:`secure_bloom.kernels.words` leaves them out of both values and searched texts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

#: The orders of dates: Y, y, m, d, b and B as `strftime` has them, n and e without zeros before.
_IN_DIGITS: Final = ("dmY", "emY", "enY", "mdY", "ndY", "neY", "Yne", "ymd")
_WITH_NAMES: Final = ("dbY", "ebY", "bdY", "beY", "dBY", "eBY", "BdY", "BeY")
_ENGLISH: Final = (
    "january february march april may june july august september october november december"
)
#: The months of languages, and what they write between day, month and year.
_MONTHS: Final = {
    (b"", b""): (
        "januar februar märz april mai juni juli august september oktober november dezember",  # codespell:ignore  # noqa: E501
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "  # noqa: ISC004
        "dicembre",
        "januari februari maart april mei juni juli augustus september oktober november december",  # codespell:ignore  # noqa: E501
    ),
    (b"de", b"de"): (
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ),
}
#: The digests without a salt that are looked for: name -> its bytes.  OpenSSL may lack one.
DIGESTS: Final = {
    name: size
    for name, size in (
        ("md5", 16),
        ("sha1", 20),
        ("sha224", 28),
        ("sha256", 32),
        ("sha384", 48),
        ("sha512", 64),
        ("sha512_256", 32),
        ("sha3_256", 32),
        ("blake2b", 64),
    )
    if name in hashlib.algorithms_available
}
#: Seeds of XXH64: that of Spark's function `xxhash64`, and none.
_SEEDS: Final = (42, 0)
XXH64_SIZE: Final = 8


def plain_texts(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the values of an array as texts, without nulls; nothing for booleans and nulls.

    Members of structures, items of lists and entries of dictionaries are values of their own.
    """
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from plain_texts(array.storage)
    elif pa.types.is_dictionary(kind):
        yield from plain_texts(array.dictionary)
    elif pa.types.is_struct(kind):
        for member in array.flatten():
            yield from plain_texts(member)
    elif pa.types.is_map(kind):
        yield from plain_texts(array.keys)
        yield from plain_texts(array.items)
    elif _is_list(kind):
        if kind.value_type in (pa.uint8(), pa.int8()):
            yield _bytes_of(array)
        yield from plain_texts(array.flatten())
    elif not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        yield _texts(array.drop_null())


def _bytes_of(array: pa.Array) -> pa.Array:
    """Return lists of bytes as texts."""
    values = (bytes(it & 0xFF for it in row if it is not None) for row in array.to_pylist() if row)
    return pa.array(values, pa.large_binary())


def other_notations(array: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield two equally long arrays: :func:`plain_texts`, and the values in another notation.

    A text is empty if its value has no other notation.
    """
    for leaf in _leaves(array):
        for is_of, further in _FURTHER:
            if is_of(leaf.type):
                values = leaf.drop_null().unique()
                plain = _texts(values)
                yield from ((plain, texts) for texts in further(values))
        if _is_text(leaf.type):
            texts = leaf.drop_null().cast(pa.large_binary())
            yield from _without_zeros(texts)
            yield from _composed(texts)


def backwards(array: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the values without letters as :func:`other_notations` does, read backwards.

    The words of all other texts are found in both directions.
    """
    for texts in plain_texts(array):
        values = texts.unique()
        values = values.filter(pc.match_substring_regex(values, _ONLY_NUMBERS))
        yield values, pc.binary_reverse(values)


#: Digits, and marks of ASCII.
_ONLY_NUMBERS: Final = "^[ -@]*[0-9][ -@]*$"


def day_numbers(array: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the dates of an array as :func:`other_notations` does, as days of the epoch."""
    for leaf in _leaves(array):
        if _is_date(leaf.type):
            values = leaf.drop_null().unique()
            days = values.cast(pa.date32()).cast(pa.int32())
            yield _texts(values), _texts(days)


def _without_zeros(values: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the numbers with leading zeros among texts, and the same without these zeros."""
    starts = values.filter(pc.starts_with(values, b"0")).to_pylist()
    stripped = {it: it.lstrip(b"0") for it in starts}
    found = [it for it, rest in stripped.items() if rest[:1].isdigit()]
    if found:
        kind = pa.large_binary()
        yield pa.array(found, kind), pa.array([stripped[it] for it in found], kind)


def _composed(values: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield the texts that are not in the normal form NFKC, and the same in this form."""
    is_ascii = pc.string_is_ascii(values.view(pa.large_string()))
    wide = [
        it.decode("utf-8", "surrogateescape")
        for it in values.filter(pc.invert(is_ascii)).to_pylist()
    ]
    found = [it for it in wide if not unicodedata.is_normalized("NFKC", it)]
    if found:
        yield _encoded(found), _encoded([unicodedata.normalize("NFKC", it) for it in found])


def written_bytes(array: pa.Array) -> Iterator[pa.Array]:
    """Yield bytes that are no text as hexadecimal and as Base64: decoded, they have few words."""
    for leaf in _leaves(array):
        if _is_bytes(leaf.type):
            values = [it for it in leaf.drop_null().to_pylist() if not _is_utf8(it)]
            for write in (binascii.hexlify, base64.b64encode):
                yield pa.array(map(write, values), pa.large_binary())


def moments(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the dates and times of an array as numbers, without nulls. Dates count days."""
    for leaf in _leaves(array):
        if pa.types.is_temporal(leaf.type) and not pa.types.is_duration(leaf.type):
            days = leaf.cast(pa.date32()) if pa.types.is_date(leaf.type) else leaf
            width = pa.int32() if days.type.bit_width == 32 else pa.int64()
            yield days.drop_null().cast(width).cast(pa.int64())


def are_days(array: pa.Array) -> bool:
    """Return whether all dates and times of an array are dates, which are numbers of days."""
    return all(pa.types.is_date(it.type) for it in _leaves(array) if pa.types.is_temporal(it.type))


def digests(texts: Iterable[bytes], sizes: Collection[int]) -> Iterator[bytes]:
    """Yield the digests of the texts, of every kind of digest that has one of ``sizes`` in bytes.

    A text is digested unchanged, in small letters, in capitals, and without spaces around it.
    """
    written = {it for text in texts for it in _spellings(text)}
    for kind, size in DIGESTS.items():
        if size in sizes:
            # A copy takes half as long as a new object.
            empty = hashlib.new(kind, usedforsecurity=False)
            for text in written:
                state = empty.copy()
                state.update(text)
                yield state.digest()
    for seed in _SEEDS if XXH64_SIZE in sizes else ():
        yield from (xxhash.xxh64_intdigest(it, seed).to_bytes(8, "little") for it in written)


def _spellings(text: bytes) -> tuple[bytes, ...]:
    if text.isascii():
        return text, text.lower(), text.upper(), text.strip()
    letters = text.decode("utf-8", "surrogateescape")
    cases = (it.encode("utf-8", "surrogateescape") for it in (letters.lower(), letters.upper()))
    return text, *cases, text.strip()


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of single values inside an array."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _leaves(array.storage)
    elif pa.types.is_dictionary(kind):
        yield from _leaves(array.dictionary)
    elif pa.types.is_struct(kind):
        for member in array.flatten():
            yield from _leaves(member)
    elif pa.types.is_map(kind):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif _is_list(kind):
        yield from _leaves(array.flatten())
    else:
        yield array


def _is_text(kind: pa.DataType) -> bool:
    views = (pa.string_view(), pa.binary_view())
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), *views)


def _is_bytes(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return kind == pa.binary_view() or any(is_of(kind) for is_of in kinds)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_list(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_of(kind) for is_of in kinds)


def _texts(array: pa.Array) -> pa.Array:
    kind = array.type
    if _is_text(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(kind):
        # Few are texts: they are searched as they are, and as a UUID or a key is written.
        values = array.to_pylist()
        return pa.array(
            [it if it.isascii() else it.hex().encode() for it in values], pa.large_binary()
        )
    if pa.types.is_floating(kind):
        return _float_texts(array)
    return _binary(array.cast(pa.string()))


def _float_texts(array: pa.Array) -> pa.Array:
    """Return floats as texts: whole numbers without a fraction."""
    values = array.cast(pa.float64())
    is_whole = pc.and_(
        pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), pa.scalar(2.0**63))
    )
    is_whole = pc.fill_null(is_whole, fill_value=False)
    whole = pc.if_else(is_whole, values, pa.scalar(0.0)).cast(pa.int64()).cast(pa.string())
    texts = pc.if_else(is_whole, whole, values.cast(pa.string()))
    return _binary(texts)


def _binary(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.large_binary())


def _encoded(texts: list[str]) -> pa.Array:
    return pa.array([it.encode("utf-8", "surrogateescape") for it in texts], pa.large_binary())


def _joined(*parts: pa.Array | bytes | None) -> pa.Array:
    """Join texts, which are of large_binary, and bytes."""
    return pc.binary_join_element_wise(
        *(pa.scalar(it, pa.large_binary()) if isinstance(it, bytes) else it for it in parts),
        pa.scalar(b"", pa.large_binary()),
    )


def _number_forms(values: pa.Array) -> Iterator[pa.Array]:
    """Yield whole numbers as decimals with one and two places, and with an exponent."""
    texts = values.cast(pa.string())
    yield from (_joined(_binary(texts), zeros) for zeros in (b"0", b"00"))
    yield from _exponents(texts.to_pylist())


def _exponents(texts: list[str]) -> Iterator[pa.Array]:
    """Yield large, small and long numbers as Java and Python write doubles: 1.2E7, 1.2e+07.

    Whole ones that end in zeros come with them too: 1.23456780e+08.
    """
    digits = [it.partition("e")[0].replace(".", "").strip("-0") for it in texts]
    powers = [Decimal(it or 0).adjusted() for it in texts]
    # Java writes other numbers without an exponent, and few digits with one are in any text.
    kept = [
        it if len(it) > 7 or not -3 <= power < 7 else ""
        for it, power in zip(digits, powers, strict=True)
    ]
    short = [it and it + "0" * (len(it) == 1) for it in kept]
    ends = [
        f"{it:0<{power + 1}}" if it and len(it) <= power < _MOST_ZEROS else ""
        for it, power in zip(kept, powers, strict=True)
    ]
    for mantissas in (short, ends):
        for width in (1, 2):
            pairs = zip(mantissas, powers, strict=True)
            yield _encoded([f"{it}e{abs(power):0{width}d}" if it else "" for it, power in pairs])


#: Numbers with more digits are not written with all their zeros.
_MOST_ZEROS: Final = 20


def _decimal_forms(values: pa.Array) -> Iterator[pa.Array]:
    """Yield decimals without zeros at the end, and with two places."""
    parts = [f"{value:f}".partition(".") for value in values.to_pylist()]
    pairs = [(whole, fraction.rstrip("0")) for whole, _, fraction in parts]
    shortest = [f"{whole}.{fraction}" if fraction else whole for whole, fraction in pairs]
    yield _encoded(shortest)
    yield _encoded([f"{whole}.{fraction or '0'}" for whole, fraction in pairs])
    yield _encoded([f"{whole}.{fraction:0<2s}" for whole, fraction in pairs])
    yield from _exponents(shortest)


def _float_forms(values: pa.Array) -> Iterator[pa.Array]:
    """Yield floats as decimals: in full, and with one and two places where nothing is rounded."""
    # The shortest digits of a float of 32 bits are fewer than those of the same double.
    shortest = values.cast(pa.string())
    texts = _float_texts(values).cast(pa.string())
    is_whole = pc.match_substring_regex(texts, "^-?[0-9]+$")
    has_place = pc.match_substring_regex(shortest, "[.][0-9]$")
    one_more = pc.if_else(has_place, _joined(_binary(shortest), b"0"), b"")
    for zeros, others in ((b"0", b""), (b"00", one_more)):
        yield pc.if_else(is_whole, _joined(_binary(texts), zeros), others)
    yield _binary(shortest)
    yield from _exponents(pc.if_else(pc.is_finite(values), shortest, "").to_pylist())


def _date_forms(values: pa.Array) -> Iterator[pa.Array]:
    days = values.cast(pa.timestamp("s"))
    parts = _date_parts(days)
    yield from (_joined(*map(parts.get, it)) for it in ("Ymd", *_IN_DIGITS, *_WITH_NAMES))
    yield from (_binary(pc.strftime(days, it)) for it in ("%GW%V%u", "%Y%j"))
    months = pc.subtract(pc.month(days), 1)
    for marks, languages in _MONTHS.items():
        for names in map(str.split, languages):
            month = _encoded(names).take(months)
            for before, after in {marks, (b"", b"")}:
                yield _joined(parts["e"], before, month, after, parts["Y"])
    yield _joined(parts["B"], parts["e"], _ORDINALS.take(pc.day(days)), parts["Y"])
    # A mark ends a date with a name before its time.
    yield from _times(days, days, parts, _IN_DIGITS)


def _ordinal(day: int) -> bytes:
    place = day % 10 if day % 10 <= 3 and day // 10 != 1 else 0
    return b"thstndrd"[2 * place : 2 * place + 2]


#: What English writes after the days of a month.
_ORDINALS: Final = pa.array(map(_ordinal, range(32)), pa.large_binary())


def _date_parts(seconds: pa.Array) -> dict[str, pa.Array]:
    """Return the parts of dates that :data:`_IN_DIGITS` and :data:`_WITH_NAMES` name."""
    year, month, day = (part(seconds) for part in (pc.year, pc.month, pc.day))
    names = pa.array(_ENGLISH.split()).take(pc.subtract(month, 1))
    parts = {
        "Y": year.cast(pa.string()), "n": month.cast(pa.string()), "e": day.cast(pa.string()),
        "y": _padded(pc.subtract(year, pc.multiply(pc.divide(year, 100), 100))),
        "m": _padded(month), "d": _padded(day),
        "B": names, "b": pc.utf8_slice_codeunits(names, 0, 3),
    }  # fmt: skip
    return {name: _binary(texts) for name, texts in parts.items()}


def _padded(numbers: pa.Array) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), 2, "0")


def _moment_forms(values: pa.Array) -> Iterator[pa.Array]:
    """Yield timestamps to the second, and as numbers of the epoch.

    A fraction and an offset such as +00:00 that follow are words of their own.
    """
    # Of UTC, also for columns with a time zone.
    seconds = values.cast(pa.timestamp("s"), safe=False)
    yield from _times(values, seconds, _date_parts(seconds), (*_IN_DIGITS, *_WITH_NAMES))


def _times(
    values: pa.Array, seconds: pa.Array, parts: dict[str, pa.Array], orders: Iterable[str]
) -> Iterator[pa.Array]:
    """Yield timestamps as ISO 8601 writes them, in other orders, and as numbers of the epoch."""
    yield _binary(seconds.cast(pa.string()))
    time = [_binary(_padded(part(seconds))) for part in (pc.hour, pc.minute, pc.second)]
    day = [parts[it] for it in "Ymd"]
    for iso in ([*day, b"T", *time], [*day, b"T", *time, b"Z"], [*day, *time, b"Z"]):
        yield _joined(*iso)
    yield from (_joined(*map(parts.get, order), *time) for order in orders)
    for unit in ("s", "ms", "us", values.type.unit):
        numbers = values.cast(pa.timestamp(unit), safe=False).cast(pa.int64())
        texts = _binary(numbers.cast(pa.string()))
        yield texts
        if unit == "us":
            # A cast to nanoseconds overflows in the year 2262.
            yield _joined(texts, b"000")


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind))


#: What has further notations -> the texts of these.
_Notations = Callable[[pa.Array], Iterator[pa.Array]]
_FURTHER: Final[tuple[tuple[Callable[[Any], bool], _Notations], ...]] = (
    (pa.types.is_integer, _number_forms),
    (pa.types.is_decimal, _decimal_forms),
    (pa.types.is_floating, _float_forms),
    (_is_date, _date_forms),
    (pa.types.is_timestamp, _moment_forms),
)
