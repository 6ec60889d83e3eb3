"""Files of stores with folders: written beside the old one, then moved; here on a local disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from secure_bloom.errors import FileChangedError, FormatError
from secure_bloom.storage.uploads import write_beside
from tests.storage.conftest import contents


def test_stores_without_invisible_uploads_write_beside_and_move(tmp_path: Path) -> None:
    key = str(tmp_path / "new" / "x.parquet")
    write_beside(fs.LocalFileSystem(), key, [b"ab", b"c"], 3, lambda: None)
    assert contents(tmp_path / "new") == {"x.parquet": b"abc"}

    def breaking() -> Iterator[bytes]:
        yield b"zz"
        raise KeyboardInterrupt

    def changed() -> None:
        raise FileChangedError("changed")

    with pytest.raises(KeyboardInterrupt):
        write_beside(fs.LocalFileSystem(), key, breaking(), 3, lambda: None)
    with pytest.raises(FileChangedError):
        write_beside(fs.LocalFileSystem(), key, [b"zzz"], 3, changed)
    with pytest.raises(FormatError, match="holds 2 bytes"):
        write_beside(fs.LocalFileSystem(), key, [b"zz"], 3, lambda: None)
    assert contents(tmp_path / "new") == {"x.parquet": b"abc"}
