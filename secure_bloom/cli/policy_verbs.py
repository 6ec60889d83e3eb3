"""``secure-bloom policy``: draft a policy from a table's schema, or check one before Spark does."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.inputs import read_text
from secure_bloom.cli.shared_arguments import (
    JSON,
    keyring_option,
    load_keys,
    load_policy,
)
from secure_bloom.cli.terminal_tables import print_json
from secure_bloom.cli.verbosity import print_line, print_note, say, with_verbosity
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.policy_text import KMS_LINES, policy_text
from secure_bloom.encryption.spark_ddl import schema_columns
from secure_bloom.errors import (
    FormatError,
    MissingPathError,
    PolicyError,
    refused_by_system,
)

if TYPE_CHECKING:
    from secure_bloom.parquet.schema import Leaf

#: Something of the policy will fail.
EXIT_PROBLEMS = 1

_PATH = click.Path(path_type=Path)


@click.group("policy")
def policy() -> None:
    """Key-to-column policies: begin one, check one."""


@policy.command("init", short_help="Begin a policy with the columns of a table.")
@click.argument("path", required=False)
@click.option(
    "--schema",
    metavar="TEXT",
    help='Instead of a table: a Spark schema as DDL ("id long, email string") or JSON.',
)
@click.option("--schema-from", metavar="FILE", help="The schema from a file; - is stdin.")
@click.option(
    "--sensitive",
    metavar="NAME[,NAME]...",
    help="Columns that get a key, beside those whose names suggest personal data.",
)
@click.option("--client", type=click.Choice(list(KMS_LINES)), default="keyring", show_default=True)
@click.option(
    "-p",
    "--policy",
    "policy_path",
    type=_PATH,
    metavar="FILE",
    help="A policy whose [kms] has the keys for a table whose footers are encrypted.",
)
@keyring_option("Keys for encrypted footers, instead of --policy.")
@click.option("-o", "--output", type=_PATH, metavar="FILE", help="A new file, instead of stdout.")
@with_verbosity
def init_command(
    path: str | None,
    schema: str | None,
    schema_from: str | None,
    client: str,
    sensitive: str | None,
    policy_path: Path | None,
    keyring: Path | None,
    output: Path | None,
) -> int:
    """Write a policy that names every column of the table at PATH.

    Columns of --sensitive get a key and a filter, and so do those whose names suggest e-mail, IBAN,
    card, phone or national id.  The others are commented out.

    Instead of a table that is written, a schema of Spark may be given.

    Nested columns are named as Spark wants them, by their leaves: tags.list.element.

    \b
    secure-bloom policy init out/ --client vault --output policy.toml
    secure-bloom policy init out/ --sensitive name,address
    secure-bloom policy init --schema "id long, email string, tags array<string>"

    Exit code: 0 done, 2 error.
    """
    if [path, schema, schema_from].count(None) != 2:
        raise PolicyError("give a table, or its schema by --schema or --schema-from, and one alone")
    if path is not None:
        # The policy is for its KMS alone: what the files are protected by is not judged here.
        access = Access(
            keys=load_keys(keyring), policy=load_policy(policy_path), allow_unprotected=True
        )
        columns = _columns_of_given(path, access)
    else:
        columns = schema_columns(read_text(schema_from) if schema_from else schema or "")
    names = None
    if sensitive is not None:
        names = [name.strip() for name in sensitive.split(",") if name.strip()]
    text = policy_text(columns, client=client, sensitive=names)
    if output is None:
        click.echo(text, nl=False)
        return 0
    is_new = False
    try:
        with output.open("x", encoding="utf-8") as file:
            is_new = True
            file.write(text)
    except OSError as exc:
        if is_new:
            output.unlink(missing_ok=True)
        raise refused_by_system(
            exc, f"the policy cannot be written: {exc.strerror}", path=str(output)
        ) from exc
    return 0


def _columns_of_given(path: str, access: Access) -> list[tuple[str, str]]:
    """Return the columns of the table at ``path``.

    If ``path`` is a schema by mistake, the error names the option for schemas.
    """
    try:
        return _columns_of_table(path, access)
    except MissingPathError as exc:
        if " " not in path.strip():
            raise
        hint = f"a schema is given by an option: --schema {shlex.quote(path)}"
        raise MissingPathError(exc.message, hint=hint, path=path) from exc
    except FormatError as exc:
        if not Path(path).is_file():
            raise
        hint = f"a schema in a file is given by an option: --schema-from {shlex.quote(path)}"
        raise FormatError(exc.message, hint=hint, path=path) from exc


def _columns_of_table(path: str, access: Access) -> list[tuple[str, str]]:
    from secure_bloom.inspecting.policy_problems import table_leaves
    from secure_bloom.parquet.logical_types import describe

    leaves = table_leaves(path, access)
    return [(leaf.name, _kind(leaf, describe(leaf.element))) for leaf in leaves]


def _kind(leaf: Leaf, kind: str) -> str:
    """Return a column's type for its comment, with a note if no reader can use a filter."""
    from secure_bloom.parquet.structures.metadata import Type

    return f"{kind}: no reader can use a filter" if leaf.type is Type.INT96 else kind


@policy.command("check", short_help="Show what is wrong with a policy.")
@click.argument("file", type=_PATH)
@click.option("--table", metavar="PATH", help="Check its columns against those of a table.")
@click.option(
    "--schema",
    metavar="TEXT",
    help='Check its columns against a Spark schema: DDL ("id long, at timestamp") or JSON.',
)
@keyring_option("Keys for a table whose footers are encrypted.")
@JSON
@with_verbosity
def check_command(
    file: Path, table: str | None, schema: str | None, keyring: Path | None, as_json: bool
) -> int:
    """Show everything that is wrong with a policy, and what of it Spark cannot write.

    With --table, also show columns that the table lacks, and parents of nested columns with the
    leaves to name instead.  A policy with several tables is checked table by table: PATH may be the
    folder above them.  No KMS is asked, unless the table's footers are encrypted: that is
    `keys check`.

    \b
    secure-bloom policy check policy.toml --table out/
    secure-bloom policy check policy.toml --schema "id long, email string, at timestamp"

    Exit code: 0 nothing is wrong, 1 something will fail, if only in Spark, 2 the file is no policy,
    or another error.
    """
    from secure_bloom.auditing.rules import RULES
    from secure_bloom.inspecting.policy_problems import check_policy

    if table is not None and schema is not None:
        raise PolicyError("give a table or a schema, not both")
    checked = check_policy(
        file, table=table, schema=schema, keys=load_keys(keyring), findings=RULES
    )
    if as_json:
        found = [
            {"column": p.column, "message": p.message, "hint": p.hint} for p in checked.problems
        ]
        print_json({"problems": found, "notes": list(checked.notes)})
    elif not checked.problems:
        print_line(f"{file}: nothing is wrong")
    for note in () if as_json else checked.notes:
        print_note(note)
    for problem in checked.problems:
        say("error", str(problem))
        if problem.hint:
            say("hint", problem.hint)
    if not checked.is_valid:
        return 2
    return EXIT_PROBLEMS if checked.problems else 0
