"""The files of one read: their footers, kept while there is room, and files opened once more."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import (
    FileChangedError,
    FormatError,
    IntegrityError,
    PolicyError,
    SecureBloomError,
)
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.reading.table import table_files
from secure_bloom.reading.table.table_files import TableFiles
from testing.surgery import flip
from testing.tables import KEYRING, Mode, customers, made_once, write

FILES, ROWS = 12, 40
MODES = list(Mode)
EMAIL = [("email", "in", ["user7@example.com", "user39@example.com"])]


def lake(folder: Path) -> list[Path]:
    """Files in all modes, in folders that are partitions."""
    _write_lake(folder)
    return [folder / f"day={index:02}" / "x.parquet" for index in range(FILES)]


@made_once
def _write_lake(folder: Path) -> None:
    for index in range(FILES):
        path = folder / f"day={index:02}" / "x.parquet"
        path.parent.mkdir()
        write(path, customers(ROWS, index), MODES[index % 4], row_group_size=10)


def table(*paths: Path) -> TableFiles:
    files = TableFiles([str(path) for path in paths], KeyResolver(KEYRING))
    _ = files.schema  # all footers are read for it
    return files


def places(files: TableFiles) -> list[int]:
    """The files whose footers are kept."""
    return [ordinal for ordinal in range(len(files)) if files.kept(ordinal) is not None]


def memory(files: TableFiles) -> list[int]:
    """What the footers that are kept take in memory."""
    return [footer.memory for n in range(len(files)) if (footer := files.kept(n))]


@pytest.fixture
def keep(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set how many bytes of footers are kept."""
    return lambda room: monkeypatch.setattr(table_files, "_KEPT_FOOTERS", room)


@pytest.fixture
def as_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at files in several threads, as at those of an object store."""
    monkeypatch.setattr(table_files, "files_at_once", lambda _paths: 24)


# --- All files ---


def test_files_are_those_of_the_folder_in_order(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    files = table(tmp_path)
    assert files.paths == [str(path) for path in paths]
    assert len(files) == FILES
    assert [values["day"] for values in files.state.partitions] == [f"{n:02}" for n in range(FILES)]
    assert files.schema == customers(ROWS).schema


def test_the_schema_is_that_of_all_files(tmp_path: Path) -> None:
    for index in range(FILES):
        write(tmp_path / f"{index:02}.parquet", pa.table({f"c{index % 3}": [index]}))
    assert table(tmp_path).schema.names == ["c0", "c1", "c2"]


def test_files_of_one_disk_are_not_looked_at_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.parquet", customers(ROWS))
    assert table(path).workers == 1
    monkeypatch.setattr(table_files, "files_at_once", lambda _paths: 24)
    assert table(path).workers > 1


def test_a_footer_is_of_its_own_file(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    files = table(tmp_path)
    for ordinal, path in enumerate(paths):
        footer = files.kept(ordinal)
        assert footer is not None
        assert (footer.path, footer.size) == (str(path), path.stat().st_size)
        assert footer.rows == [10] * 4


# --- What is kept ---


def test_footers_are_kept_until_they_are_forgotten(tmp_path: Path) -> None:
    lake(tmp_path)
    files = table(tmp_path)
    assert places(files) == list(range(FILES))
    files.forget(3)
    files.forget(3)
    assert places(files) == [n for n in range(FILES) if n != 3]


def test_no_more_footers_are_kept_than_there_is_room_for(
    tmp_path: Path, keep: Callable[[int], None]
) -> None:
    lake(tmp_path)
    files = table(tmp_path)
    sizes = memory(files)
    for count in (0, 1, 5, FILES):
        keep(sum(sizes[:count]))
        assert places(table(tmp_path)) == list(range(count))


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_footer_that_is_not_kept_is_read_again(
    tmp_path: Path, keep: Callable[[int], None], count: int
) -> None:
    lake(tmp_path)
    whole = table(tmp_path)
    known = [footer for n in range(FILES) if (footer := whole.kept(n))]
    keep(sum(footer.memory for footer in known[:count]))
    files = table(tmp_path)
    for ordinal, wanted in enumerate(known):
        with files.opened(ordinal) as (file, footer):
            assert file.path == footer.path == wanted.path
            assert (footer is files.kept(ordinal)) is (ordinal < count)
            assert (footer.digest, footer.mode) == (wanted.digest, wanted.mode)
            # What the second look took is counted apart from the first.
            assert file.requests == 0


@pytest.mark.parametrize("where", [None, EMAIL, [("day", "=", 5)], [*EMAIL, ("day", ">", 8)]])
def test_answers_do_not_depend_on_what_is_kept(
    tmp_path: Path, keep: Callable[[int], None], where: Any
) -> None:
    lake(tmp_path)
    files = table(tmp_path)
    half = sum(footer.memory for n in range(FILES // 2) if (footer := files.kept(n)))
    rows = sb.read_table(tmp_path, where=where, keys=KEYRING)
    assert rows.num_rows > 0
    for room in (0, half):
        keep(room)
        assert sb.read_table(tmp_path, where=where, keys=KEYRING).equals(rows)


@pytest.mark.usefixtures("as_objects")
@pytest.mark.parametrize("where", [None, EMAIL, [*EMAIL, ("day", ">", 8)]])
def test_answers_in_several_threads_are_the_same(
    tmp_path: Path, keep: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, where: Any
) -> None:
    lake(tmp_path)
    found = [sb.read_table(tmp_path, where=where, keys=KEYRING)]
    keep(0)
    found.append(sb.read_table(tmp_path, where=where, keys=KEYRING))
    monkeypatch.setattr(table_files, "files_at_once", lambda _paths: 1)
    rows = sb.read_table(tmp_path, where=where, keys=KEYRING)
    assert rows.num_rows > 0
    assert [one.equals(rows) for one in found] == [True, True]


# --- What goes together ---


def ordinals(files: TableFiles) -> list[list[int]]:
    return [list(one) for one in files.runs(range(len(files)))]


def _together(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Set how many bytes of footers go together."""
    monkeypatch.setattr(table_files, "_TOGETHER", room)


