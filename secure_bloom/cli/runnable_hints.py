"""Rewrite messages of the library for the command line: its option names, and complete commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.shared_arguments import load_keys
from secure_bloom.encryption.trust import REENCRYPT, ROTATE
from secure_bloom.errors import SecureBloomError
from secure_bloom.reports.text import shell_word

if TYPE_CHECKING:
    from secure_bloom.adding.report import AddReport, FileAddReport
    from secure_bloom.encryption.policy import KeyPolicy


#: The parameters that a message begins with, as in "in_place and output exclude each other".
_PARAMETERS = re.compile(r"\w+(?: and \w+)?(?= (?:is|are|has|exclude)\b|: )")
#: Advice on a parameter that has the option beside it.
_BOTH_FORMS = re.compile(r"\w+=(?:True|\{[^}]*\}) \((--[^)]+)\)")


def with_option_names(text: str, verbs: click.Command, arguments: Sequence[str]) -> str:
    """Return a message or hint in which each parameter of the library is replaced by its option."""
    options = _options(verbs, arguments)

    def named(found: re.Match[str]) -> str:
        return " and ".join(options.get(word, word) for word in found[0].split(" and "))

    text = _BOTH_FORMS.sub(r"\1", text)
    begun = _PARAMETERS.match(text)
    return named(begun) + text[begun.end() :] if begun else text


def _options(command: click.Command, arguments: Sequence[str]) -> dict[str, str]:
    """Return a mapping from parameter names to options, for the verb that is run."""
    for word in arguments:
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), word) or command
    found = {}
    for option in command.params:
        if isinstance(option, click.Option):
            long = max(option.opts, key=len)
            found[long.removeprefix("--").replace("-", "_")] = found[str(option.name)] = long
    return found


def with_runnable_hints(
    report: AddReport,
    paths: Sequence[str],
    policy: KeyPolicy | None,
    policy_path: Path | None,
    keyring: Path | None,
) -> AddReport:
    """Return the report with complete commands in hints that name ``reencrypt`` or ``rotate``.

    The commands get these paths, policy and keyring.
    """
    if policy is None or policy_path is None:
        return report
    named = [*paths, "--policy", str(policy_path)]
    named += [] if keyring is None else ["--keyring", str(keyring)]
    commands = {verb: [*verb.split()[:2], *named] for verb in (REENCRYPT, ROTATE)}
    old = [it.path for it in report.failed if it.hint and any(verb in it.hint for verb in commands)]
    if old and _lacks_a_column(old[0], policy, keyring):
        # `rotate` takes no file that lacks a column of the policy.
        words = [*commands[REENCRYPT], "--allow-missing-columns"]
        commands = dict.fromkeys(commands, words)
    # The keyring opens the old files alone then.
    origin = "; new keys come from the policy's [kms]" if keyring and policy.kms else ""

    def runnable(file: FileAddReport) -> FileAddReport:
        for sketch, words in commands.items():
            if file.hint and sketch in file.hint:
                hint = file.hint.replace(sketch, " ".join(map(shell_word, words)))
                return replace(file, hint=hint + origin)
        return file

    return replace(report, files=tuple(map(runnable, report.files)))


def _lacks_a_column(path: str, policy: KeyPolicy, keyring: Path | None) -> bool:
    """Return whether a file lacks a column of the policy, as ``reencrypt`` would find."""
    from secure_bloom.api.inspect import inspect

    own = policy.for_table(path)
    try:
        (file,) = inspect(path, keys=load_keys(keyring) or own.kms_client()).files
    except SecureBloomError:
        return False
    names = [it.column.split(".") for group in file.row_groups for it in group.columns]
    return bool(names and own.lacking(names))
