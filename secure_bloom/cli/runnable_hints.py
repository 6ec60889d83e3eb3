"""Rewrite messages of the library for the command line: its option names, and complete commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.shared_arguments import load_keys
from secure_bloom.encryption.trust import REENCRYPT, ROTATE
from secure_bloom.errors import SecureBloomError
from secure_bloom.reports.text import legible, shell_word
from secure_bloom.storage import below, join, name_of
from secure_bloom.storage.listing import is_data_file

if TYPE_CHECKING:
    from secure_bloom.adding.report import AddReport, FileAddReport
    from secure_bloom.encryption.policy import KeyPolicy
    from secure_bloom.lakes.managed_tables import ManagedTableError


#: The parameters that a message begins with, as in "in_place and output exclude each other".
_PARAMETERS = re.compile(r"\w+(?: and \w+)?(?= (?:is|are|has|exclude)\b|: )")
#: Advice on a parameter that has the option beside it.
_BOTH_FORMS = re.compile(r"\w+=(?:True|\{[^}]*\}) \((--[^)]+)\)")


#: The verbs that write files, and tables one at a time.
_OF_TABLES = frozenset({"add", "reencrypt", "rotate", "decrypt"})
_OUTPUT = ("-o", "--output")
#: Paths that a command names.
_MOST_PATHS = 20


def with_option_names(text: str, verbs: click.Command, arguments: Sequence[str]) -> str:
    """Return a message or hint in which each parameter of the library is replaced by its option."""
    options = _options(verbs, arguments)

    def named(found: re.Match[str]) -> str:
        return " and ".join(options.get(word, word) for word in found[0].split(" and "))

    text = _BOTH_FORMS.sub(r"\1", text)
    begun = _PARAMETERS.match(text)
    return named(begun) + text[begun.end() :] if begun else text


def one_run_each(
    error: ManagedTableError, verbs: click.Command, arguments: Sequence[str]
) -> list[str]:
    """Return a command for the other files below the given paths, and one for each table there.

    For a table that the verb cannot write, return a sentence.
    """
    _, command = verb_run(verbs, arguments)
    if command.name not in _OF_TABLES or not error.tables or "--" in arguments:
        return []
    start = arguments.index(command.name) + 1
    values = {
        name
        for option in command.params
        if isinstance(option, click.Option) and not option.is_flag
        for name in option.opts
    }
    paths: list[str] = []
    options: list[list[str]] = []
    # Also --output=DIR and -oDIR.
    given = (re.sub(r"^(--[\w-]+)=|^(-o)(?=.)", r"\1\2\0", it) for it in arguments[start:])
    words = chain.from_iterable(it.split("\0", 1) for it in given)
    for word in words:
        if word.startswith("-"):
            options.append([word, *islice(words, word in values)])
        else:
            paths.append(word)
    output = next((it[1] for it in options if it[0] in _OUTPUT), None)
    kept = [it for it in options if it[0] not in (*_OUTPUT, "--in-place")]

    def run(*places: str, more: Sequence[str] = ()) -> str:
        if output is not None:
            inner = next((it for path in paths if (it := below(places[0], path)) is not None), "")
            inner = inner.rpartition("/")[0] if is_data_file(name_of(inner)) else inner
            more = ["--output", join(output, inner) if inner else output]
        given = (*arguments[:start], *places, *chain.from_iterable(kept), *more)
        return " ".join(map(shell_word, ("secure-bloom", *given)))

    in_place = [it[0] for it in options if it[0] == "--in-place"]
    together = [error.others] if output is None and error.others else [[it] for it in error.others]
    lines = [run(*places, more=in_place) for places in together if len(places) <= _MOST_PATHS]
    for place, form in error.tables.items():
        if form.table_to_write([place]) is None:
            lines.append(f"{legible(place)}: {form.rewritten_by.format(verb=command.name)}")
        elif output is not None and command.name != "decrypt":
            lines.append(f"{legible(place)}: {command.name} commits to a table, without --output")
        else:
            lines.append(run(place))
    return lines


def _options(command: click.Command, arguments: Sequence[str]) -> dict[str, str]:
    """Return a mapping from parameter names to options, for the verb that is run."""
    found: dict[str, str] = {}
    _, command = verb_run(command, arguments)
    for option in command.params:
        if isinstance(option, click.Option):
            long = max(option.opts, key=len)
            found[long.removeprefix("--").replace("-", "_")] = found[str(option.name)] = long
    return found


def verb_run(command: click.Command, arguments: Sequence[str]) -> tuple[str, click.Command]:
    """Return the verb that is run, and before it how a shell calls it."""
    called = "secure-bloom"
    for word in arguments:
        if isinstance(command, click.Group):
            verb = command.get_command(click.Context(command), word)
            if verb is not None:
                called, command = f"{called} {word}", verb
    return called, command


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
