"""Make messages of the library those of the command line: its options, and commands that run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.shared_arguments import load_keys
from secure_bloom.encryption.trust import REENCRYPT
from secure_bloom.errors import SecureBloomError
from secure_bloom.reports.text import shell_word

if TYPE_CHECKING:
    from secure_bloom.adding.report import AddReport
    from secure_bloom.encryption.policy import KeyPolicy


#: The parameters that a message begins with, as in "in_place and output exclude each other".
_PARAMETERS = re.compile(r"\w+(?: and \w+)?(?= (?:is|are|has|exclude)\b|: )")
#: Advice on a parameter that has the option beside it.
_BOTH_FORMS = re.compile(r"\w+=True \((--[\w-]+)\)")


def with_option_names(text: str, verbs: click.Command, arguments: Sequence[str]) -> str:
    """Return a message or hint in which parameters of the library are options of the verb."""
    options = _options(verbs, arguments)

    def named(found: re.Match[str]) -> str:
        return " and ".join(options.get(word, word) for word in found[0].split(" and "))

    text = _BOTH_FORMS.sub(r"\1", text)
    begun = _PARAMETERS.match(text)
    return named(begun) + text[begun.end() :] if begun else text


def _options(command: click.Command, arguments: Sequence[str]) -> dict[str, str]:
    """Return the options of the verb that is run, by their names as parameters."""
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
    """Return the report. Hints that name ``reencrypt`` name it with these arguments."""
    failed = [file for file in report.failed if file.hint and REENCRYPT in file.hint]
    if not failed or policy is None or policy_path is None:
        return report
    words = ["secure-bloom", "reencrypt", *paths, "--policy", str(policy_path)]
    words += [] if keyring is None else ["--keyring", str(keyring)]
    if _lacks_a_column(failed[0].path, policy, keyring):
        words.append("--allow-missing-columns")
    command = " ".join(map(shell_word, words))
    # The keyring opens the old files alone then.
    origin = "; new keys come from the policy's [kms]" if keyring and policy.kms else ""
    files = (
        replace(file, hint=file.hint.replace(REENCRYPT, command) + origin)
        if file.hint and REENCRYPT in file.hint
        else file
        for file in report.files
    )
    return replace(report, files=tuple(files))


def _lacks_a_column(path: str, policy: KeyPolicy, keyring: Path | None) -> bool:
    """Return whether a file lacks a column of the policy, as ``reencrypt`` would find."""
    from secure_bloom.api.inspect import inspect

    own = policy.for_table(path)
    try:
        (file,) = inspect(path, keys=load_keys(keyring) or own.kms_client()).files
    except SecureBloomError:
        return False
    names = [f"{it.column}." for group in file.row_groups for it in group.columns]
    wanted = own.columns.keys() - own.shared
    return bool(names) and any(
        not any(name.startswith(f"{column}.") for name in names) for column in wanted
    )
