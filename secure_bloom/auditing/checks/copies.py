"""Check for Parquet files that readers of the table skip: copies, and what writers left behind.

Their names are hidden or have another ending; their first and last bytes tell what they are.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from itertools import islice

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_COPY
from secure_bloom.errors import PolicyError
from secure_bloom.parquet.footer_tail import MAGIC, TRAILER_SIZE
from secure_bloom.parquet.key_material_files import KEY_MATERIAL_PREFIX
from secure_bloom.storage import file_key, name_of, open_input
from secure_bloom.storage.folder_trees import Tree
from secure_bloom.storage.tree_of import tree_of

#: Files that are no data; summaries have a check of their own.
_NO_DATA = ("_metadata", "_common_metadata", "_SUCCESS")
#: For each path: the most folders that are looked into, and the most files that are opened.
_MOST_FOLDERS, _MOST_OPENED = 1_000_000, 1_000
_LONGEST_NAME = 60


def check_copies(
    roots: Iterable[str], listed: Collection[str], tables: Iterable[str] = ()
) -> Iterator[Finding]:
    """One finding for each folder that holds Parquet files which are not ``listed``.

    Files with an encrypted footer do not count: they show nothing.  Folders of ``tables`` whose own
    log says which files live are left out.
    """
    names = frozenset(listed)
    managed = frozenset(map(file_key, tables))
    for root in roots:
        by_folder: dict[str, list[str]] = {}
        candidates = _candidates(root, names, managed)
        for folder, path in islice(candidates, _MOST_OPENED):
            if _is_readable_parquet(path):
                by_folder.setdefault(folder, []).append(path)
        # A look at the disk for each listed file, so only where a candidate was found.
        keys = {file_key(path) for path in names} if by_folder else set()
        for folder, paths in by_folder.items():
            # Files are compared, not names: links lead to files that were listed under another
            # path.
            strangers = [path for path in paths if file_key(path) not in keys]
            if strangers:
                yield _copies_finding(folder, strangers)
        if next(candidates, None) is not None:
            yield UNCHECKED_COPY.finding(
                f"more than {_MOST_OPENED:,} files that readers skip: the others were not opened",
                path=root,
            )


def _copies_finding(folder: str, paths: list[str]) -> Finding:
    first = name_of(paths[0])[:_LONGEST_NAME]
    return UNCHECKED_COPY.finding(
        f"{len(paths):,} Parquet files that readers skip, such as {first}", path=folder
    )


def _candidates(
    root: str, listed: Collection[str], managed: Collection[Hashable]
) -> Iterator[tuple[str, str]]:
    """The folder and path of each file that may be data."""
    tree = tree_of(root)
    if not tree.can_see_folder(root):
        return
    # Folders that cannot be read are findings already, from listing the files.
    refused: list[PolicyError] = []
    for folder, folders, names in islice(tree.walk(root, refused), _MOST_FOLDERS):
        if tree.key(folder) in managed:
            folders.clear()
            continue
        yield from _in_folder(tree, folder, names, listed)


def _in_folder(
    tree: Tree, folder: str, names: Iterable[str], listed: Collection[str]
) -> Iterator[tuple[str, str]]:
    present = set(names)
    for name in sorted(present):
        path = tree.join(folder, name)
        if not (
            path in listed
            or name in _NO_DATA
            or name.startswith(KEY_MATERIAL_PREFIX)
            or _is_beside_its_file(name, present)
        ):
            yield folder, path


def _is_beside_its_file(name: str, present: Collection[str]) -> bool:
    """Whether this is Hadoop's checksum or Paimon's index of a file in the same folder."""
    # By the ending alone a copy would pass that somebody has called so.
    return (name.startswith(".") and name.endswith(".crc") and name[1:-4] in present) or (
        name.endswith(".index") and name[:-6] in present
    )


def _is_readable_parquet(path: str) -> bool:
    try:
        with open_input(path) as file:
            # Both ends, because a text may begin with these four letters; PARE is left out, as it
            # shows nothing.
            ends = (file.read_at(0, len(MAGIC)), file.read_at(file.size - len(MAGIC), len(MAGIC)))
            return file.size > TRAILER_SIZE and ends == (MAGIC, MAGIC)
    except Exception:
        # Nobody else can read this file either.
        return False
