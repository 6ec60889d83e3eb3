"""Record batches as lines of CSV and JSON, column by column, in Arrow's own loops.

    for lines in CsvForm(...).lines(batch): file.write(lines)
    for lines in json_lines(batch): file.write(lines)

The texts are those of :mod:`.python_texts`.  Types and values that Arrow writes in another form are
written one by one by that module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from secure_bloom.parquet.texts import SECOND, TICKS
from secure_bloom.reading.rows.export import python_values
from secure_bloom.reading.rows.python_texts import json_text, text_of
from secure_bloom.reports.text import without_commands, written_out

_TEXT = pa.large_string()
#: Rows that are written at a time.
_ROWS = 16 * 1024
#: First characters of formulas in some spreadsheet.
_FORMULA = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
#: What may be a command to a CI runner.
_COMMANDS = "::|##|\x7f"
#: What JSON has between quotes, but for quotes and backslashes: ASCII, Latin, Cyrillic, Japanese,
#: Chinese and Korean characters that every version of Unicode prints.
_PLAIN = (
    r"^[ -~\x{A1}-\x{AC}\x{AE}-\x{17F}\x{400}-\x{52F}\x{3041}-\x{3096}\x{30A1}-\x{30FA}"
    r"\x{4E00}-\x{9FA5}\x{AC00}-\x{D7A3}]*$"
)
_PLAIN_BYTES = bytes(byte for byte in range(32, 127) if byte not in b'"\\')
#: Doubles whose digits Arrow writes as Python does, but for ".0" after whole numbers.
_LEAST, _MOST = 1e-4, 1e16
#: The days of the years that Python has, from 0001-01-01 to 9999-12-31, and microseconds of a day.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY = 86_400_000_000
_DAY_SECONDS = 86_400
#: Days whose nanoseconds fit 64 bits. Longer durations are written one by one.
_MOST_DAYS = 99_999


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """CSV (RFC 4180) or TSV: a null is an empty field, an empty text is two quotes.

    ``for_spreadsheets``: a text that a spreadsheet would run gets an apostrophe. ``on_terminal``:
    characters that would act on a terminal are escaped.
    """

    for_spreadsheets: bool = False
    on_terminal: bool = False
    separator: str = ","

    def header(self, names: Sequence[str]) -> str:
        """Return the first line."""
        row = pa.RecordBatch.from_arrays([pa.array([name]) for name in names], list(names))
        return "".join(self.lines(row))

    def lines(self, batch: pa.RecordBatch) -> Iterator[str]:
        """Yield the rows. Raises FormatError for a text that is not UTF-8."""
        for part in _parts(batch):
            fields = [
                self._fields(name, part.column(i)) for i, name in enumerate(part.schema.names)
            ]
            rows = _together(*fields, by=self.separator)
            yield _joined(rows)

    def _fields(self, name: str, column: pa.Array) -> pa.Array:
        texts = plain_texts(name, column)
        if self.for_spreadsheets and (_has_texts(column.type) or _may_be_far(column.type)):
            harmless = _together("'", texts)
            texts = pc.if_else(pc.match_substring_regex(texts, _FORMULA), harmless, texts)
        if self.on_terminal:
            shown = [None if text is None else written_out(text) for text in texts.to_pylist()]
            texts = pa.array(shown, _TEXT)
        elif pa.types.is_primitive(column.type):
            # Numbers and times need no quotes.
            return texts.fill_null("")
        return _quoted(texts, self.separator).fill_null("")


def json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield the rows as JSON lines. Raises FormatError for a text that is not UTF-8."""
    for part in _parts(batch):
        texts = [json_texts(name, part.column(i)) for i, name in enumerate(part.schema.names)]
        yield _joined(_without_commands(_objects(part.schema.names, texts)))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, _ROWS):
        part = batch.slice(start, _ROWS)
        for name, column in zip(part.schema.names, part.columns, strict=True):
            _check_texts(name, column)
        yield part


def _together(*parts: pa.Array | str, by: str = "") -> pa.Array:
    """Return the texts of each row as one text, or null if one of them is null."""
    texts = [
        pa.scalar(part, _TEXT) if isinstance(part, str) else part.cast(_TEXT) for part in parts
    ]
    return pc.binary_join_element_wise(*texts, pa.scalar(by, _TEXT))


