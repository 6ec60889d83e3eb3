"""An open table answers as the functions of one read do, and is the state at its opening."""

from __future__ import annotations

import gc
import os
import pickle
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import secure_bloom as sb
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.reading.table import table_files
from secure_bloom.reading.table_read import planned_rows
from secure_bloom.storage.inputs import CountedFile
from secure_bloom.storage.local import identity_at
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, keyring_json, write

ROWS, GROUP = 60, 10
EMAIL = "user7@example.com"
WHERE = f"email = '{EMAIL}'"
#: Objects in cycles that a lookup may leave.
MOST_GARBAGE = 32


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two encrypted files in folders that are partitions; all e-mails are in the first one too."""
    lake = tmp_path_factory.mktemp("made") / "lake"
    for day in (1, 2):
        folder = lake / f"day={day}"
        folder.mkdir(parents=True)
        write(folder / "x.parquet", customers(ROWS, day), Mode.ENCRYPTED, row_group_size=GROUP)
    sb.add_bloom_filters(lake, columns=["email"], keys=KEYRING)
    return lake


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    """The lake, of the test alone."""
    return Path(shutil.copytree(made, tmp_path / "lake"))


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


@pytest.mark.parametrize("has_extension", [True])
def test_batches_are_a_stream_that_other_libraries_take(table: sb.Table) -> None:
    wanted = table.read(WHERE)
    for stream in (table.read_batches(WHERE), table.read(WHERE)):
        assert pa.table(stream).equals(wanted)
    for stream in (table.read_batches(WHERE), table.read(WHERE)):
        assert pl.DataFrame(stream)["email"].to_list() == [EMAIL] * 2
    query = duckdb.from_arrow(table.read_batches(WHERE)).select("email")
    assert query.fetchall() == [(EMAIL,)] * 2


def test_an_error_in_a_stream_is_named(lake: Path, table: sb.Table) -> None:
    batches = table.read_batches()
    (lake / "day=2" / "x.parquet").write_bytes((lake / "day=2" / "x.parquet").read_bytes()[:500])
    with pytest.raises(sb.SecureBloomError):
        list(batches)


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
        return sum(isinstance(it, Footer | KeyResolver) for it in gc.get_objects())

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


_LOOKUPS = """
import resource, sys
import secure_bloom as sb

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

