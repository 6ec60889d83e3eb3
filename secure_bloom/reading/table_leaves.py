"""The columns of a table: the leaves of its files' schemas, in the order of the first file."""

from __future__ import annotations

from secure_bloom.encryption.access import Access
from secure_bloom.errors import located
from secure_bloom.lakes import list_tables
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.schema import Leaf, Leaves
from secure_bloom.storage.paths import Paths, as_paths


def table_leaves(paths: Paths, access: Access | None = None) -> tuple[Leaf, ...]:
    """Return every leaf that a file at ``paths`` has, once.

    Only footers are read, and signatures are not checked.  If the table has a log, its live files
    count, and columns have the names of the table.  Raises KeyUnavailableError for an encrypted
    footer without its key.
    """
    resolver = (access or Access()).describing_resolver()
    found: dict[tuple[str, ...], Leaf] = {}
    listing = list_tables(as_paths(paths))
    for path in listing.paths:
        with located(path=path), listing.open(path) as file:
            # Unverified: names of columns are what is wanted, to choose from, and no value is
            # believed.
            footer = unlock(read_tail(file), file_keys(resolver, file), allow_unverified=True)
            for leaf in footer.leaves:
                found.setdefault(leaf.path, leaf)
    return Leaves(found.values())
