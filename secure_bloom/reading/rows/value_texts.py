"""Record batches as lines of CSV and JSON, column by column, in Arrow's own loops.

    for lines in CsvForm(...).lines(batch): file.write(lines)
    for lines in json_lines(batch): file.write(lines)

The texts are those of :mod:`.python_texts`.  Types and values that Arrow writes in another form are
written one by one by that module.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
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
#: Zones of instants whose local time is UTC.
_UTC = (None, "UTC")
#: Arrow writes a space between a day and a time, ISO 8601 a T.
_SPACE_TO_T = bytes.maketrans(b" ", b"T")
#: Doubles whose digits Arrow writes as Python does, but for ".0" after whole numbers.
_LEAST, _MOST = 1e-4, 1e10
#: The days of the years that Python has, from 0001-01-01 to 9999-12-31, and seconds of a day.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
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

    def header(self, names: Sequence[str]) -> bytes:
        """Return the first line."""
        row = pa.RecordBatch.from_arrays([pa.array([name]) for name in names], list(names))
        return b"".join(self.lines(row))

    def lines(self, batch: pa.RecordBatch) -> Iterator[pa.Buffer]:
        """Yield the rows in UTF-8. Raises FormatError for a text that is not UTF-8."""
        for part in _parts(batch):
            fields: list[pa.Array | str] = []
            for name, column in zip(part.schema.names, part.columns, strict=True):
                fields += [self._fields(name, column), self.separator]
            yield _data(_together(*fields[:-1], "\n", null_handling="replace"))

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
            return texts
        return _quoted(texts, self.separator)


def json_lines(batch: pa.RecordBatch) -> Iterator[pa.Buffer]:
    """Yield the rows as JSON lines in UTF-8. Raises FormatError for a text that is not UTF-8."""
    for part in _parts(batch):
        texts = [json_texts(name, part.column(i)) for i, name in enumerate(part.schema.names)]
        yield _data(_without_commands(_objects(part.schema.names, texts, end="}\n")))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, _ROWS):
        yield batch.slice(start, _ROWS)


def _together(*parts: pa.Array | str, null_handling: str = "emit_null") -> pa.Array:
    """Return the texts of each row joined into one, or null if one of them is null."""
    texts = [
        pa.scalar(part, _TEXT) if isinstance(part, str) else part.cast(_TEXT) for part in parts
    ]
    return pc.binary_join_element_wise(*texts, pa.scalar("", _TEXT), null_handling=null_handling)


def _quoted(texts: pa.Array, separator: str) -> pa.Array:
    """Return texts as fields of CSV. A field that needs quotes is in quotes."""
    content = _content(texts)
    marks = [mark for mark in (separator, '"', "\r", "\n") if mark.encode() in content]
    tests = [pc.match_substring(texts, mark) for mark in marks]
    if _shortest(texts) == 0:
        tests.append(pc.equal(pc.binary_length(texts), 0))
    if not tests:
        return texts
    is_quoted = functools.reduce(pc.or_, tests).fill_null(False)
    found = texts.filter(is_quoted)
    doubled = pc.replace_substring(found, '"', '""') if '"' in marks else found
    return pc.replace_with_mask(texts, is_quoted, _together('"', doubled, '"').cast(texts.type))


def _data(texts: pa.Array) -> pa.Buffer:
    """Return the bytes of all texts, one after the other."""
    if not pa.types.is_large_binary(texts.type):
        texts = texts.cast(_TEXT)
    _, offsets, data = texts.buffers()
    if data is None:
        return pa.py_buffer(b"")
    ends = np.frombuffer(offsets, np.int64)
    start, end = ends[texts.offset], ends[texts.offset + len(texts)]
    return data.slice(start, end - start)


def _content(texts: pa.Array) -> bytes:
    """Return the bytes of all texts. Searching them once is faster than searching each text."""
    content: bytes = _data(texts).to_pybytes()
    return content


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
    """Return whether Python's own types may be too small for the values, which then are texts."""
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
    if _has_texts(of):
        _check_texts(name, array)
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


