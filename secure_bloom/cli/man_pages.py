"""Manual pages (man 7 man) made of what the verbs say of themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click


def man_pages(top: click.Context) -> Iterator[tuple[str, str]]:
    """Name and text of the page of each verb, the program's own first."""
    command = top.command
    name = top.command_path.replace(" ", "-")
    yield name, "\n".join(_page(top, name))
    if isinstance(command, click.Group):
        for verb in command.list_commands(top):
            below = command.get_command(top, verb)
            if below is not None:
                yield from man_pages(click.Context(below, info_name=verb, parent=top))


def _page(context: click.Context, name: str) -> Iterator[str]:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    yield f'.TH "{name.upper()}" "1"'
    yield ".SH NAME"
    yield f"{name} \\- {_escaped(command.get_short_help_str(200))}"
    yield ".SH SYNOPSIS"
    yield f"\\fB{context.command_path}\\fR {_escaped(usage)}"
    yield ".SH DESCRIPTION"
    # Before Python 3.13 a docstring keeps the indentation of its source.
    yield from _paragraphs(inspect.cleandoc(command.help or ""))
    # Arguments say nothing of themselves that the synopsis does not.
    options = [p for p in command.params if isinstance(p, click.Option)]
    records = [record for p in options if (record := p.get_help_record(context))]
    yield from _listed("OPTIONS", records)
    if isinstance(command, click.Group):
        verbs = command.list_commands(context)
        found = [(verb, command.get_command(context, verb)) for verb in verbs]
        yield from _listed("VERBS", [(v, c.get_short_help_str(200)) for v, c in found if c])


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.strip().split("\n\n"):
        # click's mark of a paragraph whose lines stay as they are.
        if paragraph.startswith("\b"):
            yield from (".PP", ".nf", _escaped(paragraph.removeprefix("\b\n")), ".fi")
        else:
            yield from (".PP", _escaped(paragraph))


def _listed(title: str, records: list[tuple[str, str]]) -> Iterator[str]:
    if records:
        yield f".SH {title}"
    for term, text in records:
        yield from (".TP", f"\\fB{_escaped(term)}\\fR", _escaped(text))


def _escaped(text: str) -> str:
    """Return text in which roff sees no command of its own."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)
