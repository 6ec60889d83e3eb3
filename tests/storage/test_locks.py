"""One writer at a time: a lock is waited for, and not for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secure_bloom.errors import FileBusyError
from secure_bloom.storage.locks import LOCK_VARIABLE, exclusive_lock, try_lock


def test_a_lock_is_for_one(data_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCK_VARIABLE, "0.05")
    one, other = (os.open(data_file, os.O_RDWR) for _ in range(2))
    try:
        with exclusive_lock(one):
            assert not try_lock(other)
            with pytest.raises(FileBusyError), exclusive_lock(other):
                pytest.fail("the lock was given twice")
        assert try_lock(other)
    finally:
        os.close(one)
        os.close(other)
