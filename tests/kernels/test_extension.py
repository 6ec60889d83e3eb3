"""The C extension: it is loaded unless it is switched off, and its functions equal their twins."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatch_build import sources_digest
from secure_bloom.kernels import extension, uncompiled
from tests.project import ROOT

native = extension.native
needs_native = pytest.mark.skipif(native is None, reason=f"runs on {extension.description}")
hashes = st.lists(st.integers(0, 2**64 - 1), max_size=200).map(lambda h: np.array(h, np.uint64))


@needs_native
def test_the_extension_was_built_from_these_sources() -> None:
    assert native.sources == sources_digest(ROOT), "run: make native"


def test_it_can_be_switched_off() -> None:
    code = "from secure_bloom.kernels import extension as it; print(it.native, it.description)"
    off = {**os.environ, extension.SWITCH: "0"}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=off, capture_output=True, text=True, check=True)
    assert done.stdout == "None numpy (SECURE_BLOOM_NATIVE=0)\n"


@needs_native
@given(st.integers(0, 80), st.data())
def test_hashes_of_rows(width: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 30))
    content = data.draw(st.binary(min_size=width * count, max_size=width * count))
    rows = np.frombuffer(content, np.uint8).reshape(count, width)
    found, wanted = (np.zeros(len(rows), np.uint64) for _ in range(2))
    native.hash_rows(rows, width, found)
    uncompiled.hash_rows(rows, wanted)
    assert found.tolist() == wanted.tolist()


@needs_native
@given(st.integers(1, 100), hashes, hashes)
def test_bits_and_answers_of_a_filter(z: int, inserted: np.ndarray, asked: np.ndarray) -> None:
    ours, theirs = (np.zeros((z, 8), np.uint32) for _ in range(2))
    native.insert_hashes(ours, inserted)
    uncompiled.insert_hashes(theirs, inserted)
    assert ours.tolist() == theirs.tolist()
    every = np.concatenate([inserted, asked])
    found, wanted = (np.zeros(len(every), np.bool_) for _ in range(2))
    native.check_hashes(ours, every, found)
    uncompiled.check_hashes(theirs, every, wanted)
    assert found.tolist() == wanted.tolist()
    assert found[: len(inserted)].all()


@needs_native
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("insert_hashes", (bytearray(0), bytes(8))),
        ("insert_hashes", (bytearray(33), bytes(8))),
        ("insert_hashes", (bytearray(32), bytes(7))),
        ("check_hashes", (bytearray(32), bytes(16), bytearray(1))),
        ("hash_rows", (bytes(15), 8, bytearray(16))),
        ("hash_rows", (bytes(15), -1, bytearray(16))),
    ],
)
def test_arguments_that_do_not_fit_are_refused(function: str, arguments: tuple) -> None:
    with pytest.raises(ValueError, match=r"fit|wanted"):
        getattr(native, function)(*arguments)
    with pytest.raises(TypeError, match="arguments"):
        getattr(native, function)()
