"""The group of all verbs. The module of a verb is imported when the verb is used.

Importing all of them would add a fifth to the CPU time of a probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

from secure_bloom.cli.verbosity import VERBOSE, with_verbosity
from secure_bloom.errors import PolicyError

_SHELLS = ("bash", "zsh", "fish")


@click.command("help")
@with_verbosity
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
    from difflib import get_close_matches

    likely = get_close_matches(verb, known, n=1)
    meant = words.removesuffix(verb) + likely[0] if likely else None
    hint = f"did you mean {meant}?" if meant else "see secure-bloom --help"
    return PolicyError(f"there is no verb {words}", hint=hint)


@click.command("completion")
@with_verbosity
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
    script = kind(root.command, {}, "secure-bloom", "_SECURE_BLOOM_COMPLETE").source()
    # click's script for fish cuts a description at its first comma.
    click.echo(script.replace('string split ","', 'string split --max 1 ","'))
    return 0


#: Verb -> the module of this package that has it, its name there, and its line in the help.
_VERBS: Final = {
    "add": ("add_verb", "add_command", "Add Bloom filters to Parquet files."),
    "advise": ("advise_verb", "advise_command", "Say which columns gain by a Bloom filter."),
    "audit": ("audit_verb", "audit_command", "Check every file, and the policy itself."),
    "completion": ("verbs", "completion_command", "Print what makes a shell complete verbs."),
    "decrypt": ("rekey_verbs", "decrypt_command", "Write files in clear, below another folder."),
    "demo": ("demo_verb", "demo_command", "Write a table on Spark, add filters, look values up."),
    "help": ("verbs", "help_command", "Show the help of VERB."),
    "hudi": ("hudi_verbs", "hudi", "Show, add and ask Apache Hudi's filters."),
    "inspect": (
        "inspect_verb",
        "inspect_command",
        "Show footers, encryption, keys and filters of files.",
    ),
    "keys": ("keys_verbs", "keys", "Check, make and find master keys."),
    "paimon": ("paimon_verbs", "paimon", "Show, build and ask Apache Paimon's indexes."),
    "policy": ("policy_verbs", "policy", "Begin and check a policy."),
    "probe": ("probe_verb", "probe_command", "Ask filters whether values may be there."),
    "read": ("read_verb", "read_command", "Read the rows for which a condition is true."),
    "reencrypt": ("rekey_verbs", "reencrypt_command", "Bring files under a policy."),
    "rotate": ("rekey_verbs", "rotate_command", "Bring files under other master keys."),
    "sql": ("sql_verb", "sql_command", "Run a SQL query over tables."),
    "trace": ("trace_verb", "trace_command", "Search files of any kind for values of columns."),
}


class Verbs(click.Group):
    """A click group that knows the module of each verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return all verbs, sorted."""
        return list(_VERBS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb in the arguments. Raises PolicyError for an unknown verb."""
        if args[0] in _VERBS or args[0].startswith("-"):
            return super().resolve_command(ctx, args)

        raise unknown_verb(args[0], args[0], list(_VERBS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the verb, importing it now, or None for an unknown verb."""
        if cmd_name not in _VERBS:
            return None
        module, name, text = _VERBS[cmd_name]
        command: click.Command = getattr(import_module(f"secure_bloom.cli.{module}"), name)
        command.short_help = text
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the line of each verb. No verb is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, _, text) in _VERBS.items()])


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option(
    "-V", "--version", is_flag=True, help="Show the version; with -v also which code runs loops."
)
@VERBOSE
@with_verbosity
@click.pass_context
def cli(ctx: click.Context, version: bool, verbose: bool) -> int:
    """Bloom filters for Parquet files that are already written, encrypted like their columns.

    \b
    secure-bloom advise out/                              which columns gain from a filter
    secure-bloom add out/ --policy keys/policy.toml       add filters, data untouched
    secure-bloom probe out/ email a@example.com --keyring keys/dev-keyring.json
    secure-bloom read out/ --where "email = 'a@x'"        rows, skipping what filters exclude
    secure-bloom sql "select count(*) from 'out/'"        SQL over encrypted tables
    secure-bloom inspect out/                             footers, keys, filters
    secure-bloom audit out/ --policy keys/policy.toml     does every file obey the policy
    secure-bloom trace dump.csv --values-of out/:email    is this dump ours
    secure-bloom demo                                     all of it on Spark, in a minute

    Exit code 2 means an error, which is described on stderr with a hint.  141: the reader of
    the output (head, a pager) closed it.

    Defaults of --policy and --keyring: SECURE_BLOOM_POLICY and SECURE_BLOOM_KEYRING,
    or as policy and keyring in secure-bloom.toml or in [tool.secure-bloom] of pyproject.toml, in
    this folder or above.
    """
    if version:
        _print_version(verbose=verbose)
        ctx.exit()
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return 0


def _print_version(*, verbose: bool) -> None:
    from importlib.metadata import version

    click.echo(f"secure-bloom, version {version('secure-bloom')}")
    if verbose:
        from secure_bloom.kernels import extension

        click.echo(f"loops: {extension.description}")