def _joined(rows: pa.Array) -> str:
    """Return the rows with a line feed after each."""
    ended = _together(rows, "\n")
    whole = pc.binary_join(
        pa.LargeListArray.from_arrays([0, len(ended)], ended), pa.scalar("", _TEXT)
    )
    text: str = whole[0].as_py()
    return text


def _quoted(texts: pa.Array, separator: str) -> pa.Array:
    """Return the fields of CSV, those in quotes that need them."""
    content = _content(texts)
    marks = (separator.encode(), b'"', b"\r", b"\n")
    if not any(mark in content for mark in marks) and _shortest(texts) > 0:
        return texts
    doubled = pc.replace_substring(texts, '"', '""') if b'"' in content else texts
    is_quoted = pc.match_substring_regex(texts, f'^$|[{separator}"\r\n]')
    return pc.if_else(is_quoted, _together('"', doubled, '"'), texts)


def _content(texts: pa.Array) -> bytes:
    """Return the bytes of all texts: to search them once is faster than to search each text."""
    if not pa.types.is_large_binary(texts.type):
        texts = texts.cast(_TEXT)
    _, offsets, data = texts.buffers()
    if data is None:
        return b""
    ends = np.frombuffer(offsets, np.int64)
    start, end = ends[texts.offset], ends[texts.offset + len(texts)]
    return bytes(memoryview(data)[start:end])


def _shortest(texts: pa.Array) -> int:
    shortest: int | None = pc.min(pc.binary_length(texts)).as_py()
    return 1 if shortest is None else shortest


def _has_texts(of: pa.DataType) -> bool:
    if pa.types.is_dictionary(of):
        return _has_texts(of.value_type)
    if isinstance(of, pa.BaseExtensionType):
        return _has_texts(of.storage_type)
    return bool(
        pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of)
    )


def _may_be_far(of: pa.DataType) -> bool:
    """Return whether Python may lack a type for the values, so that they are texts to it."""
    if pa.types.is_duration(of):
        return str(of.unit) == "ns"
    return bool(pa.types.is_date(of) or pa.types.is_timestamp(of))


def _without_commands(texts: pa.Array) -> pa.Array:
    content = _content(texts)
    if not any(mark in content for mark in (b"::", b"##", b"\x7f")):
        return texts
    found = pc.match_substring_regex(texts, _COMMANDS)
    return _replaced(texts, found, texts, without_commands)


def plain_texts(name: str, array: pa.Array) -> pa.Array:
    """Return the text of each value, as a condition takes it, and null for a null."""
    of = array.type
    if pa.types.is_nested(of):
        texts = _without_commands(json_texts(name, array))
        return pc.if_else(array.is_valid(), texts, pa.scalar(None, _TEXT))
    if pa.types.is_dictionary(of):
        return plain_texts(name, array.dictionary).take(array.indices)
    write = next((write for accepts, write in _WRITERS if accepts(of)), None)
    found = None if write is None else write(array)
    return _by_python(name, array, text_of) if found is None else found.cast(_TEXT)


def json_texts(name: str, array: pa.Array) -> pa.Array:
    """Return the JSON text of each value, and ``null`` for a null."""
    texts = _json_values(name, array).fill_null("null")
    return pc.if_else(array.is_valid(), texts, "null") if array.null_count else texts


def _json_values(name: str, array: pa.Array) -> pa.Array:
    of = array.type
    if pa.types.is_dictionary(of):
        return json_texts(name, array.dictionary).take(array.indices)
    if pa.types.is_struct(of) and len({field.name for field in of}) == of.num_fields > 0:
        members = [json_texts(name, member) for member in array.flatten()]
        return _objects([field.name for field in of], members)
    if pa.types.is_map(of):
        offsets, start, length = _offsets(array)
        keys, values = (
            json_texts(name, part.slice(start, length)) for part in (array.keys, array.items)
        )
        pairs = _together("[", keys, ", ", values, "]")
        return _lists(offsets, pairs)
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        offsets, start, length = _offsets(array)
        return _lists(offsets, json_texts(name, array.values.slice(start, length)))
    is_extension = isinstance(array, pa.ExtensionArray) and of != pa.uuid()
    if pa.types.is_nested(of) or is_extension:
        return _by_python(name, array, json_text)
    if pa.types.is_integer(of) or pa.types.is_boolean(of):
        return array.cast(_TEXT)
    return _json_leaves(name, array)


