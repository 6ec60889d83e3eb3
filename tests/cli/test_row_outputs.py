"""The output of `read` and `sql` replaces no input, and joins no table, whatever names it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from testing.command_line import run
from tests.lakes.iceberg.tables import NAME, in_settings, people

Reads = Callable[..., list[str]]

INPUT = "the output would overwrite the input"
PART = "the output would become a file of the table, its rows in clear"


def by_read(*paths: str) -> list[str]:
    return ["read", *paths]


def by_sql(*paths: str) -> list[str]:
    return ["sql", " union all ".join(f"select * from '{it}'" for it in paths)]


def by_name(*paths: str) -> list[str]:
    names = [f"t{number}" for number in range(len(paths))]
    query = " union all ".join(f"select * from {it}" for it in names)
    tables = [f"--table={name}={path}" for name, path in zip(names, paths, strict=True)]
    return ["sql", query, *tables]


VERBS = pytest.mark.parametrize("reads", [by_read, by_sql, by_name])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables, a link to the first, and a folder beside to which a link in it leads."""
    for folder in ("first", "second/day=1", "beside"):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"a": range(3)}), tmp_path / folder / "0.parquet")
    (tmp_path / "link").symlink_to("first")
    (tmp_path / "first" / "more").symlink_to("../beside")
    (tmp_path / "second" / "day=2").mkdir()
    (tmp_path / "name.parquet").symlink_to("first/0.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {str(it): it.read_bytes() for it in folder.rglob("*") if it.is_file()}


def refused(lake: Path, message: str, *arguments: str) -> None:
    before = content(lake)
    done = run(*arguments)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert "hint: name " in done.stderr
    assert content(lake) == before


#: What is refused: the paths that are read, the output, and what the error says.
REFUSED = [
    (["first"], "first/export.parquet", PART),
    (["first"], "first/0.parquet", INPUT),
    (["first/0.parquet"], "first/0.parquet", INPUT),
    (["first/0.parquet"], "name.parquet", INPUT),
    (["name.parquet"], "first/0.parquet", INPUT),
    (["link"], "first/export.parquet", PART),
    (["first"], "link/export.parquet", PART),
    (["first"], "beside/export.parquet", PART),
    (["beside/0.parquet", "first"], "first/export.parquet", PART),
    (["second/*"], "second/day=2/export.parquet", PART),
    (["second/*/*.parquet"], "second/day=2/export.parquet", PART),
    (["second/**/*.parquet"], "second/export.parquet", PART),
]


@pytest.mark.parametrize(
    ("reads", "paths", "output", "message"),
    [
        # `read` has every case, `sql` and its named tables every third one: all ask the same check.
        pytest.param(
            reads, *case, marks=() if (turn + way) % 3 == 0 or not way else pytest.mark.slow
        )
        for way, reads in enumerate((by_read, by_sql, by_name))
        for turn, case in enumerate(REFUSED)
    ],
)
def test_an_output_in_a_table_that_is_read_is_refused(
    lake: Path, reads: Reads, paths: list[str], output: str, message: str
) -> None:
    refused(lake, message, *reads(*paths), "--output", output)


@VERBS
def test_a_text_named_as_a_data_file_is_refused_too(lake: Path, reads: Reads) -> None:
    refused(lake, PART, *reads("first"), "--output", "first/x.parquet", "--format", "csv")
    refused(lake, INPUT, *reads("first"), "--output", "first/0.parquet", "--format", "csv")


@VERBS
@pytest.mark.parametrize(
    ("paths", "output"),
    [
        (["first"], "second/export.parquet"),
        (["first"], "first/export.csv"),
        (["first/0.parquet"], "first/export.parquet"),
        (["first/0*.parquet"], "first/export.parquet"),
        (["first"], "found.parquet"),
    ],
)
@pytest.mark.usefixtures("lake")
def test_other_outputs_are_written(reads: Reads, paths: list[str], output: str) -> None:
    done = run(*reads(*paths), "--output", output)
    assert (done.returncode, Path(output).is_file()) == (0, True), done.stderr


@VERBS
@pytest.mark.parametrize("output", ["new.parquet", "_delta_log/1.csv", "part/new.arrow"])
def test_no_output_goes_into_any_table_with_a_log(lake: Path, reads: Reads, output: str) -> None:
    deltalake.write_deltalake(lake / "delta", pa.table({"a": range(3)}))
    (lake / "delta" / "part").mkdir()
    for source in ("first", "delta"):
        refused(
            lake, "would lie inside a Delta table", *reads(source), "-o", f"{lake}/delta/{output}"
        )


@VERBS
@pytest.mark.parametrize(
    "log", [".hoodie/hoodie.properties", "metadata/v1.metadata.json", "schema/schema-0"]
)
def test_tables_of_every_format_are_known(lake: Path, reads: Reads, log: str) -> None:
    (lake / "beside" / log).parent.mkdir()
    (lake / "beside" / log).write_text("{}")
    refused(lake, "would lie inside ", *reads("second"), "-o", "beside/new.csv")


@pytest.mark.parametrize("option", ["--policy", "--keyring", "--parameters"])
def test_no_file_of_an_option_is_replaced(lake: Path, option: str) -> None:
    (lake / "kept.csv").write_text("" if option == "--policy" else "{}")
    for words in (["read", "first", "--where", "a = 1"], ["sql", "select 1 from 'first'"]):
        refused(lake, INPUT, *words, option, "kept.csv", "--output", f"{lake}/kept.csv")


@VERBS
def test_a_table_of_a_catalog_is_exported(
    lake: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(in_settings(lake, monkeypatch))
    done = run(*reads(NAME), "-o", "found.parquet")
    assert done.returncode == 0, done.stderr
    assert pq.read_table("found.parquet").num_rows == table.scan().count()
    data = Path(table.location().removeprefix("file://")) / "data"
    refused(lake, "would lie inside an Iceberg table", *reads(NAME), "-o", f"{data}/new.parquet")


@VERBS
def test_data_of_a_catalog_may_lie_elsewhere(
    lake: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"write.data.path": f"file://{lake}/elsewhere"}
    people(in_settings(lake, monkeypatch), files=1, **where)
    assert os.listdir(lake / "elsewhere")  # noqa: PTH208
    refused(lake, PART, *reads(NAME), "-o", "elsewhere/new.parquet")
    (lake / "elsewhere" / "deeper").mkdir()
    refused(lake, PART, *reads(NAME), "-o", "elsewhere/deeper/new.parquet")


@VERBS
def test_a_paimon_table_of_a_warehouse_is_exported(lake: Path, reads: Reads) -> None:
    pytest.importorskip("pypaimon_rust")
    from testing.paimon_tables import Warehouse

    warehouse = Warehouse(path=str(lake / "warehouse"))
    folder = warehouse.create("id bigint, name string")
    warehouse.sql("insert into t values (1, 'a'), (2, 'b')")
    named = f"paimon://{warehouse.path}/default.t"
    done = run(*reads(named), "-o", "found.parquet")
    assert done.returncode == 0, done.stderr
    assert pq.read_table("found.parquet").num_rows == 2
    refused(lake, "would lie inside a Paimon table", *reads(named), "-o", f"{folder}/new.parquet")


@pytest.mark.parametrize("reads", [by_read, by_sql])
def test_text_in_the_folder_that_is_read_has_a_note(lake: Path, reads: Reads) -> None:
    note = "lies in the folder of the table, its rows in clear"
    for name, is_noted in (("first/x.csv", True), ("first/_x.csv", False), ("x.csv", False)):
        done = run(*reads("first"), "--output", name)
        assert done.returncode == 0
        assert (f"note: {name} {note}" in done.stderr) == is_noted
    # Who names a file reads no folder.
    assert note not in run(*reads("second/day=1/0.parquet"), "-o", "second/day=1/x.csv").stderr
