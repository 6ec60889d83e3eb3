"""Rows of Delta tables: those of other readers, at every version, and less of them read."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli import main
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from testing.command_line import run
from testing.delta_logs import (
    add,
    checkpoint,
    column,
    commit,
    inline_vector,
    log_of,
    remove,
    start,
    vector_file,
)
from testing.tables import KEYRING, Mode, customers, write
from tests.lakes.test_table_listing import mapped


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def theirs(table: Path, **version: Any) -> list[dict[str, Any]]:
    found = deltalake.DeltaTable(table, **version).to_pyarrow_table()
    return rows(found)


def test_rows_are_those_of_deltalake_and_polars_at_every_version(tmp_path: Path) -> None:
    first = pa.table({"id": [1, 2, 3], "day": ["a/b c", None, "x=%3D"], "n": [1.5, None, 2.5]})
    deltalake.write_deltalake(tmp_path, first, partition_by=["day"])
    more = first.append_column("new", pa.array(["p", "q", None]))
    deltalake.write_deltalake(tmp_path, more, mode="append", schema_mode="merge")
    table = deltalake.DeltaTable(tmp_path)
    table.delete("id = 2")
    table.update(updates={"n": "9.0"}, predicate="id = 3")
    pl.DataFrame({"id": [4], "day": ["z"], "n": [0.0], "new": ["s"]}).write_delta(
        str(tmp_path), mode="append"
    )
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    deltalake.DeltaTable(tmp_path).optimize.compact()
    latest = deltalake.DeltaTable(tmp_path).version()
    assert latest >= 5
    for version in range(latest + 1):
        mine = sb.read_table(tmp_path, version=version)
        assert rows(mine) == theirs(tmp_path, version=version)
        assert mine.schema.names == [
            field.name for field in deltalake.DeltaTable(tmp_path, version=version).schema().fields
        ]
        polars = pl.read_delta(str(tmp_path), version=version).to_arrow()
        assert rows(mine) == rows(polars)
    assert rows(sb.read_table(tmp_path)) == theirs(tmp_path)


PARTITIONS = {
    "string": ("a b", "a b"),
    "integer": ("-7", -7),
    "long": ("5000000000", 5_000_000_000),
    "boolean": ("true", True),
    "date": ("2026-01-31", dt.date(2026, 1, 31)),
    "double": ("1.5", 1.5),
    "decimal(10,2)": ("12.50", Decimal("12.50")),
    "timestamp": (
        "2026-01-31 12:00:00.123456",
        dt.datetime(2026, 1, 31, 12, 0, 0, 123456, dt.UTC),
    ),
    "timestamp_ntz": ("2026-01-31 12:00:00", dt.datetime(2026, 1, 31, 12)),
    "binary": ("abc", b"abc"),
}


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partition_values_come_from_the_log_in_their_types(tmp_path: Path, kind: str) -> None:
    text, value = PARTITIONS[kind]
    data = pa.table({"id": pa.array([1], pa.int64())})
    # The folder's name says something else: it counts for nothing.
    (tmp_path / "p=0").mkdir()
    for name in ("x", "null", "empty"):
        pq.write_table(data, tmp_path / f"p=0/{name}.parquet")
    values = {"x": text, "null": None, "empty": ""}
    adds = [add(f"p=0/{name}.parquet", 1, partitionValues={"p": values[name]}) for name in values]
    features = ["timestampNtz"] if kind == "timestamp_ntz" else []
    commit(
        tmp_path,
        0,
        *start(column("p", kind), column("id"), partitions=["p"], features=features),
        *adds,
    )
    found = sb.read_table(tmp_path)
    assert found.column_names == ["p", "id"]
    assert sorted(found["p"].to_pylist(), key=str) == sorted([value, None, None], key=str)
    assert sb.read_table(tmp_path, where=[("p", "=", value)])["p"].to_pylist() == [value]
    assert sb.explain(tmp_path, where=[("p", "=", value)]).skipped == {"partition value": 2}


def test_a_partition_value_that_is_none_of_its_type_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
    action = add("x.parquet", 1, partitionValues={"p": "secret"})
    commit(tmp_path, 0, *start(column("p", "date"), column("id"), partitions=["p"]), action)
    with pytest.raises(FormatError, match="no date32") as caught:
        sb.read_table(tmp_path)
    assert "secret" not in str(caught.value)


def people(table: Path, *vectors: Any, rows: int = 1000, **options: Any) -> Path:
    """A table with a file of row groups of 100 rows for each deletion vector."""
    table.mkdir(exist_ok=True)
    adds = []
    for i, vector in enumerate(vectors):
        path = table / f"{i}.parquet"
        ids = range(i * rows, (i + 1) * rows)
        data = pa.table({"id": pa.array(ids, pa.int64()), "email": [f"u{j}@x" for j in ids]})
        pq.write_table(data, path, row_group_size=100, write_page_index=True, **options)
        fields = {} if vector is None else {"deletionVector": vector}
        adds.append(add(path.name, path.stat().st_size, stats="{}", **fields))
    columns = column("id"), column("email", "string")
    commit(table, 0, *start(*columns, features=["deletionVectors"]), *adds)
    return table


def test_deleted_rows_are_never_returned(tmp_path: Path) -> None:
    gone = [0, 99, 100, 101, 550, *range(700, 800), 999]
    table = tmp_path / "t"
    table.mkdir()
    people(table, *vector_file(table, gone), inline_vector([3]), None, data_page_size=256)
    left = sorted({*range(3000)} - set(gone) - {1003})
    assert sorted(sb.read_table(table)["id"].to_pylist()) == left
    assert sb.read_table(table).num_rows == len(left)
    for wanted in ([99], [98], [0, 102, 1003, 1004], range(90, 110), [750], range(3000)):
        for where in ([("id", "in", list(wanted))], [("email", "in", [f"u{i}@x" for i in wanted])]):
            found = sb.read_table(table, where=where)["id"].to_pylist()
            assert sorted(found) == [i for i in wanted if i in set(left)]
    assert sb.read_table(table, columns=["email"], limit=2)["email"].to_pylist() == ["u1@x", "u2@x"]
    assert sb.explain(table, where="id = 99").rows == 0
    assert sum(len(batch) for batch in sb.read_batches(table, where="id < 150")) == 146


def test_deleted_rows_stay_away_in_parts_and_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [5, 150, 151, 999]
    table = people(tmp_path / "t", inline_vector(gone))
    plan = pickle.loads(pickle.dumps(sb.plan_read(table, where="id >= 100")))
    found = [batch for file in plan.files for batch in sb.read_row_groups(plan, file)]
    wanted = [i for i in range(100, 1000) if i not in gone]
    assert pa.Table.from_batches(found)["id"].to_pylist() == wanted
    for module in ("column_decoder", "file_reader"):
        monkeypatch.setattr(f"secure_bloom.reading.rows.{module}.harmless_size", lambda: 200)
    assert sb.read_table(table, where="id >= 100")["id"].to_pylist() == wanted
    assert sb.read_table(table).num_rows == 996


def test_a_deletion_vector_is_not_built_beyond_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"id": pa.repeat(7, 200_000)}), tmp_path / "a.parquet")
    vector = inline_vector(range(199_999))
    assert vector["sizeInBytes"] < 200
    adds = add("a.parquet", deletionVector=vector)
    commit(tmp_path, 0, *start(features=["deletionVectors"]), adds)
    assert sb.read_table(tmp_path).num_rows == 1
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "2MiB")
    with pytest.raises(
        UnsupportedFeatureError, match="a deletion vector takes 3,203,064 bytes decoded"
    ):
        sb.read_table(tmp_path)
    few = add("a.parquet", deletionVector={**vector, "cardinality": 5})
    commit(tmp_path, 1, remove("a.parquet", deletionVector=vector), few)
    with pytest.raises(FormatError, match="a bitmap has more than 5 numbers"):
        sb.read_table(tmp_path)


def test_a_damaged_deletion_vector_gives_no_rows(tmp_path: Path) -> None:
    table = people(tmp_path / "t", inline_vector([1]) | {"cardinality": 2})
    with pytest.raises(FormatError, match="deletion vector"):
        sb.read_table(table)


def test_deleted_rows_are_those_of_deltalake(tmp_path: Path) -> None:
    table = people(tmp_path / "t", inline_vector([0, 5, 999]), None)
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
    ids = pa.table(found.execute("select id from t")).column("id").to_pylist()
    assert sorted(sb.read_table(table)["id"].to_pylist()) == sorted(ids)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_gives_the_names_of_the_table(tmp_path: Path, mode: str) -> None:
    mapped(tmp_path / "t", mode)
    found = sb.read_table(tmp_path / "t")
    assert found.to_pylist() == [{"id": 1, "name": None, "items": [{"price": 5}]}]
    assert sb.read_table(tmp_path / "t", where="id = 1", columns="id").to_pylist() == [{"id": 1}]
    assert sb.read_table(tmp_path / "t", where="id = 2").num_rows == 0
    assert sb.read_table(tmp_path / "t", where="name is null").num_rows == 1
    with pytest.raises(PolicyError, match="no column col-1"):
        sb.read_table(tmp_path / "t", where='"col-1" = 1')
    plan = pickle.loads(pickle.dumps(sb.plan_read(tmp_path / "t", where="id = 1")))
    assert sum(b.num_rows for b in sb.read_row_groups(plan, plan.files[0])) == 1


def encrypted(table: Path, mode: Mode) -> Path:
    """A Delta table of encrypted files with filters, which a log names."""
    table.mkdir()
    adds = []
    for i in range(2):
        path = table / f"{i}.parquet"
        write(path, customers(3000, seed=i), mode)
        sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
        adds.append(add(path.name, path.stat().st_size))
    write(table / "left-behind.parquet", customers(10, seed=9), mode)
    schema = deltalake.Schema.from_arrow(pq.read_schema(_plain(table)))
    fields = json.loads(schema.to_json())["fields"]
    commit(table, 0, *start(*fields, features=["timestampNtz"]), *adds)
    return table


def _plain(table: Path) -> Path:
    path = table.parent / "plain.parquet"
    write(path, customers(1), Mode.PLAIN)
    return path


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED])
def test_lookups_in_encrypted_tables_skip_row_groups(tmp_path: Path, mode: Mode) -> None:
    table = encrypted(tmp_path / "t", mode)
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("0.parquet", "1.parquet"):
        (bare / name).symlink_to(table / name)
    email = customers(3000, seed=1)["email"][700].as_py()
    where = [("email", "=", email)]
    wanted = [row for i in range(2) for row in customers(3000, seed=i).to_pylist()]
    found = sb.read_table(table, where=where, keys=KEYRING)
    assert found.to_pylist() == [row for row in wanted if row["email"] == email]
    explained = sb.explain(table, where=where, keys=KEYRING)
    assert explained.skipped == sb.explain(bare, where=where, keys=KEYRING).skipped
    assert explained.skipped
    assert sb.read_table(table, keys=KEYRING).num_rows == 6000


def test_an_encrypted_table_with_column_mapping_is_read(tmp_path: Path) -> None:
    table = encrypted(tmp_path / "t", Mode.ENCRYPTED)
    log = log_of(table) / f"{0:020}.json"
    log.unlink()
    names = pq.read_schema(_plain(table)).names
    kinds = json.loads(deltalake.Schema.from_arrow(pq.read_schema(_plain(table))).to_json())
    fields = [
        {
            **field,
            "name": f"the_{field['name']}",
            "metadata": {
                "delta.columnMapping.id": i,
                "delta.columnMapping.physicalName": field["name"],
            },
        }
        for i, field in enumerate(kinds["fields"])
    ]
    features = ["columnMapping", "timestampNtz"]
    first = start(*fields, features=features, delta_columnMapping_mode="name")
    commit(table, 0, *first, add("0.parquet", 1))
    wanted = customers(3000, seed=0)
    email = wanted["email"][7].as_py()
    found = sb.read_table(table, where=[("the_email", "=", email)], keys=KEYRING)
    same = wanted.filter(pc.equal(wanted["email"], email))
    assert found.column_names == [f"the_{name}" for name in names]
    assert found.rename_columns(names).to_pylist() == same.to_pylist()
    assert sb.probe(table, "the_email", [email], keys=KEYRING).verdicts == {"maybe", "absent"}


def test_a_table_without_files_has_a_schema(tmp_path: Path) -> None:
    commit(
        tmp_path,
        0,
        *start(column("id"), column("p", "date"), partitions=["p"]),
        add("x", partitionValues={"p": ""}),
    )
    commit(tmp_path, 1, remove("x"))
    found = sb.read_table(tmp_path, where="id = 1")
    assert found.num_rows == 0
    assert found.schema == pa.schema({"id": pa.int64(), "p": pa.date32()})


def test_a_checkpoint_of_version_2_gives_its_rows(tmp_path: Path) -> None:
    people(tmp_path / "t", None, None)
    first = start(column("id"), column("email", "string"), features=["v2Checkpoint"])
    sidecar = {"sidecar": {"path": "s.parquet", "sizeInBytes": 1}}
    log = log_of(tmp_path / "t")
    checkpoint(log / "_sidecars/s.parquet", add("0.parquet", 1), add("1.parquet", 1))
    checkpoint(log / f"{1:020}.checkpoint.0a-1b.parquet", *first, sidecar)
    commit(tmp_path / "t", 2, remove("0.parquet"))
    assert sb.read_table(tmp_path / "t").num_rows == 1000
    assert sb.read_table(tmp_path / "t", version=1).num_rows == 2000


def test_the_command_line_reads_a_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"id": [1]}))
    deltalake.write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    for options, wanted in (([], [1, 2]), (["--version", "0"], [1])):
        with pytest.raises(SystemExit) as end:
            main(["read", str(tmp_path), "--json", *options])
        assert not end.value.code
        assert sorted(row["id"] for row in json.loads(capsys.readouterr().out)["data"]) == wanted


def test_types_that_were_widened_hold_all_values(tmp_path: Path) -> None:
    for name, kind in (("old", pa.int32()), ("new", pa.int64())):
        data = pa.table({"id": pa.array([len(name)], kind), "p": pa.array([1], kind)})
        pq.write_table(data, tmp_path / f"{name}.parquet")
    features = ["typeWidening"]
    first = start(column("id"), column("p"), partitions=["p"], features=features)
    adds = [add(f"{name}.parquet", 1, partitionValues={"p": "7"}) for name in ("old", "new")]
    commit(tmp_path, 0, *first, *adds)
    found = sb.read_table(tmp_path, where="id >= 3")
    assert found.schema.field("id").type == pa.int64()
    assert found.to_pylist() == [{"id": 3, "p": 7}, {"id": 3, "p": 7}]


def test_variants_are_refused_where_rows_are_read(tmp_path: Path) -> None:
    variant = pa.struct({"metadata": pa.binary(), "value": pa.binary()})
    pq.write_table(pa.table({"v": pa.array([None], variant)}), tmp_path / "x.parquet")
    commit(tmp_path, 0, *start(column("v", "variant"), features=["variantType"]), add("x.parquet"))
    assert len(sb.inspect(tmp_path).files) == 1
    with pytest.raises(sb.UnsupportedFeatureError, match="column of type variant"):
        sb.read_table(tmp_path)


def test_a_delta_table_is_read_alone(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
    with pytest.raises(PolicyError, match="read alone"):
        sb.read_table([tmp_path / "t", tmp_path / "x.parquet"])


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_those_that_are_left_by_every_way_of_reading(tmp_path: Path, seed: int) -> None:
    """Random row groups, page indexes, dictionaries, deletion vectors and conditions."""
    chance = random.Random(seed)
    count, adds, left = chance.randint(1, 400), [], []
    for f in range(2):
        data = [
            {"id": chance.randrange(50), "s": f"v{chance.randrange(30)}", "at": i}
            for i in range(count)
        ]
        pq.write_table(
            pa.Table.from_pylist(data),
            tmp_path / f"{f}.parquet",
            row_group_size=chance.choice([7, 50, 1000]),
            data_page_size=chance.choice([64, 10**6]),
            write_page_index=chance.random() < 0.7,
            use_dictionary=chance.random() < 0.5,
        )
        gone = sorted(chance.sample(range(count), chance.randint(1, count)))
        vector = inline_vector(gone) if chance.random() < 0.5 else vector_file(tmp_path, gone)[0]
        adds.append(add(f"{f}.parquet", partitionValues={"p": str(f)}, deletionVector=vector))
        left += [row | {"p": f} for row in data if row["at"] not in set(gone)]
    columns = column("id"), column("s", "string"), column("at"), column("p", "integer")
    first = start(*columns, partitions=["p"], features=["deletionVectors"])
    commit(tmp_path, 0, *first, *adds)
    conditions: dict[str, Any] = {
        "id = 7": lambda row: row["id"] == 7,
        "s in ('v1', 'v2') and id < 25": lambda row: row["s"] in ("v1", "v2") and row["id"] < 25,
        "at > 5 and at < 9": lambda row: 5 < row["at"] < 9,
        "p = 1": lambda row: row["p"] == 1,
    }
    for where, is_wanted in conditions.items():
        found = sb.read_table(tmp_path, where=where)
        wanted = [row for row in left if is_wanted(row)]
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted)), where
    assert sb.read_table(tmp_path, columns="p").num_rows == len(left)


def test_a_query_reads_the_version_that_is_asked_for(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [2]}), mode="append")
    query = f"SELECT max(id) AS n FROM '{tmp_path}/t'"
    assert [sb.sql(query, version=at).to_pylist()[0]["n"] for at in (0, 1, None)] == [1, 2, 2]
    result = run("sql", query, "--version", "0", "--format", "csv")
    assert (result.returncode, result.stdout.split()) == (0, ["n", "1"])
    with pytest.raises(PolicyError, match="version is that of one table, and the query has 2"):
        sb.sql(f"SELECT * FROM a, '{tmp_path}/t'", {"a": str(tmp_path / "t")}, version=0)
    with sb.open_table(tmp_path / "t") as table, pytest.raises(PolicyError, match="table is open"):
        sb.sql("SELECT * FROM t", {"t": table}, version=0)