lake, memory = sys.argv[1:]
sb.read_table(lake, where="c0 = 'nobody'")
with sb.open_table(lake, memory=memory) as table:
    before = resident()
    for n in range(16):
        table.read(f"c{n} = '030000x'")
    print(resident() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_a_process_keeps_what_fits_into_memory(tmp_path: Path) -> None:
    texts = pa.array([f"{n:06}" for n in range(60_000)]).dictionary_encode()
    names = [f"c{n}" for n in range(16)]
    pq.write_table(pa.table(dict.fromkeys(names, texts)), tmp_path / "x.parquet")
    options = sb.BloomFilterOptions(fpp=1e-7)
    [report] = sb.add_bloom_filters(tmp_path, columns=dict.fromkeys(names, options)).files
    filters = sum(added.bytes or 0 for added in report.filters)
    assert filters >= 16 << 20

    def grown(memory: str) -> int:
        command = [sys.executable, "-c", _LOOKUPS, str(tmp_path), memory]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert grown("256MiB") > filters * 3 // 4
    # Two filters, one after the other: the old one is dropped before its successor is read.
    assert grown("3MiB") < filters // 2


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


# --- What changed meanwhile ---


class Lake:
    """A folder of plain files, and the rows that each of them has."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.rows: dict[str, list[int]] = {}
        self.write()

    def write(self) -> None:
        """Add a file, or put another one in the place of one."""
        name = f"{self.chance.randrange(6)}.parquet"
        self.rows[name] = [self.chance.randrange(40) for _ in range(self.chance.randrange(1, 30))]
        table = pa.table(
            {"n": pa.array(self.rows[name], pa.int64()), "t": map(str, self.rows[name])}
        )
        beside = self.folder / "beside"
        pq.write_table(table, beside, row_group_size=self.chance.choice((3, 10)))
        beside.rename(self.folder / name)

    def add_filters(self) -> None:
        columns = self.chance.choice((["n"], ["t"], ["n", "t"]))
        sb.add_bloom_filters(self.folder, columns=columns, in_place=self.chance.random() < 0.5)

    def remove(self) -> None:
        if len(self.rows) > 1:
            name = self.chance.choice(sorted(self.rows))
            del self.rows[name]
            (self.folder / name).unlink()

    def wanted(self, values: list[int]) -> list[int]:
        return [n for name in sorted(self.rows) for n in self.rows[name] if n in values]


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_right_whatever_happens_to_the_files(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lake = Lake(tmp_path, chance)
    table = sb.open_table(tmp_path, memory=chance.choice((0, 20_000, "256MiB")))
    for _ in range(25):
        # Files that were replaced are read again; others are there after a refresh.
        chance.choice((lake.write, lake.write, lake.add_filters, lake.remove))()
        if chance.random() < 0.5 or set(map(os.path.basename, table.files)) != set(lake.rows):
            table.refresh()
        values = [chance.randrange(45) for _ in range(chance.choice((1, 1, 7)))]
        wanted = lake.wanted(values)
        column, given = chance.choice((("n", values), ("t", [str(n) for n in values])))
        assert table.read([(column, "in", given)]).column("n").to_pylist() == wanted
        if wanted:
            verdicts = map(str, table.probe("n", wanted[0]).verdicts)
            assert set(verdicts) != {"absent"}
    table.close()


def rewritten(path: Path, rows: pa.Table) -> None:
    """Put another file at the path, as writers do: beside it first, then renamed."""
    beside = write(path.with_name("new"), rows, Mode.ENCRYPTED, row_group_size=GROUP)
    beside.rename(path)


def test_new_files_are_seen_after_a_refresh(lake: Path, table: sb.Table) -> None:
    write(lake / "day=2" / "y.parquet", customers(ROWS, 5), Mode.ENCRYPTED)
    table.refresh()
    assert table.files[-1].endswith("y.parquet")
    assert table.read().equals(sb.read_table(lake, keys=KEYRING))


def test_a_refresh_reads_only_what_changed(
    lake: Path, table: sb.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noted(file: CountedFile, *given: Any) -> Footer:
        read.append(file.path)
        return read_footer(file, *given)

    monkeypatch.setattr(table_files, "read_footer", noted)
    table.refresh()
    assert read == []
    new = write(lake / "day=2" / "y.parquet", customers(ROWS, 5), Mode.ENCRYPTED)
    table.refresh()
    assert read == [str(new)]


def test_a_replaced_file_of_a_folder_is_read_anew(lake: Path, table: sb.Table) -> None:
    table.read(WHERE)
    rewritten(lake / "day=1" / "x.parquet", customers(7, 9))
    wanted = sb.read_table(lake, keys=KEYRING)
    assert table.read().equals(wanted)
    assert wanted.num_rows == ROWS + 7
    assert table.read(WHERE).equals(sb.read_table(lake, where=WHERE, keys=KEYRING))
    assert table.explain().rows == wanted.num_rows


def test_filters_that_were_appended_are_used(lake: Path, table: sb.Table) -> None:
    assert {str(verdict) for verdict in table.probe("iban", "x").verdicts} == {"no_filter"}
    sb.add_bloom_filters(lake, columns=["iban"], keys=KEYRING, in_place=True)
    assert {str(verdict) for verdict in table.probe("iban", "x").verdicts} == {"absent"}
    assert table.read().equals(sb.read_table(lake, keys=KEYRING))


def test_a_removed_file_is_an_error_until_a_refresh(lake: Path, table: sb.Table) -> None:
    gone = lake / "day=1" / "x.parquet"
    gone.unlink()
    for ask in (table.read, table.explain, lambda: table.probe("email", EMAIL)):
        with pytest.raises(sb.FileChangedError, match=r"day=1.*changed, or removed") as caught:
            ask()
        assert "refresh()" in (caught.value.hint or "")
    table.refresh()
    assert table.read().equals(sb.read_table(lake, keys=KEYRING))


def test_a_table_that_vanished_is_a_named_error(lake: Path, table: sb.Table) -> None:
    shutil.rmtree(lake)
    with pytest.raises(sb.FileChangedError):
        table.read()
    with pytest.raises(sb.MissingPathError):
        table.refresh()


def delta(folder: Path) -> Path:
    write_deltalake(folder, customers(ROWS))
    write_deltalake(folder, customers(ROWS, 5), mode="append")
    return folder


def test_a_delta_table_is_the_version_at_its_opening(tmp_path: Path) -> None:
    folder = delta(tmp_path / "t")
    with sb.open_table(folder) as table, sb.open_table(folder, version=0) as first:
        assert (table.read().num_rows, first.read().num_rows) == (2 * ROWS, ROWS)
        write_deltalake(folder, customers(ROWS, 6), mode="append")
        assert (table.read().num_rows, first.read().num_rows) == (2 * ROWS, ROWS)
        table.refresh()
        first.refresh()
        assert (table.read().num_rows, first.read().num_rows) == (3 * ROWS, ROWS)


def test_another_file_in_a_version_is_an_error_with_a_hint(tmp_path: Path) -> None:
    folder = delta(tmp_path / "t")
    with sb.open_table(folder, version=1) as table:
        write(Path(table.files[0]), customers(3))
        with pytest.raises(sb.FileChangedError) as caught:
            table.read()
        assert "refresh()" in (caught.value.hint or "")


def test_a_version_that_does_not_exist_is_a_named_error(tmp_path: Path) -> None:
    folder = delta(tmp_path / "t")
    with pytest.raises(sb.PolicyError, match="7") as caught:
        sb.open_table(folder, version=7)
    assert caught.value.hint


# --- Threads and processes ---


def test_several_threads_use_one_table(lake: Path, table: sb.Table) -> None:
    emails = customers(ROWS, 1)["email"].to_pylist()[:20]
    wanted = {email: sb.read_table(lake, where={"email": email}, keys=KEYRING) for email in emails}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda email: table.read({"email": email}), emails * 2))
    assert all(rows.equals(wanted[email]) for rows, email in zip(found, emails * 2, strict=True))


def test_what_is_counted_is_what_is_kept_whatever_threads_do(
    tmp_path: Path, trials: Callable[[int], int]
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for part in range(4):
        write(lake / f"{part}.parquet", customers(ROWS, part), Mode.PLAIN, row_group_size=GROUP)
    sb.add_bloom_filters(lake, columns=["email", "id"])

    def ask(table: sb.Table) -> None:
        for where in (WHERE, "id = 3", "city = 'Berlin'"):
            table.read(where)

    def refresh_and_ask(table: sb.Table, thread: int) -> None:
        for turn in range(trials(60)):
            # A file may change twice while it is read.
            with suppress(sb.FileChangedError):
                table.refresh()
                ask(table)
            if thread == 0 and turn % 10 == 0:
                # Another file: what is kept of the one before is given back.
                shutil.copy(lake / "0.parquet", lake / "0.new")
                (lake / "0.new").rename(lake / "0.parquet")

    with sb.open_table(lake) as table, ThreadPoolExecutor(4) as threads:
        list(threads.map(refresh_and_ask, [table] * 4, range(4)))
        table.refresh()
        ask(table)
        with sb.open_table(lake) as anew:
            ask(anew)
            # Of filters a replaced file may leave room, which is kept and counted.
            footers, filters = repr(table).split(" of footers")
            assert footers == repr(anew).split(" of footers")[0]
            assert "KiB of filters" in filters


def test_a_file_that_is_replaced_often_leaves_nothing(tmp_path: Path) -> None:
    for part in range(2):
        write(tmp_path / f"{part}.parquet", customers(ROWS, part), Mode.PLAIN, row_group_size=GROUP)
    with sb.open_table(tmp_path) as table:
        for _ in range(5):
            shutil.copy(tmp_path / "0.parquet", tmp_path / "0.new")
            (tmp_path / "0.new").rename(tmp_path / "0.parquet")
            table.refresh()
            table.read(WHERE)
        with sb.open_table(tmp_path) as anew:
            anew.read(WHERE)
            assert repr(table) == repr(anew)


def test_a_refresh_that_fails_leaves_the_count(lake: Path, table: sb.Table) -> None:
    table.read(WHERE)
    before = repr(table)
    damaged = lake / "day=3" / "x.parquet"
    damaged.parent.mkdir()
    damaged.write_bytes(b"PAR1 is no footer PAR1")
    for _ in range(3):
        with pytest.raises(sb.FormatError):
            table.refresh()
    assert repr(table) == before


def test_a_forked_process_uses_the_table(lake: Path, table: sb.Table) -> None:
    wanted = table.read(WHERE)
    child = os.fork()
    if child == 0:
        same = table.read(WHERE).equals(wanted) and table.read().num_rows == 2 * ROWS
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_pickled_table_opens_again_by_its_policy(lake: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    kms = '[kms]\nclient = "keyring"\nkeyring = "keys.json"\n'
    policy.write_text(f'{kms}[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\n')
    (tmp_path / "keys.json").write_text(keyring_json())
    with sb.open_table(lake, policy=policy, allow_unprotected=True) as table:
        content = pickle.dumps(table)
        assert not any(secret in content for secret in MASTER_KEYS.values())
        assert pickle.loads(content).read(WHERE).equals(table.read(WHERE))


def test_keys_are_not_pickled(table: sb.Table) -> None:
    with pytest.raises(sb.PolicyError, match="keys are not pickled") as caught:
        pickle.dumps(table)
    assert "policy=" in (caught.value.hint or "")


# --- How often files are looked at, and what a lookup leaves behind ---


def test_files_are_not_looked_at_again_before_they_are_stale(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []

    def noted(path: str) -> object:
        looked_at.append(path)
        return identity_at(path)

    monkeypatch.setattr(table_files, "identity_at", noted)
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with sb.open_table(lake, keys=KEYRING, stale_after=5) as table:
        for seconds, looks in ((0, 2), (4.9, 0), (0.2, 2), (1, 0)):
            now[0] += seconds
            looked_at.clear()
            assert table.read(WHERE).num_rows == 2
            assert len(looked_at) == looks


def test_rows_of_a_changed_file_are_never_stale(lake: Path) -> None:
    with sb.open_table(lake, keys=KEYRING, stale_after=1000) as table:
        before = table.read(WHERE)
        assert before.num_rows == 2
        path = lake / "day=1" / "x.parquet"
        write(path, customers(ROWS, 9), Mode.ENCRYPTED, row_group_size=GROUP)
        found = table.read(WHERE)
    assert found.equals(sb.read_table(lake, where=WHERE, keys=KEYRING))


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_files_are_stale_after_a_number_of_seconds(lake: Path, seconds: float) -> None:
    with pytest.raises(sb.PolicyError, match="stale_after"):
        sb.open_table(lake, keys=KEYRING, stale_after=seconds)


def test_a_lookup_starts_no_thread(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sb.open_table(lake, keys=KEYRING) as table:
        table.read(WHERE)
        monkeypatch.setattr(threading.Thread, "start", None)
        assert table.read(WHERE).num_rows == 2
        assert table.read("email = 'nobody@example.com'").num_rows == 0


@pytest.mark.parametrize("where", [WHERE, "email = 'nobody@example.com'"])
def test_lookups_leave_little_to_the_garbage_collector(table: sb.Table, where: str) -> None:
    for _ in range(3):
        table.read(where)
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            table.read(where)
        assert gc.collect() <= 50 * MOST_GARBAGE
    finally:
        gc.enable()
