"""The files of a table, planned: which are opened again, what is said when, and how many."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import secure_bloom as sb
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import (
    FileChangedError,
    IntegrityError,
    KeyUnavailableError,
)
from secure_bloom.lakes.hive_partitions import partition_fields
from secure_bloom.parquet.structures import records
from secure_bloom.predicates.bound_request import request
from secure_bloom.reading import ReadRequest, table_read
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.plan import FilePlan, Step
from secure_bloom.reading.pruning.plan_table import PlannedFiles, PlannedRun, Planner, StartedFile
from secure_bloom.reading.rows.units import Unit
from secure_bloom.reading.table import table_files
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.storage import CountedFile, InputFile, open_input
from testing.surgery import Opened, edit_footer, filter_place, flip
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, write

T = TypeVar("T")

#: Far longer than anything here takes: a test that would hang fails.
_PATIENCE = 10.0


def part(index: int, rows: int = 20) -> pa.Table:
    """Rows of one file: their numbers are in no other file, their names between those of all."""
    ids = range(index * rows, (index + 1) * rows)
    names = [f"name {i * 7919 % 1000:03}" for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names})


def lake(folder: Path, files: int, mode: Mode = Mode.PLAIN) -> list[Path]:
    """Files of two row groups, in folders that are partitions: each has its own day."""
    paths = []
    for index in range(files):
        path = folder / f"day={index:02}" / "x.parquet"
        path.parent.mkdir()
        options: dict[str, Any] = {"row_group_size": 10, "use_dictionary": False}
        keys = {"k_pii": ["id"], "k_finance": ["name"]}
        paths.append(write(path, part(index), mode, column_keys=keys, **options))
    return paths


class Asked:
    """A where of a table whose footers were read."""

    def __init__(self, where: Any, files: TableFiles, options: dict[str, Any]) -> None:
        fields = partition_fields(files.state.partitions)
        predicate = ReadRequest("", where=where).predicate()
        self.files = files
        wanted = request(files.whole_schema, fields, None, predicate, files.paths)
        self.context = PruningContext(wanted, **options)

    def __iter__(self) -> Iterator[PlannedRun]:
        return iter(PlannedFiles(self.files, self.context))

    def plans(self) -> list[FilePlan]:
        return [plan for found in self for plan in found.plans]

    def by_footer(self) -> FilePlan | None:
        """The plan of the first file, where its footer tells enough."""
        planner = Planner(self.context)
        return planner.plan_by_footer(self._begin(planner))

    def by_file(self) -> FilePlan:
        """The plan of the first file, whose footer does not tell enough."""
        planner = Planner(self.context)
        started = self._begin(planner)
        assert planner.plan_by_footer(started) is None
        with open_input(self.files.paths[0]) as file:
            return planner.plan(started, lambda: CountedFile(file))

    def _begin(self, planner: Planner) -> StartedFile:
        footer = self.files.kept(0)
        assert footer is not None
        return planner.begin(footer, self.files.state.partitions[0])


def planned_for(where: Any, *paths: Path, keys: Keyring = KEYRING, **options: Any) -> Asked:
    return Asked(where, TableFiles([str(path) for path in paths], KeyResolver(keys)), options)


def paths_of(plans: Iterable[FilePlan]) -> list[str]:
    return [plan.path for plan in plans]


def left(plans: list[FilePlan]) -> dict[str, list[int]]:
    """The row groups that are left, of files that have some."""
    found = {plan.path: [group.row_group for group in plan.surviving] for plan in plans}
    return {path: groups for path, groups in found.items() if groups}


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was opened, for its footer and to be planned."""
    counts: Counter[str] = Counter()

    def spy(path: str, size: int | None = None) -> InputFile:
        counts[path] += 1
        return open_input(path)

    # A read opens a file for its footer by the first, and for its rows by the second.
    for opener in ("open_pinned", "open_input"):
        monkeypatch.setattr(f"secure_bloom.lakes.table_listing.{opener}", spy)
    return counts


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose planning was started."""
    found: list[str] = []
    real = Planner.begin

    def spy(self: Planner, footer: Any, *known: Any) -> Any:
        found.append(footer.path)
        return real(self, footer, *known)

    monkeypatch.setattr(Planner, "begin", spy)
    return found


def _again(paths: list[Path], *those: int) -> dict[str, int]:
    """How often files are opened if only those are opened again."""
    return {str(path): 1 + (index in those) for index, path in enumerate(paths)}


# --- The same answers ---


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Tiny files in four folders, some have filters."""
    folder, paths = tmp_path_factory.mktemp("tiny"), []
    for index in range(300):
        path = folder / f"{index:03}" / f"part={index % 4}" / "x.parquet"
        path.parent.mkdir(parents=True)
        names = ["x", f"n{index}", f"m{index % 7}"]
        table = pa.table({"id": [3 * index, None, 3 * index + 1], "name": names})
        paths.append(str(write(path, table, row_group_size=2)))
    assert not sb.add_bloom_filters(paths[::9], columns=["name"]).failed
    return paths


