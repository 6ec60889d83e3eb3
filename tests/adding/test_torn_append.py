"""A torn append is told from every other broken file, and the old file comes back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.adding import in_place
from secure_bloom.adding.in_place import (
    Recovered,
    Truncation,
    append_mark,
    find_previous_end,
    recover,
)
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FileChangedError, FormatError, PolicyError
from secure_bloom.storage import open_input
from testing.storage import contents
from testing.tables import KEYRING, Mode, customers, write

RESOLVER = KeyResolver(KEYRING)


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
    recovered = recover(str(path), RESOLVER)
    assert path.read_bytes() == good
    assert recovered is not None
    assert recovered.truncation is not None
    assert (recovered.truncation.offset, recovered.truncation.bytes) == (len(good), size)
    assert Path(recovered.truncation.kept).read_bytes() == tail[:size]
    recovered.truncation.forget()
    assert contents(tmp_path) == {"x.parquet": good}


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
    assert recover(str(path), RESOLVER) is None
    assert path.read_bytes() == good + tail + b"\x00"


def test_a_truncated_file_with_a_whole_one_in_a_cell_is_never_cut(tmp_path: Path) -> None:
    path, good = _file(tmp_path)
    path.write_bytes(b"PAR1 some pages" + good + b"more of the cell" + bytes(100))
    assert recover(str(path), RESOLVER) is None


def _with_a_file_in_a_cell(folder: Path, end: bytes = b"") -> tuple[Path, int]:
    """A file whose uncompressed column holds what looks like an appended file; where it ends."""
    inner = write(folder / "inner.parquet", customers(5)).read_bytes()
    path = folder / "x.parquet"
    pq.write_table(
        pa.table({"a": pa.array(["x" * 3000]), "b": pa.array([inner + end + bytes(99)])}),
        path,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )
    (folder / "inner.parquet").unlink()
    return path, path.read_bytes().index(inner) + len(inner)


def test_a_cell_that_looks_like_a_torn_append_is_not_taken_for_one(tmp_path: Path) -> None:
    _, end = _with_a_file_in_a_cell(tmp_path, append_mark(10**6))
    path, _ = _with_a_file_in_a_cell(tmp_path, append_mark(end))
    cut_short = path.read_bytes()[:-20]
    path.write_bytes(cut_short)
    with pytest.raises(FormatError, match=f"killed at byte {end}, but the footer there") as caught:
        recover(str(path), RESOLVER)
    assert f"truncate -s {end}" in str(caught.value.hint)
    report = sb.add_bloom_filters(path, columns=["a"], in_place=True)
    assert [file.status for file in report.files] == ["failed"]
    assert "nothing was cut" in str(report.files[0].error)
    assert contents(tmp_path) == {"x.parquet": cut_short}


def test_a_file_that_was_appended_to_before_is_mended_too(tmp_path: Path) -> None:
    path, _ = _file(tmp_path)
    for column in ("email", "id"):
        report = sb.add_bloom_filters(path, columns=[column], in_place=True)
        assert [file.status for file in report.files] == ["added"]
    good = path.read_bytes()
    path.write_bytes(good + append_mark(len(good)) + bytes(70))
    report = sb.add_bloom_filters(path, columns=["iban"], in_place=True)
    assert [file.status for file in report.files] == ["added"]
    assert any(f"98 bytes after byte {len(good)}" in note for note in report.notes)
    assert set(contents(tmp_path)) == {"x.parquet"}


@pytest.mark.parametrize("writer", ["pyarrow", "DuckDB", "Polars"])
def test_torn_appends_to_files_of_other_writers_are_mended(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "x.parquet"
    rows = pa.table({"a": list(range(3000)), "b": [str(n) for n in range(3000)]})
    if writer == "pyarrow":
        pq.write_table(rows, path, row_group_size=1000, write_page_index=True)
    elif writer == "DuckDB":
        duckdb = pytest.importorskip("duckdb")
        duckdb.connect().sql(f"copy (select * from rows) to '{path}'")
    else:
        pytest.importorskip("polars").from_arrow(rows).write_parquet(path)
    good = path.read_bytes()
    path.write_bytes(good + append_mark(len(good)) + bytes(70))
    assert recover(str(path), RESOLVER) is not None
    assert path.read_bytes() == good


def test_what_was_cut_off_is_kept_when_the_run_does_not_end_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, good = _file(tmp_path)
    tail = append_mark(len(good)) + bytes(70)
    path.write_bytes(good + tail)

    def failing(*_: object) -> None:
        raise FormatError("nothing works today")

    monkeypatch.setattr("secure_bloom.adding.rewrite.append_tail", failing)
    report = sb.add_bloom_filters(path, columns=["email"], in_place=True)
    assert [file.status for file in report.files] == ["failed"]
    assert contents(tmp_path) == {"x.parquet": good, ".x.parquet.secure-bloom-cut": tail}
    assert any("kept in .x.parquet.secure-bloom-cut" in note for note in report.notes)


def test_a_file_that_its_writer_finished_meanwhile_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, good = _file(tmp_path)
    path.write_bytes(good + append_mark(len(good)) + bytes(100))

    def finished(*_: object) -> None:
        path.write_bytes(good)
        raise FileChangedError("the file was changed after it was read")

    monkeypatch.setattr(in_place, "truncate_to", finished)
    assert recover(str(path), RESOLVER) == Recovered()


def test_what_is_not_there_or_not_ours_cannot_be_mended(tmp_path: Path) -> None:
    with pytest.raises(PolicyError):
        recover(str(tmp_path / "nothing"), RESOLVER)
    with pytest.raises(FormatError):
        recover(str(tmp_path), RESOLVER)
    assert recover(str(_file(tmp_path)[0]), RESOLVER) == Recovered()


def test_bytes_that_cannot_be_removed_are_told_to_be_kept(tmp_path: Path) -> None:
    cut = Truncation(offset=7, bytes=3, kept=str(tmp_path / "gone" / ".x.secure-bloom-cut"))
    assert not cut.forget()
    assert cut.note(forgotten=False).endswith("they are kept in .x.secure-bloom-cut beside it")
    assert cut.note(forgotten=True).endswith("left by a run that was killed, were cut off")
