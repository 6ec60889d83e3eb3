"""How much is printed, and in which colours: ``-v``, ``-q``, ``--color``, before or after the verb.

With ``-q`` texts for people are left out, hints and warnings too.  Errors are printed, and data:
rows of ``read`` and ``sql``, documents of ``--json``, texts of ``policy init`` and ``completion``.

No text from a file controls the terminal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from itertools import takewhile
from typing import Any, Final, TypeVar

import click

from secure_bloom.reports.text import counted, written_out

F = TypeVar("F", bound=Callable[..., Any])
_VERBOSE, _QUIET, _COLOR = "secure_bloom.verbose", "secure_bloom.quiet", "secure_bloom.color"
_SUMMARY = "secure_bloom.summary"
#: ``-q`` among short options that take no value.
_BUNDLE: Final = re.compile(r"-[nqv]*q[nqv]*")
#: Notes on single files may be as many as the files.
SHOWN_NOTES: Final = 20
_quiet = ContextVar("quiet", default=False)
#: Word of ``--color`` -> what click and rich get; None leaves it to the terminal.
_COLORS = {"always": True, "never": False, "auto": None}


def is_quiet() -> bool:
    """Return whether ``-q`` was given so far, or in the arguments of :func:`settle_quiet`."""
    return _is_set(_QUIET) or _quiet.get()


def settle_quiet(arguments: Iterable[str]) -> None:
    """Look for ``-q`` in the arguments of the program.

    After an error there may be no context of click that has the option.
    """
    options = takewhile(lambda it: it != "--", arguments)
    _quiet.set(any(it == "--quiet" or _BUNDLE.fullmatch(it) is not None for it in options))


def is_verbose() -> bool:
    """Return whether ``-v`` was given so far."""
    return _is_set(_VERBOSE)


def wants_summary() -> bool:
    """Return whether ``--summary`` was given."""
    return _is_set(_SUMMARY)


def _is_set(mark: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(mark))


def wanted_color() -> bool | None:
    """Return whether colours are wanted, or None if the terminal decides."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_COLOR)


def remember_verbose(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    """Remember ``-v`` and return its value, which the verb gets too."""
    context.meta[_VERBOSE] = value or is_verbose()
    return is_verbose()


def remember_quiet(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Remember ``-q``."""
    if value:
        context.meta[_QUIET] = True


def remember_summary(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Remember ``--summary``."""
    context.meta[_SUMMARY] = value


def remember_color(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    """Remember ``--color``."""
    if value is not None:
        context.color = context.meta[_COLOR] = _COLORS[value]


#: ``--summary`` of a verb that writes files.
SUMMARY = click.option(
    "--summary",
    is_flag=True,
    expose_value=False,
    callback=remember_summary,
    help="Report totals and failed files, not every file.",
)
#: ``-v`` of a verb, which gets it as ``verbose``.
VERBOSE = click.option("-v", "--verbose", is_flag=True, callback=remember_verbose, help="Say more.")
#: The others, of the program and of each verb.
VERBOSITY = (
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=remember_quiet,
        help="Print nothing but errors, and data that is asked for: rows, --json, --output.",
    ),
    click.option(
        "--color",
        type=click.Choice(list(_COLORS)),
        expose_value=False,
        callback=remember_color,
        help="Whether to use colours. By default auto.",
    ),
)


def with_verbosity(function: F) -> F:
    """Add ``-q`` and ``--color``, which every verb has."""
    return functools.reduce(lambda done, option: option(done), VERBOSITY, function)


def print_line(line: str, *, err: bool = False) -> None:
    """Print one line, on stderr with ``err``, but not with ``-q``.

    Unprintable characters are escaped.
    """
    if not is_quiet():
        click.echo(written_out(line), err=err)


def print_note(note: str | None, *, err: bool = False) -> None:
    """Print a note beside the results, but not with ``-q``."""
    print_line(f"note: {note}", err=err)


def print_notes(notes: Iterable[str], *, verbose: bool) -> None:
    """Print notes beside the results: the first few, or all with ``verbose``."""
    every = list(notes)
    shown = every if verbose else every[:SHOWN_NOTES]
    for note in shown:
        print_note(note)
    if len(shown) < len(every):
        print_note(f"{counted(len(every) - len(shown), 'more note')}: -v names them all")


def say(kind: str, message: str) -> None:
    """Print one line on stderr, in the form that programs can rely on. With ``-q`` only errors."""
    if kind == "error" or not is_quiet():
        click.echo(written_out(f"secure-bloom: {kind}: {message}"), err=True)
