"""``secure-bloom policy``: draft a policy from a table's schema, or check one before Spark does."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.shared_arguments import JSON, keyring_option, load_keys, read_text
from secure_bloom.cli.terminal_tables import print_json
from secure_bloom.cli.verbosity import print_line, print_note
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.policy import KMS_LINES, policy_text
from secure_bloom.encryption.spark_ddl import schema_columns
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    MissingPathError,
    PolicyError,
    SecureBloomError,
)

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy
    from secure_bloom.parquet.schema import Leaf

_PATH = click.Path(path_type=Path)


@click.group("policy", short_help="Begin and check a policy.")
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
@click.option("--client", type=click.Choice(list(KMS_LINES)), default="keyring", show_default=True)
@keyring_option("Keys for a table whose footers are encrypted.")
@click.option("-o", "--output", type=_PATH, metavar="FILE", help="A new file, instead of stdout.")
def init_command(
    path: str | None,
    schema: str | None,
    schema_from: str | None,
    client: str,
    keyring: Path | None,
    output: Path | None,
) -> int:
    """Write a policy that names every column of the table at PATH, commented out.

    Instead of a table that is written, a schema of Spark may be given.

    Nested columns are named as Spark wants them, by their leaves: tags.list.element.

    \b
    secure-bloom policy init out/ --client vault --output policy.toml
    secure-bloom policy init --schema "id long, email string, tags array<string>"

    Exit code: 0 done, 2 error.
    """
    if [path, schema, schema_from].count(None) != 2:
        raise PolicyError("give a table, or its schema by --schema or --schema-from, and one alone")
    if path is not None:
        columns = _columns_of_given(path, keyring)
    else:
        columns = schema_columns(read_text(schema_from) if schema_from else schema or "")
    text = policy_text(columns, client=client)
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


def _columns_of_given(path: str, keyring: Path | None) -> list[tuple[str, str]]:
    """Return the columns of a table. An error for a path that is a schema names the option."""
    try:
        return _columns_of_table(path, keyring)
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


def _columns_of_table(path: str, keyring: Path | None) -> list[tuple[str, str]]:
    from secure_bloom.parquet.logical_types import describe
    from secure_bloom.reading.table_leaves import table_leaves

    leaves = table_leaves(path, Access(keys=load_keys(keyring)))
    return [(leaf.name, _kind(leaf, describe(leaf.element))) for leaf in leaves]


def _kind(leaf: Leaf, kind: str) -> str:
    """Return a column's type for its comment, with a note if no reader can use a filter."""
    from secure_bloom.parquet.structures.metadata import Type

    return f"{kind}: no reader can use a filter" if leaf.type is Type.INT96 else kind


@policy.command("check", short_help="Show what is wrong with a policy.")
@click.argument("file", type=_PATH)
@click.option("--table", metavar="PATH", help="Check its columns against those of a table.")
@keyring_option("Keys for a table whose footers are encrypted.")
@JSON
def check_command(file: Path, table: str | None, keyring: Path | None, as_json: bool) -> int:
    """Show everything that is wrong with a policy, and what of it Spark cannot write.

    With --table also columns that are not there, and parents of nested columns, with the leaves
    to name.  No KMS is asked, unless the table's footers are encrypted: that is `keys check`.

    \b
    secure-bloom policy check policy.toml --table out/

    Exit code: 0 nothing is wrong, 2 something is.
    """
    loaded, problems, leaves = _problems(file, table, keyring)
    notes = [] if loaded is None else [*_unnamed_keys(loaded), *_useless_filters(loaded, leaves)]
    if as_json:
        found = [{"column": p.column, "message": p.message, "hint": p.hint} for p in problems]
        print_json({"problems": found, "notes": notes})
    elif not problems:
        print_line(f"{file}: nothing is wrong")
    for note in () if as_json else notes:
        print_note(note)
    for problem in problems:
        print_line(f"secure-bloom: error: {problem}", err=True)
        if problem.hint:
            print_line(f"secure-bloom: hint: {problem.hint}", err=True)
    return 2 if problems else 0


def _problems(
    file: Path, table: str | None, keyring: Path | None
) -> tuple[KeyPolicy | None, list[SecureBloomError], Sequence[Leaf]]:
    """Return the policy, if it can be read, its problems, and the columns of the table."""
    from secure_bloom.encryption.policy import draft_policy
    from secure_bloom.encryption.spark_properties import spark_problems

    loaded, problems = draft_policy(file)
    if loaded is None:
        return None, list(problems), ()
    leaves = () if table is None else _leaves(table, keyring, loaded)
    if not loaded.footer_key:
        return loaded, list(problems), leaves
    paths = None if table is None else [leaf.path for leaf in leaves]
    found: list[SecureBloomError] = [*problems, *spark_problems(loaded, paths)]
    known = {problem.column for problem in found}
    alike = _lookalikes(loaded, paths or ())
    # A rule whose column is not there has a problem already, which names the similar column.
    found += [error for like, error in alike if like not in known]
    return loaded, found, leaves


def _lookalikes(
    policy: KeyPolicy, paths: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, PolicyError]]:
    """Yield a problem for each column without a key that is like one that has a key, and that."""
    clear = [path for path in paths if policy.key_for(path) is None]
    for path, like in policy.likeness.lookalikes(clear, paths).items():
        yield like, policy.alike_error(".".join(path), like)


def _useless_filters(policy: KeyPolicy, leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield a note for each column whose filter in the policy no reader can use."""
    from secure_bloom.parquet.schema import INT96_NOTE, select
    from secure_bloom.parquet.structures.metadata import Type

    leaves = tuple(leaves)
    for name in policy.bloom_columns():
        for leaf in (leaves[ordinal] for ordinal in select(leaves, name)):
            if leaf.type is Type.INT96:
                yield f"column {leaf.name} is {INT96_NOTE}"


def _leaves(table: str, keyring: Path | None, policy: KeyPolicy) -> tuple[Leaf, ...]:
    """Return the columns of a table. Keys are used only for encrypted footers."""
    from secure_bloom.reading.table_leaves import table_leaves

    try:
        return table_leaves(table)
    except KeyUnavailableError:
        return table_leaves(table, Access(keys=load_keys(keyring), policy=policy))


def _unnamed_keys(policy: KeyPolicy) -> Iterator[str]:
    """Yield a note on keys in the policy's keyring that the policy does not name."""
    # No KMS is asked, and the keyring need not be on this machine.
    keyring = policy.keyring_path()
    if keyring is None or not keyring.exists():
        return
    unnamed = sorted(Keyring.load(keyring).master_keys.keys() - policy.named_keys())
    if unnamed:
        yield (
            f"the keyring has keys that the policy does not name: {', '.join(unnamed)}; files "
            "under them are opened all the same, because a keyring is its owner's choice"
        )
