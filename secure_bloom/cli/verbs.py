"""The group of verbs that other modules have: each is imported when it is asked for.

All of them together would add a fifth to the CPU time of a probe, which needs none.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

#: Verb -> the module of this package that has it, and its name there.
_ELSEWHERE: Final = {
    "audit": ("audit_verb", "audit_command"),
    "hudi": ("hudi_verbs", "hudi"),
    "paimon": ("paimon_verbs", "paimon"),
    "read": ("read_verb", "read_command"),
}


class Verbs(click.Group):
    """A group that knows the verbs of its neighbours by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, sorted."""
        return sorted({*super().list_commands(ctx), *_ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, imported where that has not been done yet."""
        if cmd_name in _ELSEWHERE and cmd_name not in self.commands:
            module, name = _ELSEWHERE[cmd_name]
            self.add_command(getattr(import_module(f"secure_bloom.cli.{module}"), name))
        return super().get_command(ctx, cmd_name)
