"""Building an index: what is in the file is in the index, and nothing else changes."""

from __future__ import annotations

import datetime as dt
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import paimon
from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.paimon import (
    BloomFilter64,
    DataType,
    FileIndex,
    Index,
    IndexOptions,
    hash_value,
)
from testing.surgery import assert_tells_no_secret
from testing.tables import KEYRING, Mode, customers, write
from tests.paimon.conftest import ROWS

EPOCH = dt.datetime(1970, 1, 1)


def read(path: Path) -> FileIndex:
    return FileIndex.from_bytes(Path(f"{path}.index").read_bytes())


DYING_BETWEEN_LINK_AND_UNLINK = """
import os, signal, sys
from secure_bloom import paimon
from secure_bloom.storage.staged_file import StagedFile
def refused(self): raise OSError
StagedFile._open_nameless = refused
os.unlink = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
paimon.build_index(sys.argv[1], ["id"])
"""


def test_a_build_that_was_killed_at_its_last_step_does_not_stop_the_next(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5), Mode.PLAIN)
    command = [sys.executable, "-c", DYING_BETWEEN_LINK_AND_UNLINK, str(path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 3
    paimon.build_index(path, ["city"])
    assert [column.name for column in read(path).columns] == ["id", "city"]
    assert {file.name for file in tmp_path.iterdir()} == {"x.parquet", "x.parquet.index"}


def filter_of(path: Path, column: str) -> BloomFilter64:
    (index,) = read(path).indexes(column)
    assert index.body is not None
    return BloomFilter64.from_bytes(index.body)


NUMBERS = list(range(-50, 50))


FLOATS = [0.0, -0.0, 1.5, float("inf"), float("nan"), -2.25, 1e-40]


MOMENTS = [-1, 0, 1, 1_700_000_000_123_456, -62_135_596_800_000_000]


DAYS = [-719_162, -1, 0, 19_000]


TIMES = [0, 1_000, 43_200_123_000, 86_399_999_000]


#: Arrow type, its values, Paimon's type, the same values as Paimon has them, options of the writer.
TYPES: dict[str, tuple[pa.DataType, list[Any], str, list[Any], dict[str, Any]]] = {
    "tinyint": (pa.int8(), NUMBERS, "TINYINT", NUMBERS, {}),
    "smallint": (pa.int16(), NUMBERS, "SMALLINT", NUMBERS, {}),
    "int": (pa.int32(), NUMBERS, "INT", NUMBERS, {}),
    "bigint": (pa.int64(), [-(1 << 63), *NUMBERS], "BIGINT", [-(1 << 63), *NUMBERS], {}),
    "float": (pa.float32(), FLOATS, "FLOAT", FLOATS, {}),
    "double": (pa.float64(), FLOATS, "DOUBLE", FLOATS, {}),
    "date": (pa.date32(), DAYS, "DATE", DAYS, {}),
    "time of milliseconds": (
        pa.time32("ms"), [t // 1000 for t in TIMES], "TIME(3)", [t // 1000 for t in TIMES], {}
    ),
    "time of microseconds": (
        pa.time64("us"), TIMES, "TIME(3)", [t // 1000 for t in TIMES], {}
    ),
    "time of nanoseconds": (
        pa.time64("ns"), [t * 1000 for t in TIMES], "TIME(3)", [t // 1000 for t in TIMES], {}
    ),
    "timestamp of milliseconds": (
        pa.timestamp("ms"), MOMENTS[:3], "TIMESTAMP(3)", [(m, 0) for m in MOMENTS[:3]], {}
    ),
    "timestamp of microseconds": (
        pa.timestamp("us", "UTC"), MOMENTS, "TIMESTAMP_LTZ(6)",
        [(m // 1000, m % 1000 * 1000) for m in MOMENTS], {},
    ),
    "timestamp of nanoseconds": (
        pa.timestamp("ns"), [m * 1000 + 7 for m in MOMENTS[:4]], "TIMESTAMP(9)",
        [(m // 1000, m % 1000 * 1000 + 7) for m in MOMENTS[:4]], {},
    ),
    "timestamp of 96 bits": (
        pa.timestamp("ns"), [m * 1000 + 7 for m in MOMENTS[:4]], "TIMESTAMP(9)",
        [(m // 1000, m % 1000 * 1000 + 7) for m in MOMENTS[:4]],
        {"use_deprecated_int96_timestamps": True},
    ),
    "string": (pa.string(), ["", "é", "\U0001f600", "x" * 50], "STRING",
               ["", "é", "\U0001f600", "x" * 50], {}),
    "bytes": (pa.binary(), [b"", b"\0\xff"], "BYTES", [b"", b"\0\xff"], {}),
    "fixed bytes": (pa.binary(5), [b"12345", b"\0\0\0\0\0"], "BINARY(5)",
                    [b"12345", b"\0\0\0\0\0"], {}),
}  # fmt: skip


@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_hashed_as_paimon_does(tmp_path: Path, name: str, dictionary: bool) -> None:
    arrow_type, values, paimon_type, wanted, options = TYPES[name]
    table = pa.table({"c": pa.array([*values, None], arrow_type)})
    path = tmp_path / "data.parquet"
    pq.write_table(table, path, use_dictionary=dictionary, **options)
    report = paimon.build_index(path, ["c"])
    (column,) = report.columns
    expected = BloomFilter64.sized(column.items, 0.1)
    data_type = DataType.parse(paimon_type)
    hashes = {hash_value(data_type, value) for value in wanted}
    for h in hashes:
        assert h is not None
        expected.insert_hash(h)
    assert column.items == len(hashes)
    assert filter_of(path, "c") == expected


@pytest.mark.parametrize(
    "array",
    [
        pa.array([True]),
        pa.array([1], pa.uint32()),
        pa.array([1], pa.decimal128(5)),
        pa.array([1.0], pa.float16()),
        pa.array([b"0123456789abcdef"], pa.uuid()),
    ],
    ids=lambda array: str(array.type),
)
def test_a_type_that_paimon_does_not_hash_is_refused(tmp_path: Path, array: pa.Array) -> None:
    pq.write_table(pa.table({"c": array}), tmp_path / "data.parquet")
    with pytest.raises(UnsupportedFeatureError, match="Paimon gives no Bloom filter"):
        paimon.build_index(tmp_path / "data.parquet", ["c"])
    assert not (tmp_path / "data.parquet.index").exists()


def test_a_filter_is_sized_by_the_distinct_values(data_file: Path) -> None:
    report = paimon.build_index(data_file, {"id": IndexOptions(), "name": IndexOptions(fpp=0.01)})
    told = {c.column: (c.values, c.items, c.bytes) for c in report.columns}
    assert told["id"] == (500, 500, len(BloomFilter64.sized(500, 0.1).to_bytes()))
    assert told["name"][1:] == (250, len(BloomFilter64.sized(250, 0.01).to_bytes()))
    assert (report.path, report.index) == (str(data_file), f"{data_file}.index")
    assert report.bytes == Path(f"{data_file}.index").stat().st_size
    filled = filter_of(data_file, "name")
    data_type = DataType.parse("STRING")
    assert all(filled.check_hash(hash_value(data_type, f"n{i}") or 0) for i in range(250))
    missing = [filled.check_hash(hash_value(data_type, f"x{i}") or 0) for i in range(2000)]
    assert sum(missing) < 60


def test_many_distinct_values_are_found_in_steps(data_file: Path) -> None:
    with mock.patch("secure_bloom.kernels.distinct._GATHERED", 10):
        report = paimon.build_index(data_file, ["id", "name"])
    assert [column.items for column in report.columns] == [500, 250]


def test_items_that_are_given_decide(data_file: Path) -> None:
    report = paimon.build_index(data_file, {"id": IndexOptions(items=1_000_000)})
    assert report.columns[0].bytes == 599_071


def test_a_column_without_values_has_an_empty_index(data_file: Path) -> None:
    report = paimon.build_index(data_file, ["nothing", "m[z]"])
    assert [(c.values, c.bytes, c.fpp) for c in report.columns] == [(0, 0, None)] * 2
    assert read(data_file).indexes("nothing") == (Index(type="bloom-filter", body=None),)


def test_the_keys_of_a_map_have_filters_of_their_own(data_file: Path) -> None:
    report = paimon.build_index(data_file, ["m[a]", "m[b]"])
    assert [(c.values, c.items) for c in report.columns] == [(400, 7), (200, 1)]
    assert filter_of(data_file, "m[b]").check_hash(hash_value(DataType.parse("STRING"), "w") or 0)


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("nam", "there is no column nam"),
        ("m", "column m is nested"),
        ("list", "column list is nested"),
        ("id[a]", "there is no column"),
        ("list[a]", "there is no column"),
    ],
)
def test_a_column_that_cannot_have_an_index_is_an_error(
    data_file: Path, column: str, told: str
) -> None:
    with pytest.raises((PolicyError, UnsupportedFeatureError), match=told):
        paimon.build_index(data_file, [column])


def test_a_name_with_a_dot_is_a_name(data_file: Path) -> None:
    assert paimon.build_index(data_file, ["dotted.name"]).columns[0].values == ROWS


def test_the_data_file_is_not_touched_and_a_dry_run_writes_nothing(data_file: Path) -> None:
    before = (data_file.read_bytes(), data_file.stat().st_mtime_ns)
    dry = paimon.build_index(data_file, ["id"], dry_run=True)
    assert [path.name for path in data_file.parent.iterdir()] == ["data.parquet"]
    assert paimon.build_index(data_file, ["id"]) == dry
    assert (data_file.read_bytes(), data_file.stat().st_mtime_ns) == before
    assert len(list(data_file.parent.iterdir())) == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"ORC\0data", "ORC"), (b"Obj\1data", "Avro"), (FileIndex().to_bytes(), "an index itself")],
)
def test_a_file_of_another_format_is_called_by_its_name(
    tmp_path: Path, content: bytes, told: str
) -> None:
    path = tmp_path / "data-1"
    path.write_bytes(content)
    with pytest.raises(UnsupportedFeatureError, match=told) as refused:
        paimon.build_index(path, ["id"])
    assert refused.value.hint


def test_a_single_text_is_the_name_of_one_column(data_file: Path) -> None:
    assert [column.column for column in paimon.build_index(data_file, "id").columns] == ["id"]


@pytest.mark.parametrize(
    "columns", [5, None, [], {}, [5], [["id"]], {"id": None}, {"id": 0.1}, {5: IndexOptions()}]
)
def test_columns_of_a_wrong_type_are_refused(data_file: Path, columns: Any) -> None:
    with pytest.raises(PolicyError):
        paimon.build_index(data_file, columns)


def test_processes_build_what_one_builds(data_file: Path) -> None:
    other = data_file.with_name("other.parquet")
    shutil.copyfile(data_file, other)
    wanted = paimon.build_index(other, ["name"])
    report = paimon.build_indexes(data_file.parent, ["name"], jobs=2)
    assert [(file.status, file.bytes) for file in report.files] == [("built", wanted.bytes)] * 2
    assert read(data_file) == read(other)


def test_a_failing_file_does_not_stop_the_others(data_file: Path) -> None:
    (data_file.parent / "broken.parquet").write_bytes(b"PAR1 no file PAR1")
    report = paimon.build_indexes(data_file.parent, ["id"])
    assert [file.status for file in report.files] == ["failed", "built"]
    assert [Path(file.path).name for file in report.failed] == ["broken.parquet"]


@pytest.mark.parametrize(
    "options",
    [
        {"items": 0},
        {"fpp": 0.0},
        {"fpp": 1.0},
        {"items": 1 << 40, "fpp": 0.01},
        {"items": True},
        {"items": 2.5},
        {"items": "3"},
        {"fpp": "x"},
        {"fpp": None},
        {"fpp": True},
    ],
)
def test_options_that_make_no_filter_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        IndexOptions(**options)


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM], ids=lambda m: m.name)
def test_an_encrypted_column_gets_no_index_in_clear(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(100), mode)
    with pytest.raises(PolicyError, match=r"email.*in clear") as refused:
        paimon.build_index(path, ["email"], keys=KEYRING)
    assert "allow_clear_index" in str(refused.value.hint)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.UNIFORM], ids=lambda m: m.name)
def test_who_insists_is_told_what_it_shows(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(100), mode)
    report = paimon.build_index(path, ["email"], keys=KEYRING, allow_clear_index=True)
    (column,) = report.columns
    assert column.encrypted
    assert "for everyone who can read the index" in str(column.shows)
    # ... and that is so: no key is given here.
    types = {"email": "STRING"}
    present = paimon.probe(path, "email = 'user7@example.com'", types=types)
    absent = paimon.probe(path, "email = 'nobody@else.example'", types=types)
    assert (present.verdicts, absent.verdicts) == ({Verdict.MAYBE}, {Verdict.ABSENT})
    assert_tells_no_secret(str(report))


def test_a_column_in_clear_of_an_encrypted_file_needs_no_permission(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(100), Mode.SIGNED)
    (column,) = paimon.build_index(path, ["id"], keys=KEYRING).columns
    assert (column.encrypted, column.shows) == (False, None)


def test_a_map_that_spans_pages_and_batches_is_read_in_step(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [
        [(f"k{j}", f"{i}-{j}" * int(rng.integers(1, 9))) for j in range(int(rng.integers(0, 4)))]
        for i in range(20_000)
    ]
    table = pa.table({"m": pa.array(rows, pa.map_(pa.string(), pa.string()))})
    path = tmp_path / "data.parquet"
    pq.write_table(table, path, data_page_size=4000, use_dictionary=False, row_group_size=9000)
    paimon.build_index(path, {"m[k2]": IndexOptions(fpp=1e-9)})
    filled = filter_of(path, "m[k2]")
    data_type = DataType.parse("STRING")
    for row in rows:
        for key, value in row:
            assert filled.check_hash(hash_value(data_type, value) or 0) is (key == "k2")
