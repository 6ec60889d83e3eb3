"""Exit codes, and the help that names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing import tables
from testing.command_line import run
from testing.project import ROOT


def test_the_exit_code_of_probe_is_its_answer(lake: Path) -> None:
    keyring = ("--keyring", lake / "keyring.json")
    assert run("probe", lake / "out", "email", "nobody", *keyring).returncode == 3
    run("add", lake / "out" / "part-0.parquet", "--column", "email", *keyring)
    assert run("probe", lake / "out", "email", "nobody", *keyring).returncode == 3
    run("add", lake / "out", "--column", "email", *keyring)
    assert run("probe", lake / "out", "email", "nobody", *keyring).returncode == 1
    email = tables.read(lake / "out" / "part-1.parquet")["email"][5].as_py()
    assert run("probe", lake / "out", "email", email, *keyring).returncode == 0
    assert run("probe", lake / "out", "mail", "nobody", *keyring).returncode == 2


@pytest.mark.parametrize("verb", ["add", "probe", "inspect", "demo"])
def test_every_verb_has_help_that_names_its_exit_codes(verb: str) -> None:
    done = run(verb, "--help")
    assert done.returncode == 0
    assert "Exit code" in done.stdout
    readme = ROOT / "README.md"
    assert f"secure-bloom {verb}" in readme.read_text()
