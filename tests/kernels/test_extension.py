"""The C extension: it is loaded unless it is switched off, and refuses wrong arguments."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hatch_build import sources_digest
from secure_bloom.kernels import extension
from testing.project import ROOT

native = extension.native
needs_native = pytest.mark.skipif(native is None, reason=f"runs on {extension.description}")


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
