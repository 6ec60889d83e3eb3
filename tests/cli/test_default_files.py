"""The policy and the keyring that count where an option names none."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from secure_bloom.cli.default_files import default_keyring, default_policy
from secure_bloom.errors import PolicyError
from testing.command_line import run
from testing.tables import Mode, customers, keyring_json, write
from tests.cli.conftest import POLICY, assert_clean, assert_error


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lake" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "lake" / "deep")
    return tmp_path


def test_without_any_there_is_none(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert default_policy() is None
    assert default_keyring() is None


@pytest.mark.parametrize(
    ("name", "table"),
    [("secure-bloom.toml", ""), ("pyproject.toml", "[tool.secure-bloom]\n")],
)
def test_the_nearest_file_names_them_from_its_own_folder(
    folder: Path, name: str, table: str
) -> None:
    (folder / name).write_text(f"{table}policy = 'keys/policy.toml'\nkeyring = 'ring.json'\n")
    assert default_policy() == str(folder / "keys" / "policy.toml")
    assert default_keyring() == str(folder / "ring.json")
    (folder / "lake" / name).write_text(f"{table}policy = 'nearer.toml'\n")
    assert default_policy() == str(folder / "lake" / "nearer.toml")
    assert default_keyring() is None


def test_the_environment_goes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "secure-bloom.toml").write_text("policy = 'of-file.toml'\n")
    monkeypatch.setenv("SECURE_BLOOM_POLICY", "of-environment.toml")
    assert default_policy() == "of-environment.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("polcy = 'p.toml'\n", "there is no default polcy"),
        ("[tool.secure-bloom]\npolicy = 'p.toml'\n", "there is no default tool"),
        ("policy = 5\n", "policy is not a text, wanted a path"),
        ("policy = p.toml\n", "(at line 1, column 10)"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(folder: Path, text: str, message: str) -> None:
    (folder / "secure-bloom.toml").write_text(text)
    with pytest.raises(PolicyError, match=re.escape(message)) as caught:
        default_policy()
    assert str(caught.value).startswith(str(folder / "secure-bloom.toml"))


def test_a_file_that_somebody_else_left_does_not_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy may name code to load."""
    (folder / "secure-bloom.toml").write_text("policy = 'theirs.toml'\n")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if os.getuid() == 0:
        os.chown(folder / "secure-bloom.toml", 12345, 12345)
    assert default_policy() is None


def _of_nobody(path: Path) -> None:
    """Give a file, link or folder to another user; the test needs root for that."""
    if os.getuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(path, 12345, 12345, follow_symlinks=False)


def test_a_link_that_somebody_else_left_does_not_count(folder: Path) -> None:
    """Its target is the user's, but the paths in it would start where the link stands."""
    (folder / "mine").mkdir()
    (folder / "mine" / "secure-bloom.toml").write_text("policy = 'policy.toml'\n")
    link = folder / "lake" / "secure-bloom.toml"
    link.symlink_to(folder / "mine" / "secure-bloom.toml")
    assert default_policy() == str(folder / "lake" / "policy.toml")
    _of_nobody(link)
    assert default_policy() is None


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_file_in_a_folder_of_everybody_does_not_count(folder: Path, mode: int) -> None:
    (folder / "lake" / "secure-bloom.toml").write_text("policy = 'policy.toml'\n")
    (folder / "lake").chmod(mode)
    assert default_policy() is None


def test_a_file_that_everybody_may_write_does_not_count(folder: Path) -> None:
    (folder / "secure-bloom.toml").write_text("policy = 'policy.toml'\n")
    (folder / "secure-bloom.toml").chmod(0o666)
    assert default_policy() is None


def test_a_folder_of_somebody_else_does_not_count(folder: Path) -> None:
    (folder / "lake" / "secure-bloom.toml").write_text("policy = 'policy.toml'\n")
    _of_nobody(folder / "lake")
    assert default_policy() is None


def test_a_verb_takes_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(folder / "x.parquet", customers(20), Mode.ENCRYPTED)
    (folder / "policy.toml").write_text(POLICY)
    (folder / "keyring.json").write_text(keyring_json())
    (folder / "keyring.json").chmod(0o600)
    assert_error(run("audit", path), "--policy")
    (folder / "secure-bloom.toml").write_text("policy = 'policy.toml'\n")
    done = run("add", path)
    assert_clean(done)
    assert done.returncode == 0, done.stderr
    assert run("audit", path).returncode == 0
    assert run("probe", path, "email", "nobody@example.com").returncode == 1
