"""A file made of new parts and ranges of the old one, in their order, whatever their sizes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from secure_bloom.storage import CountedFile, open_input, replace_tail, rewritten_file
from secure_bloom.storage.rewritten_file import OldRange, RewrittenFile

OLD = bytes(range(256)) * 40
PARTS = [b"PAR1", OldRange(10, 500), b"", b"new", OldRange(0, 0), OldRange(9000, 1240), b"end"]
NEW = b"PAR1" + OLD[10:510] + b"new" + OLD[9000:10240] + b"end"


@pytest.fixture(params=[False, True], ids=["one thread", "two threads"], autouse=True)
def _threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny file is written by the thread that works out its parts, a larger one by another."""
    if request.param:
        monkeypatch.setattr(rewritten_file, "TINY", 0)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    (tmp_path / "x").write_bytes(OLD)
    return tmp_path / "x"


def test_the_new_file_takes_the_place_of_the_old_one(old: Path) -> None:
    with open_input(str(old)) as file:
        assert replace_tail(RewrittenFile(file, iter(PARTS)), 0, ()) == len(NEW)
    assert old.read_bytes() == NEW


def test_chunks_are_the_same_bytes_as_a_copy(old: Path, tmp_path: Path) -> None:
    with open_input(str(old)) as file:
        assert b"".join(RewrittenFile(file, PARTS).chunks(0, ())) == NEW
        fd = os.open(tmp_path / "copy", os.O_RDWR | os.O_CREAT)
        try:
            assert RewrittenFile(file, PARTS).copy_to(fd, 0, ()) == len(NEW)
        finally:
            os.close(fd)
    assert (tmp_path / "copy").read_bytes() == NEW


def test_large_parts_keep_their_order(old: Path) -> None:
    parts = [bytes([i]) * (1 << 20) for i in range(9)]
    with open_input(str(old)) as file:
        replace_tail(RewrittenFile(file, [*parts, OldRange(0, 5)]), 0, ())
    assert old.read_bytes() == b"".join(parts) + OLD[:5]


def test_an_error_in_the_middle_leaves_the_old_file(old: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"begun"
        raise ValueError("no more")

    with open_input(str(old)) as file, pytest.raises(ValueError, match="no more"):
        replace_tail(RewrittenFile(file, broken()), 0, ())
    assert old.read_bytes() == OLD
    assert [path.name for path in old.parent.iterdir()] == ["x"]


def test_ranges_of_a_file_without_a_descriptor_are_read(old: Path, tmp_path: Path) -> None:
    with open_input(str(old)) as file:
        rewritten = RewrittenFile(CountedFile(file), PARTS)
        with (tmp_path / "copy").open("w+b") as copy:
            assert rewritten.copy_to(copy.fileno(), 0, ()) == len(NEW)
        assert rewritten.read_at(0, 10) == OLD[:10]
    assert (tmp_path / "copy").read_bytes() == NEW