def test_the_first_file_goes_alone_and_many_behind_it_together(tmp_path: Path) -> None:
    lake(tmp_path)
    first, second, *rest = ordinals(table(tmp_path))
    assert first == [0]
    assert len(second) > 4
    assert [*first, *second, *(n for one in rest for n in one)] == list(range(FILES))


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_runs_are_short_where_footers_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """As many go together as there is room for, and one always."""
    lake(tmp_path)
    files = table(tmp_path)
    sizes = memory(files)
    room = count * max(sizes)
    _together(monkeypatch, room)
    runs = ordinals(files)
    assert [n for one in runs for n in one] == list(range(FILES))
    for one in runs:
        assert len(one) == 1 or sum(sizes[n] for n in one) <= room
    for one in runs[1:-1]:
        assert sum(sizes[n] for n in [*one, one[-1] + 1]) > room
    assert max(map(len, runs)) >= count


def test_runs_are_short_only_at_the_footers_that_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(8):
        rows = 500 if index in (3, 4) else 1
        write(tmp_path / f"{index}.parquet", pa.table({"id": range(rows)}), row_group_size=1)
    files = table(tmp_path)
    sizes = memory(files)
    assert sizes[3] == sizes[4] > 10 * sizes[0]
    _together(monkeypatch, sizes[3])
    assert ordinals(files) == [[0], [1, 2], [3], [4], [5, 6, 7]]


def test_files_whose_footers_are_not_kept_go_alone(
    tmp_path: Path, keep: Callable[[int], None]
) -> None:
    lake(tmp_path)
    sizes = memory(table(tmp_path))
    keep(0)
    assert ordinals(table(tmp_path)) == [[n] for n in range(FILES)]
    keep(sum(sizes[:5]))
    assert ordinals(table(tmp_path)) == [[0], [1, 2, 3, 4], *([n] for n in range(5, FILES))]