def _questions(files: int) -> list[pc.Expression | None]:
    """With rows in all files, in some, in the last one, in none."""
    last, name, row = files - 1, pc.field("name"), pc.field("id")
    return [
        None,
        row == 3 * last,
        row == -1,
        name.isin(["n0", f"n{last}", "nobody"]),
        (name == "x") & (row >= 3 * last),
        pc.field("part") == last % 4,
        (pc.field("part") == 0) & (name == "m0"),
        (pc.field("part") == 0) | (name == f"n{last}"),
    ]


@pytest.mark.parametrize("files", [1, 2, 9, 10, pytest.param(300, marks=pytest.mark.slow)])
def test_rows_are_those_that_pyarrow_finds(tiny: list[str], files: int) -> None:
    dataset = ds.dataset(tiny[:files], partitioning="hive")
    # Of many files not all is asked: what matters is where their runs end.
    for where in _questions(files)[:: 5 if files > 100 else 1]:
        wanted = dataset.to_table(filter=where)
        assert sb.read_table(tiny[:files], where=where).equals(wanted), str(where)


@pytest.mark.parametrize("room", [0, 10_000, 1 << 26])
@pytest.mark.parametrize("workers", [1, 3])
def test_plans_depend_on_neither_threads_nor_what_is_kept(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch, room: int, workers: int
) -> None:
    paths = [Path(path) for path in tiny[:12]]
    for where in _questions(12):
        wanted = left(planned_for(where, *paths).plans())
        with monkeypatch.context() as patched:
            patched.setattr(table_files, "_KEPT_FOOTERS", room)
            table = planned_for(where, *paths)
        table.files.workers = workers
        plans = table.plans()
        assert paths_of(plans) == list(wanted)
        assert left(plans) == wanted


# --- Which plans there are ---

_IN_SOME = [("id", "in", [25, 205])]


@pytest.mark.parametrize("room", [0, 1 << 26])
@pytest.mark.parametrize("workers", [1, 3])
def test_files_without_rows_have_a_plan_only_where_that_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, room: int
) -> None:
    paths = [str(path) for path in lake(tmp_path, 12)]
    monkeypatch.setattr(table_files, "_KEPT_FOOTERS", room)
    for where, wanted in [
        (None, paths),
        (_IN_SOME, [paths[1], paths[10]]),
        ([("day", "=", 11)], paths[11:]),
        ([("id", "=", -1)], []),
    ]:
        for explain in (False, True):
            table = planned_for(where, tmp_path, explain=explain)
            table.files.workers = workers
            runs = list(table)
            plans = [plan for found in runs for plan in found.plans]
            assert paths_of(plans) == (paths if explain else wanted), where
            assert list(left(plans)) == wanted, where
            # Those that were dropped were planned all the same.
            assert sum(found.files for found in runs) == 12


