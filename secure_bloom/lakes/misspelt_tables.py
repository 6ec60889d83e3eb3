"""Find patterns of a policy that are misspelt names of the tables of a run.

A section of a misspelt pattern protects nothing, and another section, such as ``[tables."*"]``,
takes its files.  A pattern is misspelt if no file belongs to it, and a part of a path that no
pattern names is like it.  A pattern whose own table lies beside that part is for another table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.table_patterns import is_catalog_address
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.lakes.iceberg.catalog import is_in_catalog, load_table
from secure_bloom.storage.dispatch import tree_of


def misspelt_tables(
    policy: KeyPolicy, given: Sequence[str], files: Collection[str]
) -> Iterator[tuple[str, PolicyError]]:
    """Yield each misspelt pattern with an error. ``given`` are the paths that list the files."""
    if not policy.tables:
        return
    for pattern, meant, other in policy.misspelt_tables(given, files):
        if not _is_table(other):
            yield (
                pattern,
                PolicyError(
                    f'no file belongs to [tables."{pattern}"], and it is like {meant}, which no '
                    f"section names: did you mean {meant!r}?",
                    hint="correct the pattern; if it is for another table, add "
                    f'[tables."{meant}"] with the columns of {meant}',
                ),
            )


def check_tables(policy: KeyPolicy | None, given: Sequence[str], files: Collection[str]) -> None:
    """Raise PolicyError for the first misspelt pattern.

    Its table would be written by the rules of another section.
    """
    for _, error in () if policy is None else misspelt_tables(policy, given, files):
        raise error


def _is_table(address: str) -> bool:
    """Return whether there is a table at an address. No answer counts as no."""
    try:
        if is_in_catalog(address):
            load_table(address)
            return True
        return not is_catalog_address(address) and tree_of(address).find_folder(address) is not None
    except SecureBloomError:
        return False
