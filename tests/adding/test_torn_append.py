"""A torn append is told from every other broken file, and the old file comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.adding import torn_append
from secure_bloom.adding.torn_append import append_mark, find_previous_end, mend
from secure_bloom.errors import FileChangedError
from secure_bloom.storage import open_input
from tests.tables import Mode, customers, write


def _file(folder: Path, mode: Mode = Mode.PLAIN) -> tuple[Path, bytes]:
    path = write(folder / "x.parquet", customers(5), mode)
    return path, path.read_bytes()


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
@pytest.mark.parametrize("size", [1, 2, 20, 27, 28, 29, 500, 1_100_000])
def test_the_old_end_is_found_under_a_tail_torn_anywhere(
    tmp_path: Path, mode: Mode, size: int
) -> None:
    path, good = _file(tmp_path, mode)
    tail = append_mark(len(good)) + b"PAR1" + bytes(1_200_000)
    path.write_bytes(good + tail[:size])
    assert mend(str(path))
    assert path.read_bytes() == good


def test_a_mark_that_falls_between_two_windows_of_the_search_is_found(tmp_path: Path) -> None:
    path, good = _file(tmp_path)
    for behind in range(1024 * 1024 - 30, 1024 * 1024 + 2):
        path.write_bytes(good + append_mark(len(good)) + bytes(behind))
        with open_input(str(path)) as file:
            assert find_previous_end(file) == len(good)


@pytest.mark.parametrize(
    "tail",
    [b"\x15\x40" + bytes(500), b"PAR1" * 9, append_mark(7) + bytes(99), b"secure-bloom append "],
    ids=["garbage", "magics", "a mark of another place", "half a mark, then nothing"],
)
def test_a_file_that_merely_ends_badly_is_never_cut(tmp_path: Path, tail: bytes) -> None:
    path, good = _file(tmp_path)
    path.write_bytes(good + tail + b"\x00")
    assert not mend(str(path))
    assert path.read_bytes() == good + tail + b"\x00"


def test_a_truncated_file_with_a_whole_one_in_a_cell_is_never_cut(tmp_path: Path) -> None:
    path, good = _file(tmp_path)
    path.write_bytes(b"PAR1 some pages" + good + b"more of the cell" + bytes(100))
    assert not mend(str(path))


def test_a_file_that_its_writer_finished_meanwhile_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, good = _file(tmp_path)
    path.write_bytes(good + append_mark(len(good)) + bytes(100))

    def finished(*_: object) -> None:
        path.write_bytes(good)
        raise FileChangedError("the file was changed after it was read")

    monkeypatch.setattr(torn_append, "truncate_to", finished)
    assert mend(str(path))


def test_what_is_not_there_or_not_ours_cannot_be_mended(tmp_path: Path) -> None:
    assert not mend(str(tmp_path / "nothing"))
    assert not mend(str(tmp_path))
    assert mend(str(_file(tmp_path)[0]))