def test_a_file_that_only_its_filter_rules_out_has_no_plan(tmp_path: Path) -> None:
    paths = lake(tmp_path, 2)
    assert not sb.add_bloom_filters(paths[0], columns=["name"]).failed
    where = [("name", "=", "name 500 and more")]
    assert paths_of(planned_for(where, tmp_path).plans()) == [str(paths[1])]
    first, _ = planned_for(where, tmp_path, explain=True).plans()
    assert [group.skipped_by for group in first.row_groups] == [Step.BLOOM_FILTER] * 2


@pytest.mark.parametrize("where", [None, _IN_SOME])
def test_files_whose_footers_are_not_kept_are_planned_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any
) -> None:
    lake(tmp_path, 12)
    monkeypatch.setattr(table_files, "_KEPT_FOOTERS", 0)
    assert [found.files for found in planned_for(where, tmp_path)] == [1] * 12


def test_files_with_large_footers_are_planned_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = lake(tmp_path, 12)
    monkeypatch.setattr(table_files, "_TOGETHER", 1)
    table = planned_for(_IN_SOME, tmp_path)
    assert [(found.files, paths_of(found.plans)) for found in table] == [
        (1, [str(path)] if index in (1, 10) else []) for index, path in enumerate(paths)
    ]


# --- What is opened again ---


@pytest.mark.parametrize("mode", list(Mode))
def test_a_file_that_its_footer_rules_out_is_not_opened_again(
    tmp_path: Path, mode: Mode, opens: Counter[str]
) -> None:
    paths = lake(tmp_path, 12, mode)
    where = [("id", "in", [25, 205])]
    assert sb.read_table(tmp_path, where=where, keys=KEYRING).column("id").to_pylist() == [25, 205]
    # Of those that are left no filter is read.
    assert opens == _again(paths)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_file_that_its_folder_rules_out_is_not_opened_again(
    tmp_path: Path, mode: Mode, opens: Counter[str]
) -> None:
    paths = lake(tmp_path, 12, mode)
    where = [("day", "in", [0, 11]), ("name", ">=", "")]
    assert sb.read_table(tmp_path, where=where, keys=KEYRING).num_rows == 40
    assert opens == _again(paths)


def test_a_file_without_the_column_is_not_opened_again(tmp_path: Path, opens: Counter[str]) -> None:
    paths = lake(tmp_path, 12)
    write(paths[2], part(2).rename_columns(["id", "other"]))
    assert sb.read_table(tmp_path, where=[("other", ">=", "")]).num_rows == 20
    assert opens == _again(paths)


def test_without_a_condition_no_file_is_opened_to_be_planned(
    tmp_path: Path, opens: Counter[str]
) -> None:
    paths = lake(tmp_path, 12)
    assert len(sb.plan_read(tmp_path).files) == 12
    assert opens == _again(paths)


def test_a_file_whose_footer_was_not_kept_is_opened_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens: Counter[str]
) -> None:
    paths = lake(tmp_path, 12)
    monkeypatch.setattr(table_files, "_KEPT_FOOTERS", 0)
    assert sb.read_table(tmp_path, where=[("id", "=", 25)]).num_rows == 1
    assert opens == _again(paths, *range(12))


# --- What is kept, and what is planned ---


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("where", [None, [("id", "=", 25)], [("day", "=", 11)]])
def test_a_footer_is_forgotten_once_its_file_is_planned(
    tmp_path: Path, where: Any, workers: int
) -> None:
    table = planned_for(where, *lake(tmp_path, 12))
    table.files.workers = workers
    done = 0
    for found in table:
        done += found.files
        kept = [table.files.kept(n) is not None for n in range(12)]
        assert kept == [False] * done + [True] * (12 - done)
    assert done == 12


def test_files_are_planned_when_their_plans_are_wanted(tmp_path: Path, started: list[str]) -> None:
    paths = [str(path) for path in lake(tmp_path, 12)]
    runs = iter(planned_for([("id", "=", 25)], tmp_path, explain=True))
    assert started == []
    # The first alone, so that the first rows come soon.
    assert paths_of(next(runs).plans) == started == paths[:1]
    more = paths_of(next(runs).plans)
    assert [*paths[:1], *more] == started
    assert 1 < len(started) < 12
    assert paths_of(next(runs).plans) == paths[1 + len(more) :]
    assert next(runs, None) is None


