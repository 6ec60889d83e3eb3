"""An open table answers as the functions of one read do, and is the state at its opening."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import secure_bloom as sb
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.reading.planned_rows import planned_rows
from secure_bloom.reading.table.footer import FileFooter
from testing.tables import KEYRING, Mode, customers, write

ROWS, GROUP = 60, 10
EMAIL = "user7@example.com"
WHERE = f"email = '{EMAIL}'"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two encrypted files in folders that are partitions; all e-mails are in the first one too."""
    for day in (1, 2):
        folder = tmp_path / "lake" / f"day={day}"
        folder.mkdir(parents=True)
        write(folder / "x.parquet", customers(ROWS, day), Mode.ENCRYPTED, row_group_size=GROUP)
    sb.add_bloom_filters(tmp_path / "lake", columns=["email"], keys=KEYRING)
    return tmp_path / "lake"


@pytest.fixture
def table(lake: Path) -> Iterator[sb.Table]:
    with sb.open_table(lake, keys=KEYRING) as opened:
        yield opened


# --- One answer ---

CONDITIONS = [
    None,
    WHERE,
    [("email", "in", [EMAIL, "nobody"]), ("day", "=", 2)],
    pc.field("email") == "nobody",
]


@pytest.mark.parametrize("where", CONDITIONS, ids=str)
@pytest.mark.parametrize("columns", [None, ["day", "email"]])
def test_rows_are_those_of_one_read(
    lake: Path, table: sb.Table, where: sb.Where | None, columns: list[str] | None
) -> None:
    wanted = sb.read_table(lake, where=where, columns=columns, keys=KEYRING)
    for _ in range(3):
        assert table.read(where, columns=columns).equals(wanted)
    batches = table.read_batches(where=where, columns=columns)
    assert pa.Table.from_batches(batches, wanted.schema).equals(wanted)


def test_a_limit_ends_a_read(table: sb.Table) -> None:
    assert table.read(limit=7).num_rows == 7


def test_an_explanation_is_that_of_one_read(lake: Path, table: sb.Table) -> None:
    report, wanted = table.explain(WHERE), sb.explain(lake, where=WHERE, keys=KEYRING)
    assert (report.rows, report.skipped) == (wanted.rows, wanted.skipped)
    assert report.skipped["Bloom filter"] > 0


def test_a_plan_is_carried_out_elsewhere(table: sb.Table) -> None:
    plan = table.plan(WHERE)
    rows = [batch for file in plan.files for batch in planned_rows(plan, file, KEYRING)]
    assert pa.Table.from_batches(rows, plan.schema).equals(table.read(WHERE))


def test_the_schema_and_the_files_are_shown(lake: Path, table: sb.Table) -> None:
    assert table.schema == sb.read_table(lake, keys=KEYRING).schema
    assert table.schema.names[-1] == "day"
    assert table.files == [str(lake / f"day={day}" / "x.parquet") for day in (1, 2)]


# --- The state at its opening ---


def test_a_file_that_came_later_is_not_seen(lake: Path, table: sb.Table) -> None:
    before = table.read()
    write(lake / "day=2" / "y.parquet", customers(ROWS, 5), Mode.ENCRYPTED)
    assert table.read().equals(before)
    assert len(table.files) == 2


def test_the_listing_and_the_footers_are_not_read_again(
    table: sb.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = table.read(WHERE)
    assert wanted.num_rows == 2
    for name in ("list_tables", "read_footer"):
        monkeypatch.delattr(f"secure_bloom.reading.table.table_files.{name}")
    assert table.read(WHERE).equals(wanted)


def test_what_cannot_be_read_is_an_error_of_the_opening(lake: Path) -> None:
    with pytest.raises(sb.KeyUnavailableError):
        sb.open_table(lake)
    with pytest.raises(sb.MissingPathError):
        sb.open_table(lake / "nowhere", keys=KEYRING)


# --- Its end ---


def test_a_closed_table_is_an_error_with_a_hint(lake: Path) -> None:
    with sb.open_table(lake, keys=KEYRING) as table:
        assert table.read(WHERE).num_rows == 2
    for ask in (
        table.read,
        table.read_batches,
        table.explain,
        table.plan,
        lambda: table.probe("email", EMAIL),
        lambda: table.schema,
        lambda: table.files,
    ):
        with pytest.raises(sb.PolicyError, match="the table is closed") as caught:
            ask()
        assert "open_table" in (caught.value.hint or "")
    table.close()


def test_keys_and_footers_are_dropped_when_it_is_closed(lake: Path) -> None:
    def held() -> int:
        gc.collect()
        return sum(isinstance(it, FileFooter | KeyResolver) for it in gc.get_objects())

    before = held()
    table = sb.open_table(lake, keys=KEYRING)
    table.read(WHERE)
    assert held() >= before + 3
    table.close()
    assert held() == before


# --- How it is shown ---


def test_it_is_shown_in_a_line(lake: Path, table: sb.Table) -> None:
    assert repr(table).startswith(f"<Table {lake}: 2 files")
    table.close()
    assert repr(table) == f"<Table {lake}: closed>"


def test_a_notebook_shows_its_columns(table: sb.Table) -> None:
    shown = table._repr_html_()
    assert "<td>email</td><td>string</td>" in shown
    assert "2 files" in shown
    table.close()
    assert "closed" in table._repr_html_()


# --- What is asked ---


@pytest.mark.parametrize(
    ("memory", "message"),
    [("lots", "memory is 'lots', wanted a size"), (-1, "memory is -1, wanted a size")],
)
def test_memory_is_a_size(lake: Path, memory: object, message: str) -> None:
    with pytest.raises(sb.PolicyError, match=message) as caught:
        sb.open_table(lake, keys=KEYRING, memory=memory)  # type: ignore[arg-type]
    assert caught.value.hint == 'write memory="256MiB" or a number'


@pytest.mark.parametrize("memory", [0, 10**6, "1MiB", "256 MiB"])
def test_answers_do_not_depend_on_the_memory(lake: Path, memory: int | str) -> None:
    wanted = sb.read_table(lake, where=WHERE, keys=KEYRING)
    with sb.open_table(lake, keys=KEYRING, memory=memory) as table:
        for _ in range(3):
            assert table.read(WHERE).equals(wanted)


def test_what_makes_no_sense_is_a_named_error(table: sb.Table) -> None:
    with pytest.raises(sb.PolicyError, match="emial"):
        table.read("emial = 'x'")
    with pytest.raises(sb.PolicyError, match="emial"):
        table.probe("emial", "x")
    with pytest.raises(sb.PolicyError, match="score"):
        table.read("score = 'x'")
    with pytest.raises(sb.PolicyError, match="limit is of type str, wanted a whole number or None"):
        table.read(limit="7")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"read\(\) got an unexpected keyword argument 'wher'"):
        table.read(wher="x")  # type: ignore[call-arg]
