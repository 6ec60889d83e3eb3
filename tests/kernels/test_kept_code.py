"""Machine code that an earlier process left is used if it is whole, and made for this one."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import carray, cfunc, types

from secure_bloom.kernels import kept_code
from secure_bloom.kernels.kept_code import Linked, keep_object, kept_object, object_code

_WORDS = types.CPointer(types.int64)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


@cfunc(types.int64(_WORDS, types.int64))
def total(numbers: Any, count: int) -> int:
    found = 0
    for number in carray(numbers, (count,)):
        found += number
    return found


@cfunc(types.int64(types.int64))
def picky(number: int) -> int:
    if number < 0:
        raise ValueError("a number below 0")
    return number


def test_what_is_linked_does_what_was_compiled() -> None:
    content = object_code("total", total)
    assert content is not None
    linked = Linked("total", content)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(linked.address)
    numbers = np.arange(100, dtype=np.int64)
    assert call(numbers.ctypes.data, 100) == 4950


def test_code_that_needs_numba_is_no_object_of_its_own() -> None:
    assert object_code("picky", picky) is None


def test_what_was_kept_is_found() -> None:
    assert kept_object("total") is None
    keep_object("total", b"machine code")
    assert kept_object("total") == b"machine code"
    assert kept_object("other") is None


@pytest.mark.parametrize("damage", [b"", b"machine code", bytes(40)])
def test_a_damaged_file_is_not_run(folder: Path, damage: bytes) -> None:
    keep_object("total", b"machine code")
    [path] = folder.glob("total-*.o")
    path.write_bytes(damage)
    assert kept_object("total") is None
    keep_object("total", b"machine code")
    assert kept_object("total") == b"machine code"


def test_a_file_that_others_may_write_is_not_run(folder: Path) -> None:
    keep_object("total", b"machine code")
    [path] = folder.glob("total-*.o")
    path.chmod(0o666)
    assert kept_object("total") is None
    keep_object("total", b"machine code")
    assert kept_object("total") == b"machine code"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_not_run(folder: Path) -> None:
    keep_object("total", b"machine code")
    [path] = folder.glob("total-*.o")
    os.chown(path, 1234, 1234)
    assert kept_object("total") is None


@pytest.mark.parametrize("changed", ["get_host_cpu_name", "get_default_triple"])
def test_another_processor_has_other_code(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_object("total", b"machine code")
    monkeypatch.setattr(llvm, changed, lambda: "another one")
    monkeypatch.setattr(kept_code, "_made_of", kept_code._made_of.__wrapped__)
    assert kept_object("total") is None


def test_the_name_tells_every_source() -> None:
    folder = Path(kept_code.__file__).parent
    reached, left = set(), ["entry_points", "kept_code"]
    while left:
        name = left.pop()
        reached.add(name)
        text = (folder / f"{name}.py").read_text()
        for line in re.findall(r"^from secure_bloom\.kernels(.*)$", text, re.MULTILINE):
            named = {word for word in re.findall(r"\w+", line) if (folder / f"{word}.py").exists()}
            left += named - reached
    assert reached == set(kept_code._SOURCES)


def test_where_nothing_can_be_kept_nothing_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "file" / "cache"))
    keep_object("total", b"machine code")
    assert kept_object("total") is None


def test_others_never_see_half_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_self: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    keep_object("total", b"machine code")
    assert list(folder.iterdir()) == []
