"""Texts of columns and their settings."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from secure_bloom.cli.arguments import load_keys, load_policy, parse_columns
from secure_bloom.cli.verbs import cli
from secure_bloom.errors import PolicyError


def test_no_column_is_none() -> None:
    assert parse_columns(()) is None


def test_settings_stand_behind_colons() -> None:
    found = parse_columns(("a:fpp=0.5:max_bytes=64", "b:c"))
    assert found is not None
    assert (found["a"].fpp, found["a"].max_bytes) == (0.5, 64)
    assert found["b:c"].fpp == 0.01


@pytest.mark.parametrize("texts", [("a", "a"), ("a:fpp=x",), ("a:fpp=2",)])
def test_what_makes_no_sense_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(PolicyError):
        parse_columns(texts)


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