@pytest.mark.usefixtures("as_objects")
def test_runs_of_files_that_are_looked_at_side_by_side_are_as_long_as_ever(
    tmp_path: Path, keep: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake(tmp_path)
    wanted = ordinals(table(tmp_path))
    assert max(map(len, wanted)) > 4
    _together(monkeypatch, 1)
    keep(0)
    assert ordinals(table(tmp_path)) == wanted


# --- Errors ---


def test_a_footer_that_is_none_is_an_error_before_any_row(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    paths[9].write_bytes(b"PAR1 this is no Parquet file")
    with pytest.raises(FormatError) as caught:
        sb.read_batches(tmp_path, keys=KEYRING)
    assert caught.value.path == str(paths[9])


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize(("first", "second"), [(0, 3), (2, 4), (3, 9), (10, 11)])
def test_of_two_files_that_are_damaged_the_first_is_blamed(
    tmp_path: Path, request: pytest.FixtureRequest, threads: bool, first: int, second: int
) -> None:
    """It is noticed last: the other one has no footer, this one has to be decrypted."""
    if threads:
        request.getfixturevalue("as_objects")
    paths = lake(tmp_path)
    write(paths[first], customers(ROWS), Mode.ENCRYPTED)
    flip(paths[first], paths[first].stat().st_size - 10)
    paths[second].write_bytes(b"PAR1 this is no Parquet file")
    with pytest.raises(SecureBloomError) as caught:
        table(tmp_path)
    assert (type(caught.value), caught.value.path) == (IntegrityError, str(paths[first]))


@pytest.mark.parametrize("room", [0, 1 << 26])
def test_a_file_that_was_changed_is_not_opened_again(
    tmp_path: Path, keep: Callable[[int], None], room: int
) -> None:
    keep(room)
    paths = lake(tmp_path)
    files = table(tmp_path)
    write(paths[4], customers(ROWS, 99))
    with (
        pytest.raises(FileChangedError, match="after its footer was read") as caught,
        files.opened(4),
    ):
        pass
    assert (caught.value.path, caught.value.hint) == (str(paths[4]), "read it again")
    with files.opened(5) as (_, footer):
        assert footer.path == str(paths[5])


@pytest.mark.parametrize("room", [0, 1 << 26])
def test_a_file_that_is_gone_is_an_error_with_its_path(
    tmp_path: Path, keep: Callable[[int], None], room: int
) -> None:
    keep(room)
    paths = lake(tmp_path)
    files = table(tmp_path)
    paths[4].unlink()
    with pytest.raises(PolicyError) as caught, files.opened(4):
        pass
    assert caught.value.path == str(paths[4])


def test_an_error_of_who_looks_at_a_file_gets_its_path(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    with pytest.raises(FormatError) as caught, table(tmp_path).opened(2):
        raise FormatError("damaged", row_group=3)
    assert (caught.value.path, caught.value.row_group) == (str(paths[2]), 3)


# --- Files that stay open from the footer to the plan ---


@pytest.fixture
def _collected() -> None:
    """Files that errors of earlier tests still hold are closed."""
    gc.collect()


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.usefixtures("_collected")
def test_a_read_opens_a_file_once_for_its_footer_and_its_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, names, real = lake(tmp_path), list[str](), os.open

    def noted(path: Any, *args: Any, **options: Any) -> int:
        names.append(str(path))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", noted)
    before = descriptors()
    rows = sb.read_table(paths, where=[("email", "=", "user1x@example.com")], keys=KEYRING)
    assert rows.num_rows == 0
    assert sorted(name for name in names if name.endswith(".parquet")) == sorted(map(str, paths))
    assert descriptors() == before


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("left", [0, 5])
def test_reads_keep_a_bounded_number_of_files_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    monkeypatch.setattr(table_files, "_OPEN", threading.BoundedSemaphore(5))
    for _ in range(5 - left):
        table_files._OPEN.acquire()
    paths, before = lake(tmp_path), descriptors()
    files = table(*paths)
    assert descriptors() == before + left
    table(*paths)
    assert descriptors() == before + left
    assert [
        footer.path for n in range(FILES) for _, footer in [opened_once(files, n)]
    ] == files.paths
    # A read that ends before all files are planned closes the others too.
    files.forget(0)
    files.close()
    assert descriptors() == before


def opened_once(files: TableFiles, ordinal: int) -> tuple[object, Footer]:
    with files.opened(ordinal) as (file, footer):
        return file, footer


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("where", [[("nothing", "=", 1)], EMAIL])
def test_a_read_that_fails_leaves_no_file_open(tmp_path: Path, where: Any) -> None:
    paths = lake(tmp_path)
    before = descriptors()
    with pytest.raises(SecureBloomError) as caught:
        sb.read_table(paths, where=where, keys=Keyring(master_keys={}))
    assert descriptors() == before, caught
