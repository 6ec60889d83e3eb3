"""`--version`, and with `-v` which code runs the loops."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli import main
from secure_bloom.kernels import extension


def run(*words: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "secure_bloom", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("words", [["--version"], ["-V"]])
def test_the_version_is_one_line(words: list[str]) -> None:
    assert run(*words) == [f"secure-bloom, version {sb.__version__}"]


@pytest.mark.parametrize("words", [["--version", "-v"], ["-v", "--version"]])
def test_with_v_it_says_which_code_runs(words: list[str]) -> None:
    assert run(*words)[1:] == [f"loops: {extension.description}"]


def test_the_extension_can_be_turned_off() -> None:
    assert run("--version", "-v", SECURE_BLOOM_NATIVE="0")[1:] == [
        "loops: numpy (SECURE_BLOOM_NATIVE=0)"
    ]


def test_a_checkout_that_is_not_installed_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(SystemExit):
        main(["-V"])
    said = (
        "the package secure-bloom is not installed\nsecure-bloom: hint: pip install secure-bloom\n"
    )
    assert capsys.readouterr().err == f"secure-bloom: error: {said}"


@pytest.mark.parametrize("name", ["click", "xxhash"])
def test_a_package_that_is_not_installed_is_named(name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    code = (
        f"import sys; sys.modules[{name!r}] = None; from secure_bloom.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "probe", str(tmp_path / "a.parquet"), "id", "1"],
        capture_output=True,
        text=True,
    )
    said = f"error: the package {name} is not installed\nsecure-bloom: hint: pip install {name}\n"
    assert (done.returncode, done.stderr) == (2, f"secure-bloom: {said}")