@pytest.mark.parametrize("where", [None, [("id", ">=", 60)]])
def test_a_limit_spares_the_planning_of_what_is_behind_it(
    tmp_path: Path, started: list[str], where: Any
) -> None:
    # One thread reads tiny files: with more, planning goes on while the first rows are decoded.
    paths = [str(path) for path in lake(tmp_path, 30)]
    found = sb.read_table(tmp_path, where=where, limit=1).column("id").to_pylist()
    assert found == ([0] if where is None else [60])
    assert started == paths[: len(started)]
    assert len(started) == 1 if where is None else 4 <= len(started) < 15


# --- Files that were changed ---


def _changed(paths: list[Path], index: int, where: Any, **options: Any) -> list[int]:
    """The numbers that are read if a file is replaced when all footers were read."""
    batches = sb.read_batches(paths, where=where, keys=KEYRING, **options)
    write(paths[index], part(99))
    return [number for batch in batches for number in batch.column("id").to_pylist()]


@pytest.mark.parametrize("room", [0, 1 << 26])
@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
@pytest.mark.parametrize("where", [None, [("id", "in", [5, 65])], [("day", ">=", 1)]])
def test_a_file_that_was_changed_and_must_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, where: Any, room: int
) -> None:
    monkeypatch.setattr(table_files, "_KEPT_FOOTERS", room)
    paths = lake(tmp_path, 5, mode)
    with pytest.raises(FileChangedError) as caught:
        _changed(paths, 3, where)
    assert caught.value.path == str(paths[3])


def test_a_file_that_was_changed_and_its_folder_rules_out_is_none(tmp_path: Path) -> None:
    paths = lake(tmp_path, 5)
    assert _changed(paths, 3, [("day", "=", 2)]) == list(range(40, 60))


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
def test_a_file_that_was_changed_and_its_footer_rules_out_is_none(
    tmp_path: Path, mode: Mode
) -> None:
    paths = lake(tmp_path, 5, mode)
    assert _changed(paths, 3, [("id", "in", [5, 45])]) == [5, 45]


# --- Errors at their turn ---


def _damage(path: Path, column: int = 0) -> None:
    """Alter the encrypted metadata of a chunk in a footer that is whole."""

    def change(it: Opened) -> None:
        chunk = it.footer.metadata.row_groups[1].columns[column]
        module = bytearray(chunk.encrypted_column_metadata or b"")
        module[-1] ^= 1
        chunk.encrypted_column_metadata = bytes(module)

    edit_footer(path, change)


def _until_error(items: Iterable[T]) -> tuple[list[T], IntegrityError]:
    """What comes before the error, and the error."""
    found: list[T] = []
    with pytest.raises(IntegrityError) as caught:
        found.extend(items)
    return found, caught.value


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("bad", [0, 1, 5, 9])
def test_an_error_comes_behind_the_plans_of_the_files_before(
    tmp_path: Path, bad: int, workers: int
) -> None:
    paths = lake(tmp_path, 12, Mode.ENCRYPTED)
    _damage(paths[bad])
    _damage(paths[bad + 1])
    # Every file has one of them.
    table = planned_for([("id", "in", list(range(5, 240, 20)))], tmp_path)
    table.files.workers = workers
    runs, error = _until_error(table)
    plans = [plan for found in runs for plan in found.plans]
    assert paths_of(plans) == [str(path) for path in paths[:bad]]
    assert (error.path, error.row_group, error.column) == (str(paths[bad]), 1, "id")


