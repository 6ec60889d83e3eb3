"""How much is printed, and in which colours: ``-v``, ``-q``, ``--color``, before or after the verb.

No text from a file controls the terminal.
"""

from __future__ import annotations

import click

from secure_bloom.reports.text import written_out

_VERBOSE, _QUIET, _COLOR = "secure_bloom.verbose", "secure_bloom.quiet", "secure_bloom.color"
#: Word of ``--color`` -> what click and rich get; None leaves it to the terminal.
_COLORS = {"always": True, "never": False, "auto": None}


def is_quiet() -> bool:
    """Return whether ``-q`` was given."""
    return _is_set(_QUIET)


def is_verbose() -> bool:
    """Return whether ``-v`` was given so far."""
    return _is_set(_VERBOSE)


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


def remember_color(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    """Remember ``--color``."""
    if value is not None:
        context.color = context.meta[_COLOR] = _COLORS[value]


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
        help="Print only results and errors, no progress and no notes.",
    ),
    click.option(
        "--color",
        type=click.Choice(list(_COLORS)),
        expose_value=False,
        callback=remember_color,
        help="Whether to use colours. By default auto.",
    ),
)


def print_line(line: str, *, err: bool = False) -> None:
    """Print one line, on stderr with ``err``. Unprintable characters are escaped."""
    click.echo(written_out(line), err=err)


def print_note(note: str | None, *, err: bool = False) -> None:
    """Print a note beside the results, but not with ``-q``."""
    if not is_quiet():
        print_line(f"note: {note}", err=err)
