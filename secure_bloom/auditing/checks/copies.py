"""Check for Parquet files that readers of the table skip: copies, and what writers left behind.

Their names are hidden or have another ending; their first and last bytes tell what they are.  A
name excuses a file only where another check reads it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_COPY
from secure_bloom.column_names import NamesOfTable
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.parquet.footer import read_unverified
from secure_bloom.parquet.footer_tail import MAGIC, TRAILER_SIZE, read_tail
from secure_bloom.parquet.key_material_files import KEY_MATERIAL_PREFIX
from secure_bloom.storage import InputFile, below, file_key, local_path, name_of, open_input
from secure_bloom.storage.tree_of import tree_of
from secure_bloom.tables import TableListing, column_names
from secure_bloom.tables.delta_log_files import LOG_FOLDER

#: In the folders of data files, and above them, another check reads summaries and indexes.
_READ_WITH_FOLDERS = ("_metadata", "_common_metadata", ".index")
_OWNED = (re.compile(r"\.(.+)\.crc"), re.compile(re.escape(KEY_MATERIAL_PREFIX) + r"(.+)\.json"))
#: The first bytes of a page's header in clear: field 1 of an i32, a kind of page, field 2.
_PAGE_HEADERS = (b"\x15\x00\x15", b"\x15\x04\x15", b"\x15\x06\x15")
#: For each path: the most folders that are looked into, and the most files that are opened.
_MOST_FOLDERS, _MOST_OPENED = 1_000_000, 1_000
_LONGEST_NAME = 60


class _Table(NamedTuple):
    """A table with a log; ``names`` are those that its columns have in the log."""

    names: NamesOfTable | None


class _Candidate(NamedTuple):
    """A file that may be data; ``table`` is the one whose log does not name it."""

    folder: str
    path: str
    table: _Table | None


def check_copies(
    roots: Iterable[str], listed: Collection[str], tables: TableListing, policy: KeyPolicy
) -> Iterator[Finding]:
    """One finding for each folder that holds Parquet files which are not ``listed``.

    Files with an encrypted footer do not count: they show nothing.  A file that the log of one of
    the ``tables`` does not name counts if it has a sensitive column in clear.
    """
    names, logs = frozenset(listed), dict(_tables(tables))
    for root in map(local_path, roots):
        by_folder: dict[str, list[str]] = {}
        candidates = _candidates(root, names, logs)
        for folder, path, table in islice(candidates, _MOST_OPENED):
            if _can_leak(path, table, policy):
                by_folder.setdefault(folder, []).append(path)
        # A look at the disk for each listed file, so only where a candidate was found.
        keys = {file_key(path) for path in names} if by_folder else set()
        for folder, paths in by_folder.items():
            # Files are compared, not names: links lead to files that were listed under another
            # path.
            strangers = [path for path in paths if file_key(path) not in keys]
            if strangers:
                yield copies_finding(folder, strangers)
        # Each table has old files, often many.
        if any(candidate.table is None for candidate in candidates):
            yield UNCHECKED_COPY.finding(
                f"more than {_MOST_OPENED:,} files that readers skip: the others were not opened",
                path=root,
            )


def _tables(tables: TableListing) -> Iterator[tuple[Hashable, _Table]]:
    """The folders of tables with a log, and those given that lie inside one."""
    for folder in tables.folders:
        logs = (it for it in tables.snapshots if folder == it.folder or below(folder, it.folder))
        log = next(logs, None)
        yield file_key(folder), _Table(None if log is None else column_names(log.metadata))


def copies_finding(folder: str, paths: list[str]) -> Finding:
    """The finding of a folder with these files."""
    first = name_of(paths[0])[:_LONGEST_NAME]
    return UNCHECKED_COPY.finding(
        f"{len(paths):,} Parquet files that readers skip, such as {first}", path=folder
    )


def _candidates(
    root: str, listed: Collection[str], tables: Mapping[Hashable, _Table]
) -> Iterator[_Candidate]:
    tree = tree_of(root)
    if not tree.can_see_folder(root):
        return
    checked = _folders_above(listed)
    inside: dict[str, _Table] = {}
    # Folders that cannot be read are findings already, from listing the files.
    refused: list[PolicyError] = []
    for folder, folders, names in islice(tree.walk(root, refused), _MOST_FOLDERS):
        table = tables.get(tree.key(folder), inside.pop(folder, None))
        # Checkpoints of a log are Parquet; the log has a check of its own.
        folders[:] = (name for name in folders if name != LOG_FOLDER)
        if table is not None:
            inside |= dict.fromkeys((tree.join(folder, name) for name in folders), table)
        for name in sorted(names):
            path = tree.join(folder, name)
            is_read = folder in checked and name.endswith(_READ_WITH_FOLDERS)
            if not (is_read or path in listed or tree.join(folder, _owner(name)) in listed):
                yield _Candidate(folder, path, table)


def _folders_above(paths: Iterable[str]) -> Collection[str]:
    """The folders of files, and those above them: those that have a check of their own."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _owner(name: str) -> str:
    """The data file whose checksums or key material a file of this name is; "" for none."""
    # What is beside its data file is read with that.  Beside another, a copy would pass that
    # somebody has called so.
    return next((found[1] for found in (each.fullmatch(name) for each in _OWNED) if found), "")


def can_show_rows(file: InputFile) -> bool:
    """Whether a file is Parquet with a readable footer, or begins with a page in clear."""
    if file.size <= TRAILER_SIZE:
        return False
    magic = len(MAGIC)
    head = file.read_at(0, magic + len(_PAGE_HEADERS[0]))
    if not head.startswith(MAGIC):
        return False
    # The other end too, because a text may begin with these four letters; PARE is left out, as it
    # shows nothing.  A writer that died has left no footer, and its pages.
    return head[magic:] in _PAGE_HEADERS or file.read_at(file.size - magic, magic) == MAGIC


def _can_leak(path: str, table: _Table | None, policy: KeyPolicy) -> bool:
    try:
        with open_input(path) as file:
            if not can_show_rows(file):
                return False
            if table is None:
                return True
            file.column_names = table.names
            return _has_secrets_in_clear(file, policy)
    except Exception:
        # Nobody else can read this file either.
        return False


def _has_secrets_in_clear(file: InputFile, policy: KeyPolicy) -> bool:
    try:
        footer = read_unverified(read_tail(file))
    except SecureBloomError:
        # Pages without a footer, or one that others may understand.
        return True
    return any(
        policy.key_for(leaf.path) is not None and chunks[ordinal].crypto_metadata is None
        for ordinal, leaf in enumerate(footer.leaves)
        for chunks in footer.columns
    )
