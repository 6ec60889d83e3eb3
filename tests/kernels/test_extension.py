"""The C extension: it is loaded unless it is switched off, and refuses wrong arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from array import array
from pathlib import Path

import pytest

from secure_bloom.kernels import extension
from secure_bloom.kernels.native_sources import sources_digest
from testing.project import ROOT

native = extension.native
needs_native = pytest.mark.skipif(native is None, reason=f"runs on {extension.description}")

NUMBERS = array("q", [0, 0, 0, 0])
RUN = array("q", [2**60, 3])
FALLING = array("q", [1, -(2**63)])


@needs_native
def test_the_extension_was_built_from_these_sources() -> None:
    assert native.sources == sources_digest(ROOT / "secure_bloom/kernels/native")


def test_an_extension_of_other_sources_is_not_used_and_the_command_is_named(
    tmp_path: Path,
) -> None:
    if "other sources" in extension.description:
        pytest.fail("the C extension is not that of these sources. Run: make native")
    if native is None:
        pytest.skip(extension.description)
    kernels = Path("secure_bloom", "kernels")
    shutil.copytree(
        ROOT / "secure_bloom",
        tmp_path / "secure_bloom",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(ROOT / "hatch_build.py", tmp_path)
    assert _stderr_of_import(tmp_path) == ""
    changed = tmp_path / kernels / "native" / "hashing.c"
    changed.write_bytes(changed.read_bytes() + b"\n")
    said = _stderr_of_import(tmp_path)
    assert f"so numpy is used: run python hatch_build.py in {tmp_path}" in said
    # An installed package has no such script, and nothing is compared.
    (tmp_path / "hatch_build.py").unlink()
    assert _stderr_of_import(tmp_path) == ""


def _stderr_of_import(clone: Path) -> str:
    code = (
        "from secure_bloom.kernels import extension as it;"
        "assert (it.native is None) == ('numpy' in it.description)"
    )
    env = {**os.environ, "PYTHONPATH": str(clone)}
    run = [sys.executable, "-c", code]
    return subprocess.run(
        run, cwd=clone, env=env, capture_output=True, text=True, check=True
    ).stderr


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
        # A run of hashes that ends before it starts.
        ("ask", (bytes(64), 0, NUMBERS[:3], 0, b"", NUMBERS, RUN, bytearray(1))),
        # Bounds that fall, and whose difference has no room in 64 bits.
        ("set_filters", (b"\0", NUMBERS[:1], NUMBERS[:2], b"", FALLING, 0, bytearray(64))),
    ],
)
def test_arguments_that_do_not_fit_are_refused(function: str, arguments: tuple) -> None:
    with pytest.raises(ValueError, match=r"fit|wanted"):
        getattr(native, function)(*arguments)
    with pytest.raises(TypeError, match="arguments"):
        getattr(native, function)()


@needs_native
def test_entries_whose_bounds_fall_are_damage() -> None:
    # As 64-bit numbers wrap, the second bound is five bytes after the first one's length.
    bounds = array("q", [2**63 - 4, -(2**63) + 5])
    assert native.copy_entries(b"", bytes(16), bounds, 0, bytearray(4), bytearray(8)) == -1


def test_without_the_extension_a_line_says_how_to_get_it(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "secure_bloom", tmp_path / "secure_bloom", ignore=shutil.ignore_patterns("*.so")
    )
    run = [sys.executable, "-m", "secure_bloom", "--version", "-v"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == (
        "loops: numpy (the C extension was not built: install a C compiler, then reinstall)"
    )


def test_a_package_in_a_zip_says_why_it_has_no_extension(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        for path in (ROOT / "secure_bloom").rglob("*.py"):
            archive.write(path, path.relative_to(ROOT))
    said = "from secure_bloom.kernels import extension; print(extension.description)"
    run = [sys.executable, "-c", said]
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "package.zip")}
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert "loads no C extension from a zip" in done.stdout
