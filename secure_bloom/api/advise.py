"""Advise which columns of a table are to have filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike

from secure_bloom.advising.advisor import advise_columns
from secure_bloom.advising.table_advice import TableAdvice
from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.storage.storage_options import with_storage_options


@checked_arguments
@with_storage_options
def advise(
    paths: Paths,
    *,
    columns: str | Iterable[str] | None = None,
    queries: str | PathLike[str] | None = None,
    fpp: float | None = None,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_unprotected: bool = False,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> TableAdvice:
    """Return which columns gain from a Bloom filter. Nothing is written.

    Filters are built in memory for a part of the table.  Values are looked up without and with
    them, by the code that reads tables. So the reported bytes are those that ``explain`` would
    report for reads that return all columns.  Each column is tried alone.

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        columns: One column or several; by default all.
        queries: A file with one SQL condition or statement in each line. Columns are ranked by it.
        fpp: False-positive probability of the filters; by default the policy's, or 1 %.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unprotected: Accept files that are protected less than the policy says.
        progress: Called with the steps done and their total: footers first, then columns.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A verdict for each column, with its reason and the bytes of a lookup.

    Raises:
        PolicyError: The table lacks a column, or a path leads to no file.

    Example:
        >>> [column.column for column in sb.advise("plain/", columns=["email", "city"]).columns]
        ['email', 'city']
    """
    given = as_paths(paths)
    access = Access.of(keys, policy, allow_unprotected=allow_unprotected, paths=given)
    return advise_columns(given, columns, queries, fpp=fpp, access=access, progress=progress)