def test_of_two_files_that_are_damaged_the_first_is_blamed(tmp_path: Path) -> None:
    """It is noticed last: its filter is read when the metadata of the other are at fault."""
    paths = lake(tmp_path, 4, Mode.ENCRYPTED)
    assert not sb.add_bloom_filters(paths[1], columns=["name"], keys=KEYRING).failed
    flip(paths[1], filter_place(paths[1], 0, "name").stop - 1)
    _damage(paths[2], 1)
    with pytest.raises(IntegrityError) as caught:
        planned_for([("name", "=", "name 500")], tmp_path).plans()
    assert (caught.value.path, caught.value.row_group) == (str(paths[1]), 0)


# --- Rows before errors ---


@pytest.fixture(params=[1, 2])
def _decoders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread that decodes, or two, that have nothing decoded when planning has failed."""
    if request.param == 1:
        return
    monkeypatch.setattr(os, "cpu_count", lambda: request.param)
    monkeypatch.setattr(table_files, "TINY", 0)
    failed, read = threading.Event(), Unit.read

    class Telling(PlannedFiles):
        def __iter__(self) -> Iterator[PlannedRun]:
            try:
                yield from PlannedFiles.__iter__(self)
            finally:
                failed.set()

    def waiting(self: Unit) -> pa.Table:
        failed.wait(_PATIENCE)
        return read(self)

    monkeypatch.setattr(table_read, "PlannedFiles", Telling)
    monkeypatch.setattr(Unit, "read", waiting)


@pytest.mark.usefixtures("_decoders")
@pytest.mark.parametrize("good", [1, 2])
def test_rows_of_the_files_before_come_before_an_error(tmp_path: Path, good: int) -> None:
    paths = lake(tmp_path, good + 1, Mode.ENCRYPTED)
    _damage(paths[good])
    found, error = _until_error(
        sb.read_batches(tmp_path, where=[("id", ">=", 5)], keys=KEYRING),
    )
    assert (error.path, error.row_group, error.column) == (str(paths[good]), 1, "id")
    assert [n for batch in found for n in batch.column("id").to_pylist()] == [*range(5, 20 * good)]


@pytest.mark.usefixtures("_decoders")
def test_an_error_behind_a_limit_is_none(tmp_path: Path) -> None:
    paths = lake(tmp_path, 2, Mode.ENCRYPTED)
    _damage(paths[1])
    rows = sb.read_table(tmp_path, where=[("id", ">=", 5)], limit=3, keys=KEYRING)
    assert rows.column("id").to_pylist() == [5, 6, 7]


# --- One file: what its footer tells, and the rest ---


def test_without_a_condition_all_is_known_from_the_footer(tmp_path: Path) -> None:
    plan = planned_for(None, *lake(tmp_path, 1)).by_footer()
    assert plan is not None
    assert [group.row_group for group in plan.surviving] == [0, 1]
    assert plan.extents == ()


@pytest.mark.parametrize(
    ("where", "step"),
    [
        ([("day", "=", 7)], Step.PARTITION),
        ([("day", "=", 7), ("id", "=", 3)], Step.PARTITION),
        ([("id", "=", -1)], Step.STATISTICS),
    ],
)
def test_what_folders_and_bounds_rule_out_is_explained_from_the_footer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, step: Step
) -> None:
    paths = lake(tmp_path, 1)
    assert not sb.add_bloom_filters(paths, columns=["id"]).failed
    plan = planned_for(where, *paths, explain=True).by_footer()
    assert plan is not None
    skipped = [(group.row_group, group.skipped_by) for group in plan.row_groups]
    assert (skipped, plan.extents) == ([(0, step), (1, step)], ())
    # It is the same where the file is opened all the same, as when its footer was not kept.
    monkeypatch.setattr(table_files, "_KEPT_FOOTERS", 0)
    (other,) = planned_for(where, *paths, explain=True).plans()
    assert (other.row_groups, other.extents) == (plan.row_groups, ())


@pytest.mark.parametrize("mode", list(Mode))
def test_what_the_bounds_rule_out_is_known_from_the_footer(tmp_path: Path, mode: Mode) -> None:
    paths = lake(tmp_path, 1, mode)
    assert not sb.add_bloom_filters(paths, columns=["id"], keys=KEYRING).failed
    plan = planned_for([("id", "in", [-1, 20])], *paths).by_footer()
    assert plan is not None
    assert (plan.surviving, plan.extents, plan.path) == ((), (), str(paths[0]))


@pytest.mark.parametrize("where", [[("id", "=", 13)], [("day", "=", 0), ("id", "=", 13)]])
def test_what_the_footer_leaves_is_pruned_by_the_open_file(tmp_path: Path, where: Any) -> None:
    paths = lake(tmp_path, 1, Mode.ENCRYPTED)
    assert not sb.add_bloom_filters(paths, columns=["id"], keys=KEYRING).failed
    plan = planned_for(where, *paths).by_file()
    assert [group.row_group for group in plan.surviving] == [1]
    place = filter_place(paths[0], 1, "id")
    assert plan.extents == ((place.start, place.stop),)


def test_explained_a_row_group_has_the_step_that_ruled_it_out(tmp_path: Path) -> None:
    table = planned_for([("id", "=", 13)], *lake(tmp_path, 1), explain=True)
    steps = [group.skipped_by for group in table.by_file().row_groups]
    assert steps == [Step.STATISTICS, None]


def test_a_key_that_is_missing_is_an_error_of_the_rows_that_are_left(tmp_path: Path) -> None:
    paths = lake(tmp_path, 1, Mode.ENCRYPTED)
    some = Keyring(master_keys={k: v for k, v in MASTER_KEYS.items() if k != "k_finance"})
    name = ("name", "=", "name 500")
    with pytest.raises(KeyUnavailableError) as caught:
        planned_for([name, ("id", "=", 3)], *paths, keys=some).by_file()
    assert caught.value.column == "name"
    none_left = planned_for([name, ("id", "=", -1)], *paths, keys=some).by_footer()
    assert none_left is not None
    assert none_left.surviving == ()
    given = planned_for([name, ("id", "=", 3)], *paths, keys=some, without_filter_keys=True)
    assert [group.row_group for group in given.by_file().surviving] == [0]


ROWS = 200


def _lake(folder: Path, mode: Mode) -> Path:
    for part in range(3):
        write(folder / f"{part}.parquet", customers(ROWS, part), mode, row_group_size=50)
    report = sb.add_bloom_filters(folder, columns=["email", "id"], keys=KEYRING)
    assert not report.failed
    return folder


@pytest.mark.parametrize("mode", list(Mode))
def test_without_the_librarys_c_code_the_same_rows_are_read(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path, mode)
    where = [("email", "in", ["user7@example.com", "nobody"]), ("id", "<", 100)]
    rows = sb.read_table(lake, where=where, keys=KEYRING)
    assert rows.num_rows == 3
    monkeypatch.setattr(records, "HAS_C_CODE", False)
    assert sb.read_table(lake, where=where, keys=KEYRING) == rows


@pytest.mark.parametrize("has_extension", [False])
@pytest.mark.parametrize("mode", list(Mode))
def test_only_chunks_of_the_predicates_columns_are_decoded(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path, mode)
    decoded: list[int] = []
    read = records.StructReader.read

    def counted(self: records.StructReader, start: int, record: object) -> int:
        if type(record).__name__ == "ColumnChunk":
            decoded.append(start)
        return read(self, start, record)

    monkeypatch.setattr(records.StructReader, "read", counted)
    where = [("email", "=", "nobody@nowhere")]
    assert sb.read_table(lake, where=where, keys=KEYRING).num_rows == 0
    assert len(decoded) == 3 * (ROWS // 50)


def test_footers_that_are_not_kept_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path, Mode.ENCRYPTED)
    where = [("email", "=", "user7@example.com")]
    rows = sb.read_table(lake, where=where, keys=KEYRING)
    monkeypatch.setattr("secure_bloom.reading.table.table_files._KEPT_FOOTERS", 0)
    assert sb.read_table(lake, where=where, keys=KEYRING) == rows
    assert rows.num_rows == 3
