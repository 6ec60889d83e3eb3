"""The file that `--output` names: whole, or what stood there before."""

from __future__ import annotations

import errno
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.cli import outputs
from secure_bloom.cli.outputs import output_file, refuse_part_of_table, replaced
from secure_bloom.errors import PolicyError
from testing.command_line import run


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(pa.table({"a": range(5)}), folder / "0.parquet")
    return folder


def read(path: Path, *arguments: object, code: int = 0) -> str:
    done = run("read", path, *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("found.csv/", "found.csv/: the output is a folder"),
        ("lake", "lake: the output is a folder"),
        ("nowhere/found.csv", "there is no folder "),
        ("s3://bucket/found.csv", "the output is an object"),
        ("lake/0.parquet", "lake/0.parquet: the output would overwrite the input"),
        ("lake/found.parquet", "the output would become a file of the table, its rows in clear"),
        ("found.dat", "the format of the output is not known from its name"),
        ("found.table", "the format of the output is not known from its name"),
        ("found", "the format of the output is not known from its name"),
    ],
)
def test_an_impossible_output_is_refused_before_any_write(
    lake: Path, name: str, message: str
) -> None:
    before = (lake / "0.parquet").read_bytes()
    output = name if "://" in name else f"{lake.parent}/{name}"
    error = read(lake, "--output", output, code=2)
    assert message in error
    assert "secure-bloom: hint: " in error
    assert [p.name for p in lake.parent.rglob("*")] == ["lake", "0.parquet"]
    assert (lake / "0.parquet").read_bytes() == before


def test_a_folder_that_takes_no_file_is_named(lake: Path) -> None:
    error = read(lake, "--output", "/proc/found.csv", code=2)
    assert "/proc/found.csv: the output cannot be written: " in error


def test_a_table_is_for_the_terminal(lake: Path, tmp_path: Path) -> None:
    error = read(lake, "--format", "table", "--output", tmp_path / "x.txt", code=2)
    assert "a table is for the terminal" in error
    assert not (tmp_path / "x.txt").exists()


def test_a_file_is_replaced_with_its_permissions_and_its_name(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("what was there")
    (tmp_path / "old.csv").chmod(0o640)
    (tmp_path / "link.CSV").symlink_to("old.csv")
    read(lake, "--output", tmp_path / "link.CSV", "--limit", 1)
    assert (tmp_path / "link.CSV").is_symlink()
    assert (tmp_path / "old.csv").read_text() == "a\n0\n"
    assert stat.S_IMODE((tmp_path / "old.csv").stat().st_mode) == 0o640


def test_a_new_file_is_for_its_owner(lake: Path, tmp_path: Path) -> None:
    read(lake, "--output", tmp_path / "new.csv")
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o600


def test_beside_a_single_file_is_no_table(lake: Path) -> None:
    read(lake / "0.parquet", "--output", lake / "found.parquet")
    assert pq.read_table(lake / "found.parquet").num_rows == 5


def test_until_the_last_row_the_old_file_stands(tmp_path: Path) -> None:
    path = output_file(f"{tmp_path}/found.csv")
    path.write_text("what was there")

    def interrupted() -> None:
        with replaced(path) as file:
            file.write(b"half")
            file.flush()
            assert path.read_text() == "what was there"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("what was there")
    program = (
        "import os, pathlib, sys\n"
        f"from {outputs.__name__} import replaced\n"
        "with replaced(pathlib.Path(sys.argv[1])) as file:\n"
        "    file.write(b'half')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False, timeout=60)
    assert done.returncode == -9
    assert path.read_text() == "what was there"


def test_a_place_that_is_no_file_is_refused(tmp_path: Path) -> None:
    for text in (str(tmp_path), f"{tmp_path}/", "/dev/null"):
        with pytest.raises(PolicyError, match="the output is"):
            output_file(text)


def test_a_system_that_refuses_to_look_at_the_output_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Path) -> bool:
        raise OSError(errno.EIO, "I/O error", str(self))

    output = tmp_path / "rows.parquet"
    with monkeypatch.context() as broken:
        broken.setattr(Path, "is_dir", failing)
        with pytest.raises(PolicyError, match="the system refuses: i/o error"):
            output_file(str(output))
        with pytest.raises(PolicyError, match="the system refuses: i/o error"):
            refuse_part_of_table(output, "parquet", [str(tmp_path)], [])
