"""Lines for a terminal: whatever a file says of itself, none of it drives the terminal."""

from __future__ import annotations

import click

from secure_bloom.cli.loudness import is_quiet
from secure_bloom.text import written_out


def tell(line: str, *, err: bool = False) -> None:
    """One line, on stderr with ``err``; what is not printable in it is written out."""
    click.echo(written_out(line), err=err)


def tell_note(note: str | None, *, err: bool = False) -> None:
    """Something to know beside the results; nothing with ``-q``."""
    if not is_quiet():
        tell(f"note: {note}", err=err)