def _by_python(name: str, array: pa.Array, form: Callable[[Any], str]) -> pa.Array:
    values = python_values(name, array)
    return pa.array([None if value is None else form(value) for value in values], _TEXT)


def _json_leaves(name: str, array: pa.Array) -> pa.Array:
    texts = plain_texts(name, array)
    quoted = _together('"', texts, '"')
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.is_finite(array), texts, quoted)
    if not _has_texts(array.type):
        return quoted
    if not _content(texts).translate(None, _PLAIN_BYTES):
        return quoted
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    is_plain = pc.match_substring_regex(texts, _PLAIN)
    return _replaced(_together('"', escaped, '"'), pc.invert(is_plain), texts, json_text)


def _replaced(
    texts: pa.Array, mask: pa.Array, values: pa.Array, form: Callable[[Any], str]
) -> pa.Array:
    """Return the texts with those of ``mask`` written by Python."""
    mask = mask.fill_null(False)
    made = [form(value) for value in values.filter(mask).to_pylist()]
    return pc.replace_with_mask(texts, mask, pa.array(made, texts.type)) if made else texts


def _objects(names: Sequence[str], members: Sequence[pa.Array]) -> pa.Array:
    parts: list[pa.Array | str] = []
    for name, texts in zip(names, members, strict=True):
        parts += [f"{', ' if parts else '{'}{json_text(name)}: ", texts]
    return _together(*parts, "}")


