"""Texts of columns and their settings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import secure_bloom as sb
from secure_bloom.cli.shared_arguments import (
    default_keyring,
    default_policy,
    load_keys,
    load_policy,
    parse_columns,
    read_text,
)
from secure_bloom.cli.verbs import cli
from secure_bloom.errors import PolicyError
from testing.command_line import run
from testing.tables import Mode, customers, keyring_json, write
from tests.cli.conftest import POLICY, assert_clean, assert_error


def test_no_column_is_none() -> None:
    assert parse_columns(()) is None


def test_settings_stand_behind_colons() -> None:
    found = parse_columns(("a:fpp=0.5:max_bytes=64", "b:c"))
    assert found is not None
    assert (found["a"].fpp, found["a"].max_bytes) == (0.5, 64)
    assert found["b:c"].fpp == 0.01


@pytest.mark.parametrize(
    ("texts", "message", "hint"),
    [
        (
            ("a", "a"),
            "--column a is given twice",
            "name it once, with all its settings: --column a:fpp=0.01:max_bytes=65536",
        ),
        (
            ("a:fpp=x",),
            "--column a:fpp=x: fpp is 'x', wanted a number",
            "write --column a:fpp=0.01",
        ),
        (
            ("a:fpp=2",),
            "--column a:fpp=2: fpp is 2.0, it must lie between 0 and 1, both excluded",
            "write --column a:fpp=0.01",
        ),
        (
            ("a b:fpp=0.01:max_bytes=64KiB",),
            "--column a b:fpp=0.01:max_bytes=64KiB: max_bytes is '64KiB', wanted a whole number",
            "write --column 'a b:fpp=0.01:max_bytes=65536'",
        ),
        (
            ("a:fp=1",),
            "--column a:fp=1: fp is not an option, wanted fpp or max_bytes",
            "write --column a:fpp=0.01:max_bytes=65536",
        ),
        (("",), "--column '' names no column", "write --column NAME"),
        ((":fpp=0.1",), "--column :fpp=0.1 names no column", "write --column NAME"),
    ],
    ids=["twice", "no number", "beyond", "a size", "unknown", "empty", "no name"],
)
def test_what_makes_no_sense_is_refused(texts: tuple[str, ...], message: str, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_columns(texts)
    assert (str(caught.value), caught.value.hint) == (message, hint)


def test_names_of_several_columns_are_given_one_by_one(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5), Mode.PLAIN)
    for verb in (("add",), ("advise",), ("paimon", "build")):
        done = run(*verb, path, "--column", "id, email")
        assert_error(done, "hint: name each by itself: --column id --column email")


def test_nothing_given_is_no_keys() -> None:
    assert load_policy(None) is None
    assert load_keys(None) is None


SHORT = {"--policy": "-p", "--keyring": "-k", "--column": "-c", "--output": "-o"} | {
    "--where": "-w",
    "--dry-run": "-n",
    "--quiet": "-q",
    "--verbose": "-v",
}


def _verbs(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        assert verb is not None
        yield from _verbs(verb, context) if isinstance(verb, click.Group) else [verb]


def test_an_option_has_its_short_form_in_every_verb() -> None:
    for verb in _verbs(cli, click.Context(cli)):
        for option in verb.params:
            for long in SHORT.keys() & set(option.opts):
                assert SHORT[long] in option.opts, (verb.name, long)


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


@pytest.mark.parametrize("kind", ["policy", "keyring", "baseline"])
def test_a_misspelt_file_is_met_with_the_one_that_is_there(tmp_path: Path, kind: str) -> None:
    from secure_bloom.auditing.baseline import known_findings

    read = {"policy": sb.KeyPolicy.load, "keyring": sb.Keyring.load, "baseline": known_findings}
    (tmp_path / f"{kind}.txt").touch()
    with pytest.raises(sb.PolicyError) as error:
        read[kind](tmp_path / f"{kind[:2]}{kind[3:]}.txt")
    assert error.value.hint == f"did you mean {tmp_path / kind}.txt?"
    (tmp_path / f"{kind}.txt").unlink()
    with pytest.raises(sb.PolicyError) as error:
        read[kind](tmp_path / "x")
    made = f"to make it: secure-bloom keys new {tmp_path / 'x'} --policy POLICY"
    assert error.value.hint == (made if kind == "keyring" else None)


@pytest.mark.parametrize(
    "content",
    ['{"email": "a@secret.example"}', "email = 'secret'", "a@secret.example", "secret\nsecret"],
)
def test_content_in_place_of_a_file_is_not_quoted(content: str) -> None:
    with pytest.raises(PolicyError, match="its content was given") as caught:
        read_text(content)
    assert "secret" not in f"{caught.value}{caught.value.hint}"
    assert caught.value.__suppress_context__


def test_a_file_that_is_not_there_has_its_neighbours_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wanted.json").touch()
    with pytest.raises(PolicyError) as caught:
        read_text("wnted.json")
    assert "did you mean wanted.json" in str(caught.value.hint)