def _check_texts(name: str, array: pa.Array) -> None:
    """Raise FormatError if a text of the column is not UTF-8, which many writers do not check."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        # The error of Arrow quotes the text.
        python_values(name, array)


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
    content = _content(texts).decode()
    marks = [mark for mark in '\\"' if mark in content]
    if not content.isprintable():
        marks += [char for char in set(content) if not char.isprintable()]
    if not marks:
        return quoted
    for mark in marks:
        texts = pc.replace_substring(texts, mark, json.dumps(mark)[1:-1])
    return _together('"', texts, '"')


def _replaced(
    texts: pa.Array, mask: pa.Array, values: pa.Array, form: Callable[[Any], str]
) -> pa.Array:
    """Return the texts. Python writes the texts that ``mask`` selects."""
    mask = mask.fill_null(False)
    made = [form(value) for value in values.filter(mask).to_pylist()]
    return pc.replace_with_mask(texts, mask, pa.array(made, texts.type)) if made else texts


def _objects(names: Sequence[str], members: Sequence[pa.Array], *, end: str = "}") -> pa.Array:
    parts: list[pa.Array | str] = []
    for name, texts in zip(names, members, strict=True):
        parts += [f"{', ' if parts else '{'}{json_text(name)}: ", texts]
    return _together(*parts, end)


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
    is_whole = pc.equal(pc.floor(doubles), doubles)
    if pc.any(is_whole).as_py():
        texts = pc.if_else(is_whole, _together(texts, ".0"), texts)
    size = pc.abs(doubles)
    usual = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, _LEAST), pc.less(size, _MOST)))
    others = pc.invert(usual).fill_null(False)
    if not (found := doubles.filter(others).to_pylist()):
        return texts
    # Python writes a list faster than its items one by one.
    return pc.replace_with_mask(texts, others, pa.array(repr(found)[1:-1].split(", "), _TEXT))


def _decimals(array: pa.Array) -> pa.Array:
    texts = array.cast(_TEXT)
    if b"E" not in _content(texts):
        return texts
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
    ticks = array.cast(pa.int64())
    if unit == "ns":
        # Instants in nanoseconds are written in UTC, whatever their zone.
        return _together(_instants(ticks, unit), "Z" if zone else "")
    day = _DAY_SECONDS * SECOND // TICKS[unit]
    # Local years are years of Python too if a day is left at both ends.
    ends = (_FIRST_DAY, _LAST_DAY + 1) if zone in _UTC else (_FIRST_DAY + 2, _LAST_DAY - 1)
    if _is_far(ticks, ends[0] * day, ends[1] * day - 1):
        return None
    if zone in _UTC:
        return _together(_instants(ticks, unit), "+00:00" if zone else "")
    days = pc.divide(pc.subtract(ticks, _FIRST_DAY * day), day)
    offsets, suffixes = _offsets_of(zone).on(days.fill_null(-_FIRST_DAY).to_numpy())
    local = pc.add(ticks, pc.multiply(offsets, day // _DAY_SECONDS))
    texts = _together(_instants(local, unit), suffixes)
    return _replaced(texts, pc.and_(texts.is_null(), array.is_valid()), array, text_of)


class _Offsets:
    """The offsets of a zone from UTC, by days of UTC. Python is asked once for each day."""

    def __init__(self, zone: str) -> None:
        self._zone = zone
        #: For each day the place of its offset in ``_found``. Nothing is found for the place 0 of
        #: days that nobody asked for yet, and for 1 of days on which the offset changes.
        self._places = np.zeros(_LAST_DAY - _FIRST_DAY + 1, np.uint16)
        self._found: list[tuple[int | None, str | None]] = [(None, None)] * 2

    def on(self, days: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
        """Return offsets in seconds and their texts, null for days on which the offset changes.

        Days are counted from 0001-01-01.
        """
        for day in np.unique(days[self._places[days] == 0]).tolist():
            self._places[day] = self._place(day)
        places = pa.array(self._places[days])
        seconds, texts = zip(*self._found, strict=True)
        return pa.array(seconds, pa.int64()).take(places), pa.array(texts, _TEXT).take(places)

    def _place(self, day: int) -> int:
        found = self._at(day)
        if found != self._at(day + 1):
            return 1
        if found not in self._found:
            self._found.append(found)
        return self._found.index(found)

    def _at(self, day: int) -> tuple[int, str]:
        seconds = (day + _FIRST_DAY) * _DAY_SECONDS
        at = pa.scalar(seconds, pa.timestamp("s", self._zone)).as_py()
        return at.utcoffset() // timedelta(seconds=1), at.isoformat()[len("2024-01-01T00:00:00") :]


_offsets_of = functools.cache(_Offsets)


def _instants(ticks: pa.Array, unit: str) -> pa.Array:
    """Return timestamps as texts of date and time in UTC, without a zone."""
    if unit == "ms":
        ticks, unit = pc.multiply(ticks, 1000), "us"
    texts = ticks.cast(pa.timestamp(unit)).cast(_TEXT)
    valid, offsets, data = texts.buffers()
    if data is not None:
        # One of a few spaces: of all texts at once.
        data = pa.py_buffer(data.to_pybytes().translate(_SPACE_TO_T))
    texts = pa.Array.from_buffers(_TEXT, len(texts), [valid, offsets, data])
    return _short(texts) if unit == "us" else texts


def _times(array: pa.Array) -> pa.Array | None:
    if array.type.unit == "ns":
        return array.cast(_TEXT)
    return _short(array.cast(pa.time64("us")).cast(_TEXT))


def _short(texts: pa.Array) -> pa.Array:
    """Return texts of times without the six zeros at their end, as Python writes them."""
    if b".000000" not in _content(texts):
        return texts
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
    content = array.storage.buffers()[1].slice(16 * array.offset, 16 * len(array))
    digits = np.frombuffer(content.to_pybytes().hex().encode(), np.uint8).reshape(-1, 32)
    # 8-4-4-4-12 digits, with hyphens between.
    texts = np.full((len(array), 36), ord("-"), np.uint8)
    for at, (start, end) in enumerate(itertools.pairwise((0, 8, 12, 16, 20, 32))):
        texts[:, start + at : end + at] = digits[:, start:end]
    found = _texts_of(texts, np.arange(len(array) + 1) * 36)
    return pc.if_else(array.is_valid(), found, pa.scalar(None, _TEXT))


def _texts_of(content: bytes | NDArray[np.uint8], ends: NDArray[np.int64]) -> pa.Array:
    """Return the texts in ``content`` between consecutive offsets of ``ends``."""
    offsets = pa.py_buffer(ends.astype(np.int64))
    return pa.Array.from_buffers(_TEXT, len(ends) - 1, [None, offsets, pa.py_buffer(content)])


def _durations(array: pa.Array) -> pa.Array | None:
    second = SECOND // TICKS[array.type.unit]
    ticks = array.cast(pa.int64())
    most = _MOST_DAYS * _DAY_SECONDS * second
    if _is_far(ticks, -most, most):
        return None
    size = pc.abs(ticks)
    seconds = pc.divide(size, second)
    days = pc.divide(seconds, _DAY_SECONDS)
    fraction = pc.subtract(size, pc.multiply(seconds, second))
    has_fraction = pc.not_equal(fraction, 0)
    clock = pc.subtract(seconds, pc.multiply(days, _DAY_SECONDS))
    clock = pc.add(clock, pc.if_else(has_fraction, _DAY_SECONDS, 0))
    parts = [
        pc.if_else(pc.less(ticks, 0), "-P", "P"),
        _counted(days, "D"),
        _clocks().take(clock),
    ]
    if pc.any(has_fraction).as_py():
        nanos = pc.multiply(fraction, TICKS[array.type.unit]).cast(pa.time64("ns")).cast(_TEXT)
        digits = pc.ascii_rtrim(pc.utf8_slice_codeunits(nanos, len("00:00:00")), "0")
        parts.append(pc.if_else(has_fraction, _together(digits, "S"), ""))
    return pc.if_else(pc.equal(ticks, 0), "PT0S", _together(*parts))


@functools.cache
def _clocks() -> pa.Array:
    """Return the ISO 8601 text of each second of a day, as part of a duration.

    First come the complete texts, then the same texts without the unit S, so that a fraction of a
    second can be added to these.
    """
    seconds = pa.array(np.arange(_DAY_SECONDS))
    second = _rest(seconds, 60)
    minutes = _counted(_rest(pc.divide(seconds, 60), 60), "M")
    before = _together("T", _counted(pc.divide(seconds, 3600), "H"), minutes)
    whole = _together(before, _counted(second, "S"))
    whole = pc.if_else(pc.equal(whole, "T"), "", whole)
    return pa.concat_arrays([whole, _together(before, second)])


def _rest(numbers: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))


def _counted(numbers: pa.Array, unit: str) -> pa.Array:
    """Return each number with its unit. Zero becomes an empty text."""
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
