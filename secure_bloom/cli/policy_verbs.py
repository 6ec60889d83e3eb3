"""``secure-bloom policy``: begin one from a table's schema, check one before Spark does."""

from __future__ import annotations

from pathlib import Path

import click

from secure_bloom.cli.arguments import JSON, keyring_option, load_keys
from secure_bloom.cli.loudness import tell
from secure_bloom.cli.tables import print_json
from secure_bloom.encryption.policy_text import KMS_LINES, policy_text
from secure_bloom.errors import PolicyError, SecureBloomError

_PATH = click.Path(path_type=Path)


@click.group("policy")
def policy() -> None:
    """Key-to-column policies: begin one, check one."""


@policy.command("init")
@click.argument("path")
@click.option("--client", type=click.Choice(list(KMS_LINES)), default="keyring", show_default=True)
@keyring_option("Keys for a table whose footers are encrypted.")
@click.option("-o", "--output", type=_PATH, metavar="FILE", help="A new file, instead of stdout.")
def init_command(path: str, client: str, keyring: Path | None, output: Path | None) -> int:
    """Write a policy that names every column of the table at PATH, commented out.

    Nested columns are named as Spark wants them, by their leaves: tags.list.element.

    \b
    secure-bloom policy init out/ --client vault --output policy.toml

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.parquet.logical_types import describe
    from secure_bloom.reading.table_leaves import table_leaves

    leaves = table_leaves(path, load_keys(keyring))
    text = policy_text(((leaf.name, describe(leaf.element)) for leaf in leaves), client=client)
    if output is None:
        click.echo(text, nl=False)
        return 0
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as exc:
        raise PolicyError(
            f"the policy cannot be written: {exc.strerror}", path=str(output)
        ) from exc
    return 0


@policy.command("check")
@click.argument("file", type=_PATH)
@click.option("--table", metavar="PATH", help="Hold its columns against those of a table.")
@keyring_option("Keys for a table whose footers are encrypted.")
@JSON
def check_command(file: Path, table: str | None, keyring: Path | None, as_json: bool) -> int:
    """Tell everything that is wrong with a policy, and what of it Spark cannot write.

    With --table also columns that are not there, and parents of nested columns, with the leaves
    to name.  No KMS is asked, unless the table's footers are encrypted: that is `keys check`.

    \b
    secure-bloom policy check policy.toml --table out/

    Exit code: 0 nothing is wrong, 2 something is.
    """
    problems = _problems(file, table, keyring)
    if as_json:
        found = [{"column": p.column, "message": p.message, "hint": p.hint} for p in problems]
        print_json({"problems": found})
    elif not problems:
        tell(f"{file}: nothing is wrong")
    for problem in problems:
        tell(f"secure-bloom: error: {problem}", err=True)
        if problem.hint:
            tell(f"secure-bloom: hint: {problem.hint}", err=True)
    return 2 if problems else 0


def _problems(file: Path, table: str | None, keyring: Path | None) -> list[SecureBloomError]:
    from secure_bloom.encryption.policy import draft_policy
    from secure_bloom.encryption.spark_columns import spark_problems
    from secure_bloom.reading.table_leaves import table_leaves

    loaded, problems = draft_policy(file)
    if loaded is None or not loaded.footer_key:
        return list(problems)
    leaves = None
    if table is not None:
        leaves = [leaf.path for leaf in table_leaves(table, load_keys(keyring, loaded))]
    return [*problems, *spark_problems(loaded, leaves)]
