"""Texts of columns and their settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.cli.column_settings import parse_columns
from secure_bloom.errors import PolicyError
from testing.command_line import run
from testing.tables import Mode, customers, write
from tests.cli.conftest import assert_error


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
