"""The amount of output, and its colours: ``-v``, ``-q``, ``--color``, of the program or a verb.

Whatever a file says of itself, nothing of it drives the terminal.
"""

from __future__ import annotations

import click

from secure_bloom.reports.text import written_out

_VERBOSE, _QUIET, _COLOR = "secure_bloom.verbose", "secure_bloom.quiet", "secure_bloom.color"
#: Word of ``--color`` -> what click and rich are told; None leaves it to the terminal.
_COLORS = {"always": True, "never": False, "auto": None}


def is_quiet() -> bool:
    """Return whether ``-q`` was given."""
    return _is_set(_QUIET)


def is_verbose() -> bool:
    """Return whether ``-v`` was given, so far."""
    return _is_set(_VERBOSE)


def _is_set(mark: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(mark))


def wanted_color() -> bool | None:
    """Return whether colours are wanted; None where the terminal decides."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_COLOR)


def remember_verbose(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    """Return the callback of ``-v``, whose value a verb gets too."""
    context.meta[_VERBOSE] = value or is_verbose()
    return is_verbose()


def remember_quiet(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """The callback of ``-q``."""
    if value:
        context.meta[_QUIET] = True


def remember_color(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    """The callback of ``--color``."""
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
        help="No progress and no notes: results and errors alone.",
    ),
    click.option(
        "--color",
        type=click.Choice(list(_COLORS)),
        expose_value=False,
        callback=remember_color,
        help="Whether to use colours; auto unless given.",
    ),
)


def tell(line: str, *, err: bool = False) -> None:
    """One line, on stderr with ``err``; what is not printable in it is written out."""
    click.echo(written_out(line), err=err)


def tell_note(note: str | None, *, err: bool = False) -> None:
    """Something to know beside the results; nothing with ``-q``."""
    if not is_quiet():
        tell(f"note: {note}", err=err)
