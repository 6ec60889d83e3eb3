"""The file of a commit is created by exactly one writer."""

from __future__ import annotations

from pathlib import Path

from secure_bloom.storage.commit_files import is_committed


def test_the_second_writer_is_told_so(tmp_path: Path) -> None:
    like = tmp_path / "like"
    like.write_bytes(b"x")
    path = str(tmp_path / "commit")
    assert is_committed(path, b"one", like=str(like), hint="look")
    assert not is_committed(path, b"two", like=str(like), hint="look")
    assert is_committed(path, b"one", like=str(like), hint="look")
    assert Path(path).read_bytes() == b"one"
