"""Values, paths and files at the edges of what a reader meets."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli.row_formats import write_rows
from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    IntegrityError,
    PolicyError,
    SecureBloomError,
)
from testing.surgery import flip
from testing.tables import KEYRING, Mode, customers, keyring_json, write
from testing.thrift.metadata import FileMetaData


def written(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def test_a_file_of_the_same_size_is_not_the_one_that_was_planned(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": range(100)}), path, row_group_size=10, compression="NONE")
    plan = sb.plan_read(path, where="a = 5")
    size = path.stat().st_size
    backwards = pa.table({"a": range(99, -1, -1)})
    pq.write_table(backwards, path, row_group_size=10, compression="NONE")
    assert path.stat().st_size == size
    with pytest.raises(FileChangedError, match=r"x\.parquet: the file was changed after it was"):
        list(sb.read_row_groups(plan, plan.files[0]))


def test_other_rows_behind_the_same_footer_are_not_those_that_were_planned(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    options: dict[str, Any] = {
        "compression": "NONE",
        "use_dictionary": False,
        "write_statistics": False,
    }
    pq.write_table(pa.table({"a": ["one", "two"]}), path, **options)
    before, size = pq.ParquetFile(path).metadata.serialized_size, path.stat().st_size
    plan = pickle.loads(pickle.dumps(sb.plan_read(path, where="a = 'one'")))
    assert len(list(sb.read_row_groups(plan, plan.files[0]))) == 1
    pq.write_table(pa.table({"a": ["six", "ten"]}), path, **options)
    assert (pq.ParquetFile(path).metadata.serialized_size, path.stat().st_size) == (before, size)
    os.utime(path, (1, 1))
    with pytest.raises(FileChangedError, match="was changed after it was planned") as caught:
        list(sb.read_row_groups(plan, plan.files[0]))
    assert "plan again" in str(caught.value.hint)


def test_a_plan_is_carried_out_on_a_copy_that_keeps_its_time(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", a=[1, 2, 3])
    plan = sb.plan_read(path, where="a = 2")
    shutil.copy2(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    assert [b.num_rows for b in sb.read_row_groups(plan, plan.files[0])] == [1]


def test_a_policy_may_be_the_path_of_one(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    policy = tmp_path / "policy.toml"
    policy.write_text('[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n')
    for given in (policy, str(policy), sb.KeyPolicy.load(policy)):
        assert sb.read_table(path, policy=given).num_rows == 50
    plan = sb.plan_read(path, policy=policy)
    assert len(plan.files) == 1
    with pytest.raises(PolicyError, match="policy is of type dict, wanted a KeyPolicy or the path"):
        sb.read_table(path, policy={"kms": {}})  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match=r"nowhere\.toml"):
        sb.read_table(path, policy=tmp_path / "nowhere.toml")


def test_columns_and_members_come_once(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x.parquet", address=[{"city": "rome"}], tags=[["a"]], **{"address.zip": [1]}
    )
    found = sb.read_table(path, columns=["tags", "address", "tags"])
    assert found.schema.names == ["tags", "address"]
    found = sb.read_table(path, columns=["address.city", "tags.list.element", "address.city"])
    assert found.to_pylist() == [{"address": {"city": "rome"}, "tags": ["a"]}]
    with pytest.raises(PolicyError, match=r"there is no column address\.street"):
        sb.read_table(path, columns=["address.street"])
    assert sb.read_table(path, columns=["address.zip"]).to_pylist() == [{"address.zip": 1}]


def test_of_two_paths_to_a_file_the_shorter_names_its_folders(tmp_path: Path) -> None:
    for k in (1, 2):
        written(tmp_path / f"k={k}" / "0.parquet", x=[k])
    for paths in ([tmp_path, tmp_path / "k=1"], [tmp_path / "k=1", tmp_path]):
        assert sb.read_table(paths, where="k = 1").to_pydict() == {"x": [1], "k": [1]}
        assert sorted(sb.read_table(paths).column("k").to_pylist()) == [1, 2]


@pytest.mark.parametrize("names", [["k="], ["k=", "k=1"], ["k=__HIVE_DEFAULT_PARTITION__", "k="]])
def test_a_folder_may_name_an_empty_text(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        written(tmp_path / name / "0.parquet", x=[len(name)])
    whole = ds.dataset(tmp_path, partitioning="hive").to_table()
    found = sb.read_table(tmp_path)
    assert found.schema == whole.schema
    assert found.sort_by("x").equals(whole.sort_by("x"))
    assert sb.read_table(tmp_path, where="k = ''").num_rows == 1


@pytest.mark.parametrize(
    ("of", "value"),
    [
        (pa.float16(), "1e6"),
        (pa.float16(), -70_000),
        (pa.float32(), "1e300"),
        (pa.float32(), Decimal("-1e39")),
        (pa.float64(), "1e400"),
        (pa.float64(), Decimal("1e400")),
        (pa.float64(), 10**400),
    ],
    ids=str,
)
def test_a_number_beyond_all_of_the_type_is_no_infinity(
    tmp_path: Path, of: pa.DataType, value: Any
) -> None:
    path = written(tmp_path / "x.parquet", a=pa.array([-float("inf"), float("inf"), 1.0], of))
    for operator in ("=", "in"):
        where = [("a", operator, [value] if operator == "in" else value)]
        assert sb.read_table(path, where=where).num_rows == 0
    below = 1 if str(value).startswith("-") else 2
    for operator, count in (("<", below), ("<=", below), (">", 3 - below), ("!=", 3)):
        assert sb.read_table(path, where=[("a", operator, value)]).num_rows == count
    assert sb.read_table(path, where="a = inf").num_rows == 1


@pytest.mark.parametrize("of", [pa.float16(), pa.float32()], ids=str)
def test_a_number_between_two_of_the_type_equals_none_of_them(
    tmp_path: Path, of: pa.DataType
) -> None:
    path = written(tmp_path / "x.parquet", a=pa.array([0.1, 0.7, None], of))
    assert not sb.add_bloom_filters(path, columns=["a"]).failed
    counts = {"a = 0.1": 0, "a in (0.1, 0.7)": 0, "a != 0.1": 2, "a not in (0.1)": 2}
    for where, count in counts.items():
        assert sb.read_table(path, where=where).num_rows == count, where
    assert sb.explain(path, where="a = 0.1").row_groups_read == 0
    for own in (pa.scalar(0.1, of), np.dtype(of.to_pandas_dtype()).type(0.1)):
        assert sb.read_table(path, where=[("a", "=", own)]).num_rows == 1


@pytest.mark.parametrize(
    ("of", "values"),
    [
        (pa.decimal32(5, 2), [Decimal("1.20"), Decimal("-3.00")]),
        (pa.decimal64(12, 2), [Decimal("1.20"), Decimal("-3.00")]),
        (pa.string_view(), ["é", "y"]),
        (pa.binary_view(), [b"x", b"y"]),
    ],
    ids=str,
)
def test_every_operator_takes_every_comparable_type(
    tmp_path: Path, of: pa.DataType, values: list[Any]
) -> None:
    path = written(tmp_path / "x.parquet", a=pa.array([*values, None], of))
    questions = [("a", "=", values[0]), ("a", "in", values[:1]), ("a", "!=", values[1])]
    for where in questions:
        found = sb.read_table(path, where=[where])
        assert found.column("a").to_pylist() == values[:1], where
        assert found.schema.field("a").type == pq.read_schema(path).field("a").type


_VIEW = pa.string_view()


# Rust writers declare texts so, and deltalake rewrites files with them in a DELETE.
@pytest.mark.parametrize(
    ("of", "values"),
    [
        (pa.list_(_VIEW), [["a", "b" * 20], None, []]),
        (pa.large_list(_VIEW), [["a", "b"], None, []]),
        (pa.list_(pa.binary_view()), [[b"a"], None, []]),
        (pa.list_(_VIEW, 2), [["a", "b"], None, ["c", None]]),
        (pa.map_(pa.string(), _VIEW), [[("k", "v")], None, []]),
        (
            pa.struct([("zip", _VIEW), ("tags", pa.list_(_VIEW))]),
            [{"zip": "a" * 20, "tags": ["x"]}, None, {"zip": None, "tags": None}],
        ),
    ],
    ids=str,
)
def test_rows_of_columns_with_views_inside_are_found(
    tmp_path: Path, of: pa.DataType, values: list[Any]
) -> None:
    path = written(tmp_path / "x.parquet", id=range(3), a=pa.array(values, of))
    type_ = pq.read_schema(path).field("a").type
    for number in range(3):
        found = sb.read_table(path, where=[("id", "=", number)])
        assert found.column("a").to_pylist() == [values[number]]
        assert found.schema.field("a").type == type_
    assert sb.read_table(path, where="id != 1").column("a").to_pylist() == values[::2]
    assert sb.advise(path).columns


def test_a_damaged_plain_footer_is_an_error_with_its_path(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", a=range(200))
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    damaged = tmp_path / "damaged.parquet"
    refused = 0
    for place in range(start, len(content) - 8):
        # One bit of each byte, another one in the next: all bits of all kinds of numbers come up.
        altered = bytearray(content)
        altered[place] ^= (1, 16, 128)[place % 3]
        damaged.write_bytes(altered)
        refused += _is_refused(damaged)
    assert refused > 10


def _is_refused(damaged: Path) -> bool:
    try:
        sb.read_table(damaged, where="a = 77")
    except SecureBloomError as error:
        return damaged.name in str(error)
    return False


def with_footer(path: Path, change: Any) -> None:
    """Write the plain footer of the file at ``path`` again, changed."""
    from testing.thrift import trees

    content = path.read_bytes()
    end = len(content) - 8
    start = end - int.from_bytes(content[-8:-4], "little")
    metadata = FileMetaData(trees.decode(content[start:end])[0])
    change(metadata)
    footer = metadata.encode()
    path.write_bytes(content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("field", [5, 7], ids=["offset_index_length", "column_index_length"])
def test_a_page_index_without_a_length_is_not_read(tmp_path: Path, field: int) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path, write_page_index=True)
    with_footer(path, lambda m: m.row_groups[0].columns[0].tree.fields.pop(field))
    assert sb.read_table(path, where="a = 77").num_rows == 1


def test_key_material_that_pyarrow_does_not_take_is_an_error_with_its_path(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    content = path.read_bytes()
    assert content.count(b'"kmsInstanceID"') == 1
    # It stands in clear before the footer's module, which does not cover it.
    path.write_bytes(content.replace(b'"kmsInstanceID"', b'"kmsInstanceIX"'))
    with pytest.raises(FormatError, match=r"x\.parquet: pyarrow does not take the footer"):
        sb.read_table(path, keys=KEYRING)


def test_an_altered_encrypted_footer_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    flip(path, path.stat().st_size - 40)
    with pytest.raises(IntegrityError, match=r"x\.parquet: the footer does not authenticate"):
        sb.read_table(path, keys=KEYRING)
    (report,) = sb.add_bloom_filters(path, columns=["email"], keys=KEYRING).files
    assert "the footer does not authenticate" in str(report.error)


def test_the_dictionary_that_lacks_a_value_is_not_said_to_have_it(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", a=["a", "b", "c"] * 100, b=["x", "y", "z"] * 100)
    (group,) = sb.explain(path, where="a = 'bb' or b = 'y'").files[0].row_groups
    told = {n.column: n.text for n in group.notes if n.step == "dictionary"}
    assert told == {"a": "the dictionary does not have it", "b": "maybe: the dictionary has it"}


TEMPORAL: list[tuple[pa.DataType, int, str]] = [
    (pa.timestamp("ns"), 1, "1970-01-01T00:00:00.000000001"),
    (pa.timestamp("ns"), -1, "1969-12-31T23:59:59.999999999"),
    (pa.timestamp("ns"), 0, "1970-01-01T00:00:00.000000000"),
    (pa.timestamp("ns", "UTC"), 1000, "1970-01-01T00:00:00.000001000Z"),
    (pa.timestamp("us"), 2**62, "148108-07-06T14:00:27.387904000"),
    (pa.timestamp("us"), 1, "1970-01-01T00:00:00.000001"),
    (pa.timestamp("ms"), -(10**15), "-29719-04-05T22:13:20.000000000"),
    (pa.date32(), 2**30, "2941775-04-07"),
    (pa.date32(), 1, "1970-01-02"),
    (pa.time64("ns"), 1001, "00:00:00.000001001"),
    (pa.duration("ns"), 86_400 * 10**9 + 1, "P1DT0.000000001S"),
    (pa.duration("ns"), -5_400 * 10**9, "-PT1H30M"),
    (pa.duration("us"), 1, "PT0.000001S"),
    (pa.duration("s"), 2**60, "P13343998895912DT13H56M16S"),
]


@pytest.mark.parametrize(("of", "number", "text"), TEMPORAL, ids=str)
@pytest.mark.parametrize("form", ["csv", "jsonl", "table"])
def test_times_beyond_pythons_own_are_printed(
    capsys: pytest.CaptureFixture[str], form: str, of: pa.DataType, number: int, text: str
) -> None:
    column = pa.array([number, None], pa.int32() if of == pa.date32() else pa.int64()).cast(of)
    members = pa.StructArray.from_arrays([column], ["m"])
    lists = pa.array([[number], None], pa.list_(column.view(_number(of)).type)).cast(pa.list_(of))
    batch = pa.RecordBatch.from_arrays([column, members, lists], ["a", "s", "l"])
    assert write_rows(form, batch.schema, [batch], None) == 2
    shown = capsys.readouterr().out
    assert shown.count(text) == 3
    if form == "jsonl":
        assert json.loads(shown.splitlines()[0]) == {"a": text, "s": {"m": text}, "l": [text]}


def _number(of: pa.DataType) -> pa.DataType:
    return pa.int32() if of == pa.date32() else pa.int64()


def test_other_values_are_printed_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    nanos = pa.array([1, None], pa.timestamp("ns"))
    table = pa.table(
        {
            "d": nanos.dictionary_encode(),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.timestamp("ns"))),
            "day": [date(2024, 3, 1), None],
            "at": [datetime(2024, 3, 1, tzinfo=UTC), None],
            "time": [time(1, 2, 3), None],
        }
    )
    write_rows("jsonl", table.schema, table.to_batches(), None)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "d": "1970-01-01T00:00:00.000000001",
        "m": [["k", "1970-01-01T00:00:00.000000001"]],
        "day": "2024-03-01",
        "at": "2024-03-01T00:00:00+00:00",
        "time": "01:02:03",
    }
    assert set(second.values()) == {None}


@pytest.mark.parametrize("target", ["/dev/full", None])
def test_output_that_cannot_be_written_is_an_error_in_one_line(
    tmp_path: Path, target: str | None
) -> None:
    path = written(tmp_path / "x.parquet", a=range(5))
    command = [sys.executable, "-m", "secure_bloom", "read", str(path), "--format", "csv"]
    if target is None:
        command += ["--output", "/dev/full"]
    with Path(target or os.devnull).open("w") as stdout:
        done = subprocess.run(
            command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert "output" in done.stderr
    assert not any(word in done.stderr for word in ("Traceback", "unforeseen", "Exception"))


def test_a_file_whose_name_is_not_utf8_is_read(tmp_path: Path) -> None:
    plain = customers(20)
    for mode in (Mode.PLAIN, Mode.ENCRYPTED):
        written_ = write(tmp_path / mode.name, plain, mode)
        path = os.fsdecode(os.fsencode(written_) + b"\xff.parquet")
        try:
            written_.rename(path)
        except OSError:
            pytest.skip("this file system takes only names in UTF-8")
        assert sb.read_table(path, keys=KEYRING).equals(plain)
        assert sb.read_table(path, where="id = 5", keys=KEYRING).num_rows == 1
