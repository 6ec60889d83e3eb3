"""Options that verbs share, and the keys and the policy that a verb gets of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import secure_bloom as sb
from secure_bloom.cli.shared_arguments import load_keys, load_policy
from secure_bloom.cli.verbs import cli


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


@pytest.mark.parametrize("kind", ["policy", "keyring", "baseline"])
def test_a_misspelt_file_is_met_with_the_one_that_is_there(tmp_path: Path, kind: str) -> None:
    from secure_bloom.auditing.audit_plan import known_findings

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
