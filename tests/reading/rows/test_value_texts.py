"""CSV and JSON lines made by Arrow are those made value by value in Python."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError
from secure_bloom.reading.rows.export import python_rows
from secure_bloom.reading.rows.python_texts import json_text, text_of
from secure_bloom.reading.rows.value_texts import CsvForm, json_lines

LONG = [10**9 + 1, -(10**9) - 500_000, 123_456_789_000, 10**12]
NUMBERS = [0, 1, -1, 127, -128]
REALS = [0.0, -0.0, 1.0, 0.1, 1e-4, 9.9e-5, 1e15, 1e16, 1.5e300, 5e-324, -2.5, float("inf")]
CHANCE = random.Random(7)
RANDOM = [
    CHANCE.choice((-1, 1)) * CHANCE.random() * 10 ** CHANCE.randint(-20, 25) for _ in range(5000)
]
TEXTS = ["", "a", 'quo"te', "a,b", "line\nfeed", "\r", "=1+1", "-2", "+3", "@x", "\t", "ÄÖ漢🎈"]
TEXTS += [
    "\x1b[31m",
    "\x7f",
    "::error::x",
    "a##vso[task]",
    "back\\slash",
    "\u200b",
    "null",
    "'",
    "\uff1d1",
]
INSTANTS = [datetime(2024, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1, 1, 1)]
INSTANTS += [datetime(9999, 12, 31, 23, 59, 59), datetime(2024, 6, 1, 1, 2, 3, 120_000)]
NEAR = [at for at in INSTANTS if 1700 < at.year < 2200]
#: Seconds near which an offset from UTC changes, or a day begins.
CHANGES = [-3_000_000_000, -2_422_054_408, 63_593_070, 828_234_000, 1_711_846_800, 2_500_000_000]
CHANGES += [86_400 * CHANCE.randint(-20_000, 60_000) for _ in range(50)]
COLUMNS: dict[str, pa.Array] = {
    **{str(of): pa.array([*NUMBERS[:4], None], of) for of in (pa.int8(), pa.int32(), pa.int64())},
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "bool": pa.array([True, False, None]),
    "null": pa.nulls(3),
    "double": pa.array([*REALS, float("nan"), None]),
    "float": pa.array([*REALS, float("nan"), None], pa.float32()),
    "random doubles": pa.array(RANDOM),
    "half": pa.array([0.0, 1.5, 0.1, None], pa.float16()),
    "decimal": pa.array([Decimal("1.20"), Decimal("0.00"), Decimal("-99.99"), None]),
    "small decimal": pa.array([Decimal("0E-10"), Decimal("1E-10"), None], pa.decimal128(20, 10)),
    "large decimal": pa.array([Decimal(10) ** 60, None], pa.decimal256(70, 2)),
    "text": pa.array([*TEXTS, None]),
    "large text": pa.array([*TEXTS, None], pa.large_string()),
    "text view": pa.array([*TEXTS, None], pa.string_view()),
    "category": pa.array([*TEXTS, None, "a"]).dictionary_encode(),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None])),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16), None], pa.binary(16))),
    "bytes": pa.array([b"", b"\x00\xff", None]),
    "large bytes": pa.array([b"", b"\x00\xff", None], pa.large_binary()),
    "fixed bytes": pa.array([b"ab", b"\x00\xff", None], pa.binary(2)),
    "date": pa.array([date(2024, 1, 1), date(1, 1, 1), date(9999, 12, 31), None]),
    "far date": pa.array([-1_000_000, 4_000_000, None], pa.date32()),
    "date64": pa.array([date(2024, 1, 1), None], pa.date64()),
    "time ms": pa.array([time(1, 2, 3), time(1, 2, 3, 4000), None], pa.time32("ms")),
    "time us": pa.array([time(1, 2, 3), time(1, 2, 3, 4), None], pa.time64("us")),
    "time ns": pa.array([1, 0, None], pa.time64("ns")),
    "duration": pa.array([timedelta(days=-1, hours=3), None], pa.duration("us")),
    **{
        f"durations in {unit}": pa.array([0, 1, -1, 60, 3599, -3600, 86_400, *LONG, None]).cast(
            pa.duration(unit)
        )
        for unit in ("s", "ms", "us", "ns")
    },
    "long durations": pa.array([2**62, -(2**63) + 1, None], pa.duration("us")),
    "no uuids": pa.nulls(3, pa.uuid()),
    "uuids": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([CHANCE.randbytes(16), None, CHANCE.randbytes(16)], pa.binary(16))
    ),
    "printed texts": pa.array(
        ['Zo\u00eb said "x"', "a\\b", "\u00adhidden", "\u3042\u4e00\uac00", None]
    ),
    "duration ns": pa.array([1, None], pa.duration("ns")),
    "far timestamp": pa.array([2**60, -(2**60), None], pa.timestamp("us")),
    "far seconds": pa.array([2**60, None], pa.timestamp("s")),
    **{
        f"timestamp {unit} {zone}": pa.array(
            [*(NEAR if unit == "ns" else INSTANTS), None], pa.timestamp("us")
        )
        .cast(pa.timestamp(unit), safe=False)
        .cast(pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC")
    },
    "zoned": pa.array([*NEAR, None], pa.timestamp("us", "Europe/Berlin")),
    **{
        f"changes of {zone} in {unit}": pa.array(
            [it for at in CHANGES for it in (at - 1, at, at + 1)] + [None], pa.int64()
        )
        .cast(pa.timestamp("s"))
        .cast(pa.timestamp(unit))
        .cast(pa.timestamp(unit, zone))
        for zone in ("Europe/Berlin", "Asia/Kolkata", "Africa/Monrovia", "-03:30", "Etc/UTC")
        for unit in ("s", "us")
    },
    "ends of time in a zone": pa.array(
        [
            *INSTANTS[:2],
            datetime(1, 1, 2, 3),
            datetime(1, 1, 3, 3),
            datetime(9999, 12, 29, 3),
            None,
        ],
        pa.timestamp("us", "Europe/Berlin"),
    ),
    "list": pa.array([[1, None], [], None, [2]]),
    "large list": pa.array([["a", 'b"'], [], None], pa.large_list(pa.string())),
    "fixed list": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
    "map": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int32())),
    "struct": pa.array(
        [
            {"a": 1, 'b"': "x", "c": [{"d": 0.5}, None], "e": Decimal("0.10"), "f": b"\x00"},
            {"a": None, 'b"': "::error::", "c": None, "e": None, "f": None},
            None,
        ]
    ),
    "instants in a list": pa.array([NEAR, None]),
    "reals in a struct": pa.array([{"x": x} for x in [*REALS, float("nan"), None]]),
    "empty struct": pa.array([{}, None], pa.struct([])),
}


def _by_value(batch: pa.RecordBatch, *, harmless: bool) -> Iterator[str]:
    for row in python_rows(batch):
        yield ",".join(_field(value, harmless=harmless) for value in row.values())


def _field(value: Any, *, harmless: bool) -> str:
    if value is None:
        return ""
    text = text_of(value)
    if (
        harmless
        and isinstance(value, str)
        and text[:1] in tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
    ):
        text = f"'{text}"
    return text if text and not set(text) & set(',"\r\n') else '"' + text.replace('"', '""') + '"'


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("part", [slice(None), slice(1, None), slice(1, 2), slice(0, 0)], ids=str)
def test_each_type_has_the_text_of_its_python_value(name: str, part: slice) -> None:
    column = COLUMNS[name]
    batch = pa.RecordBatch.from_arrays([column], ["x"])
    batch = batch.slice(
        part.start or 0, (len(column) if part.stop is None else part.stop) - (part.start or 0)
    )
    for harmless in (False, True):
        lines = b"".join(CsvForm(for_spreadsheets=harmless).lines(batch)).decode()
        wanted = "".join(f"{line}\n" for line in _by_value(batch, harmless=harmless))
        assert lines == wanted
    assert b"".join(json_lines(batch)).decode() == "".join(
        f"{json_text(row)}\n" for row in python_rows(batch)
    )


def test_columns_are_joined_and_rows_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secure_bloom.reading.rows.value_texts._ROWS", 2)
    batch = pa.RecordBatch.from_pydict(
        {"a,b": [1, None, 3], "t": ["x", None, "y,z"], "l": [[1], [], None]}
    )
    form = CsvForm()
    assert form.header(batch.schema.names) == b'"a,b",t,l\n'
    assert list(map(bytes, form.lines(batch))) == [b"1,x,[1]\n,,[]\n", b'3,"y,z",\n']
    assert list(map(bytes, json_lines(batch))) == [
        b'{"a,b": 1, "t": "x", "l": [1]}\n{"a,b": null, "t": null, "l": []}\n',
        b'{"a,b": 3, "t": "y,z", "l": null}\n',
    ]


@pytest.mark.parametrize("nested", [False, True])
def test_a_text_that_is_not_utf8_is_an_error_without_its_bytes(nested: bool) -> None:
    texts = pa.array([b"ok", b"\xffsecret"]).view(pa.string())
    column = pa.StructArray.from_arrays([texts], ["inner"]) if nested else texts
    batch = pa.RecordBatch.from_arrays([column], ["x"])
    for lines in (CsvForm().lines, json_lines):
        with pytest.raises(
            FormatError, match="column x: a value of the column is not UTF-8"
        ) as error:
            list(lines(batch))
        assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["zoned", "changes of Asia/Kolkata in s", "durations in ns", "emoji"]
)
def test_common_values_are_not_written_one_by_one(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    emoji = pa.array(["☃ said\n\t“x”", "🎈", None])
    batch = pa.RecordBatch.from_arrays([COLUMNS.get(name, emoji)], ["x"])
    module = "secure_bloom.reading.rows.value_texts"
    one_by_one: list[object] = []

    def values_of(_name: str, column: pa.Array) -> list[Any]:
        one_by_one.extend(column)
        return column.to_pylist()

    def text_of_one(value: object) -> str:
        one_by_one.append(value)
        return json_text(value)

    monkeypatch.setattr(f"{module}.python_values", values_of)
    assert b"".join(CsvForm().lines(batch)).count(b"\n") > 2
    monkeypatch.setattr(f"{module}.json_text", text_of_one)
    assert b"".join(json_lines(batch)).count(b"\n") == batch.num_rows
    # The name of the column is one.
    assert one_by_one == ["x"]


@pytest.mark.parametrize(
    ("months", "days", "hours", "text"),
    [
        (0, 0, 26, "P1DT2H"),
        (0, 0, -26, "-P1DT2H"),
        (0, 0, 24, "P1D"),
        (0, 0, -48, "-P2D"),
        (0, 0, 2_400_000, "P100000D"),
        (14, 3, 25, "P14M4DT1H"),
        (1, -3, -25, "P1M-4DT-1H"),
        (0, 1, -26, "-PT2H"),
        (0, 1, -24, "PT0S"),
        (-1, 0, 0, "-P1M"),
        (-1, -2, -25, "-P1M3DT1H"),
        (0, -3, 2, "P-3DT2H"),
        (0, 0, 0, "PT0S"),
        (0, 2, 0.5, "P2DT30M"),
        (0, 0, 24 + 1 / 7200, "P1DT0.5S"),
    ],
)
def test_an_interval_has_all_of_its_hours(months: int, days: int, hours: float, text: str) -> None:
    interval = pa.MonthDayNano((months, days, round(hours * 3600 * 10**9)))
    column = pa.array([interval, None], pa.month_day_nano_interval())
    lists = pa.array([[interval]], pa.list_(pa.month_day_nano_interval()))
    maps = pa.array([[("a", interval)]], pa.map_(pa.string(), pa.month_day_nano_interval()))
    structs = pa.StructArray.from_arrays([column.slice(0, 1)], ["a"])
    assert _lines(column) == (f"{text}\n\n", f'{{"x": "{text}"}}\n{{"x": null}}\n')
    assert _lines(lists)[1] == f'{{"x": ["{text}"]}}\n'
    assert _lines(maps)[1] == f'{{"x": [["a", "{text}"]]}}\n'
    assert _lines(structs)[1] == f'{{"x": {{"a": "{text}"}}}}\n'


def test_a_negative_interval_is_written_as_a_negative_duration() -> None:
    nanos = -93_600 * 10**9
    interval = pa.array([pa.MonthDayNano((0, 0, nanos))], pa.month_day_nano_interval())
    assert _lines(interval) == _lines(pa.array([nanos], pa.duration("ns")))


def _lines(column: pa.Array) -> tuple[str, str]:
    batch = pa.RecordBatch.from_arrays([column], ["x"])
    csv, jsonl = CsvForm().lines(batch), json_lines(batch)
    return b"".join(csv).decode(), b"".join(jsonl).decode()
