"""The C extension under ASan and UBSan: a short run of `make sanitize`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from testing.project import ROOT

#: Tests that give the kernels hostile bytes, and are quick.
TESTS = (
    "test_building.py",
    "test_compact.py",
    "test_deltas.py",
    "test_filters.py",
    "test_footers.py",
    "test_hudi.py",
    "test_page_walk.py",
    "test_splices.py",
    "test_values.py",
)
#: A plugin of pytest: as many examples as show a pattern; without sanitizers there are more.
FEW_EXAMPLES = """
from hypothesis import settings

settings.register_profile("few", max_examples=10, deadline=None)
settings.load_profile("few")
"""
#: Mutated calls of every kernel; they take about a second.
CALLS = 4000


def library(name: str) -> str | None:
    """The path of a sanitizer's library; None if the compiler has none."""
    if shutil.which("gcc") is None:
        return None
    done = subprocess.run(
        ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    found = done.stdout.strip()
    return found if Path(found).is_absolute() else None


Output = Callable[..., str]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Output:
    """Run a module with the sanitized extension, and return what it prints."""
    libraries = [library("libasan.so"), library("libubsan.so")]
    if None in libraries:
        pytest.skip("needs gcc with ASan and UBSan")
    folder = tmp_path_factory.mktemp("sanitized")
    # With bytecode: to compile under the sanitizers takes longer than the tests do.
    left_out = shutil.ignore_patterns("*.so")
    for name in ("campaigns", "secure_bloom", "testing", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    for name in ("hatch_build.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "few_examples.py").write_text(FEW_EXAMPLES)
    build = [sys.executable, "hatch_build.py", "--strict", "--sanitize"]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "LD_PRELOAD": " ".join(map(str, libraries)),
        # Each object by malloc, so that ASan sees where it ends.
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_kernels_read_and_write_nothing_beside_their_buffers(output: Output) -> None:
    found = json.loads(output("campaigns.fuzzing.child", "kernels", str(CALLS), "1"))
    assert found["trials"] == CALLS
    assert not found["failures"]


@pytest.mark.slow
def test_tests_of_kernels_pass(output: Output) -> None:
    tests = [f"tests/kernels/{name}" for name in TESTS]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "few_examples"]
    options += ["--noconftest"]
    assert " passed" in output("pytest", *options, *tests)
