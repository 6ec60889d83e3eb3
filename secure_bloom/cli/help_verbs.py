"""``secure-bloom help`` and ``completion``: print help, and shell completion."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import click

from secure_bloom.errors import PolicyError

_SHELLS = ("bash", "zsh", "fish")


@click.command("help")
@click.argument("verbs", nargs=-1, metavar="[VERB]...")
@click.pass_context
def help_command(ctx: click.Context, verbs: tuple[str, ...]) -> int:
    """Show the help of VERB.

    \b
    secure-bloom help add
    secure-bloom help keys used

    Exit code: 0 done, 2 error.
    """
    found = ctx.find_root()
    for verb in verbs:
        group = found.command
        command = group.get_command(found, verb) if isinstance(group, click.Group) else None
        if command is None:
            known = group.list_commands(found) if isinstance(group, click.Group) else []
            raise unknown_verb(" ".join(verbs), verb, known)
        found = click.Context(command, info_name=verb, parent=found)
    click.echo(found.get_help())
    return 0


def unknown_verb(words: str, verb: str, known: Sequence[str]) -> PolicyError:
    """Return the error for an unknown verb.

    Its hint is the verb with the most similar name.
    """
    likely = get_close_matches(verb, known, n=1)
    meant = words.removesuffix(verb) + likely[0] if likely else None
    hint = f"did you mean {meant}?" if meant else "see secure-bloom --help"
    return PolicyError(f"there is no verb {words}", hint=hint)


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> int:
    """Print what makes SHELL complete verbs and options.

    \b
    bash:  secure-bloom completion bash > ~/.local/share/bash-completion/completions/secure-bloom
    zsh:   secure-bloom completion zsh > "${fpath[1]}/_secure-bloom"
    fish:  secure-bloom completion fish > ~/.config/fish/completions/secure-bloom.fish

    Exit code: 0 done, 2 error.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise PolicyError(f"there is no completion for the shell {shell}")
    root = ctx.find_root()
    click.echo(kind(root.command, {}, "secure-bloom", "_SECURE_BLOOM_COMPLETE").source())
    return 0