def _offsets(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Return the offsets of lists from 0, and the start and number of their items."""
    offsets = array.offsets.cast(pa.int64())
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, start), start, end - start


def _lists(offsets: pa.Array, items: pa.Array) -> pa.Array:
    """Return each list of JSON texts as one text."""
    lists = pa.LargeListArray.from_arrays(offsets, items)
    return _together("[", pc.binary_join(lists, pa.scalar(", ", _TEXT)), "]")


def _as_they_are(array: pa.Array) -> pa.Array:
    return array


def _floats(array: pa.Array) -> pa.Array:
    doubles = array.cast(pa.float64())
    texts = doubles.cast(_TEXT)
    size = pc.abs(doubles)
    usual = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, _LEAST), pc.less(size, _MOST)))
    others = pc.or_(pc.invert(usual), pc.match_substring(texts, "e"))
    is_whole = pc.invert(pc.match_substring(texts, "."))
    if pc.any(is_whole).as_py():
        texts = pc.if_else(is_whole, _together(texts, ".0"), texts)
    return _replaced(texts, others, doubles, text_of)


def _decimals(array: pa.Array) -> pa.Array:
    texts = array.cast(_TEXT)
    # Arrow writes small numbers with an exponent.
    return _replaced(texts, pc.match_substring(texts, "E"), array, text_of)


def _is_far(array: pa.Array, low: int, high: int) -> bool:
    found = pc.min_max(array)
    least, most = found["min"].as_py(), found["max"].as_py()
    return least is not None and (least < low or most > high)


def _days(array: pa.Array) -> pa.Array | None:
    days = array.cast(pa.date32()) if pa.types.is_date64(array.type) else array
    return None if _is_far(days.cast(pa.int32()), _FIRST_DAY, _LAST_DAY) else days.cast(_TEXT)


def _timestamps(array: pa.Array) -> pa.Array | None:
    unit, zone = array.type.unit, array.type.tz
    if zone not in (None, "UTC"):
        return None
    local = array.cast(pa.timestamp(unit)) if zone else array
    if unit in ("s", "ms"):
        try:
            local = local.cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            return None
    ends = (_FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1)
    if unit != "ns" and _is_far(local.cast(pa.int64()), *ends):
        return None
    texts = pc.replace_substring(local.cast(_TEXT), " ", "T", max_replacements=1)
    if unit == "ns":
        return _together(texts, "Z" if zone else "")
    return _together(_short(texts), "+00:00" if zone else "")


def _times(array: pa.Array) -> pa.Array | None:
    if array.type.unit == "ns":
        return array.cast(_TEXT)
    return _short(array.cast(pa.time64("us")).cast(_TEXT))


def _short(texts: pa.Array) -> pa.Array:
    """Return texts of times without six zeros at their end, as Python writes them."""
    whole = pc.ends_with(texts, ".000000")
    return pc.if_else(whole, pc.utf8_slice_codeunits(texts, 0, -7), texts)


def _hexadecimal(array: pa.Array) -> pa.Array:
    binary = array.cast(pa.large_binary())
    ends = np.frombuffer(binary.buffers()[1], np.int64)[binary.offset :][: len(binary) + 1]
    # Of this part alone: its buffers are those of the whole batch.
    digits = _content(binary).hex().encode()
    texts = _together("hex:", _texts_of(digits, (ends - ends[:1]) * 2))
    return pc.if_else(binary.is_valid(), texts, pa.scalar(None, _TEXT))


def _uuids(array: pa.Array) -> pa.Array:
    content = _content(array.storage.cast(pa.large_binary()).fill_null(bytes(16)))
    digits = np.frombuffer(content.hex().encode(), np.uint8).reshape(-1, 32)
    # 8-4-4-4-12 digits, with hyphens between.
    texts = np.insert(digits, (8, 12, 16, 20), ord("-"), axis=1)
    found = _texts_of(texts.tobytes(), np.arange(len(array) + 1) * 36)
    return pc.if_else(array.is_valid(), found, pa.scalar(None, _TEXT))


def _texts_of(content: bytes, ends: NDArray[np.int64]) -> pa.Array:
    """Return the texts that lie in ``content`` between one offset and the next."""
    offsets = pa.py_buffer(ends.astype(np.int64))
    return pa.Array.from_buffers(_TEXT, len(ends) - 1, [None, offsets, pa.py_buffer(content)])


def _durations(array: pa.Array) -> pa.Array | None:
    second = SECOND // TICKS[array.type.unit]
    ticks = array.cast(pa.int64())
    days = _MOST_DAYS * _DAY_SECONDS * second
    if _is_far(ticks, -days, days):
        return None
    size = pc.abs(ticks)
    seconds = pc.divide(size, second)
    fraction = pc.multiply(_rest(size, second), TICKS[array.type.unit])
    digits = pc.utf8_rtrim(pc.utf8_lpad(fraction.cast(_TEXT), 9, "0"), "0")
    end = pc.if_else(pc.equal(fraction, 0), "", _together(".", digits))
    has_seconds = pc.or_(pc.not_equal(_rest(seconds, 60), 0), pc.not_equal(fraction, 0))
    clock = _together(
        _counted(_rest(pc.divide(seconds, 3600), 24), "H"),
        _counted(_rest(pc.divide(seconds, 60), 60), "M"),
        pc.if_else(has_seconds, _together(_rest(seconds, 60), end, "S"), ""),
    )
    clock = pc.if_else(pc.equal(clock, ""), "", _together("T", clock))
    sign = pc.if_else(pc.less(ticks, 0), "-", "")
    texts = _together(sign, "P", _counted(pc.divide(seconds, _DAY_SECONDS), "D"), clock)
    return pc.if_else(pc.equal(ticks, 0), "PT0S", texts)


def _rest(numbers: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))


def _counted(numbers: pa.Array, unit: str) -> pa.Array:
    """Return numbers with their unit, and nothing for zero."""
    return pc.if_else(pc.equal(numbers, 0), "", _together(numbers, unit))


#: How the values of a type are written; None if Python must write them.
_WRITERS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array | None]]] = [
    (pa.types.is_string, _as_they_are),
    (pa.types.is_large_string, _as_they_are),
    (pa.types.is_integer, lambda array: array.cast(_TEXT)),
    (pa.types.is_boolean, lambda array: array.cast(_TEXT)),
    (pa.types.is_null, lambda array: array.cast(_TEXT)),
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_date, _days),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_time, _times),
    (pa.types.is_duration, _durations),
    (lambda of: of == pa.uuid(), _uuids),
    (pa.types.is_binary, _hexadecimal),
    (pa.types.is_large_binary, _hexadecimal),
    (pa.types.is_fixed_size_binary, _hexadecimal),
]


@functools.cache
def _is_checked(of: pa.DataType) -> bool:
    """Return whether values of the type may be wrong texts."""
    if pa.types.is_dictionary(of):
        return _is_checked(of.value_type)
    if pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of):
        return True
    return any(_is_checked(of.field(at).type) for at in range(of.num_fields))


def _check_texts(name: str, array: pa.Array) -> None:
    """Raise FormatError if a text of the column is not UTF-8, which many writers do not check."""
    if not _is_checked(array.type):
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        # The error of Arrow quotes the text.
        python_values(name, array)
