"""Check for Parquet files that readers of the table skip: copies, and what writers left behind.

Their names are hidden or have another ending; their first and last bytes tell what they are.  A
name excuses a file only where another check reads it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_COPY
from secure_bloom.errors import PolicyError
from secure_bloom.parquet.footer_tail import MAGIC, TRAILER_SIZE
from secure_bloom.parquet.key_material_files import KEY_MATERIAL_PREFIX
from secure_bloom.storage import InputFile, file_key, name_of, open_input
from secure_bloom.storage.tree_of import tree_of
from secure_bloom.tables.delta_log_files import LOG_FOLDER

#: In the folders of data files, and above them, another check reads summaries and indexes.
_READ_WITH_FOLDERS = ("_metadata", "_common_metadata", ".index")
_OWNED = (re.compile(r"\.(.+)\.crc"), re.compile(re.escape(KEY_MATERIAL_PREFIX) + r"(.+)\.json"))
#: The first bytes of a page's header in clear: field 1 of an i32, a kind of page, field 2.
_PAGE_HEADERS = (b"\x15\x00\x15", b"\x15\x04\x15", b"\x15\x06\x15")
#: For each path: the most folders that are looked into, and the most files that are opened.
_MOST_FOLDERS, _MOST_OPENED = 1_000_000, 1_000
_LONGEST_NAME = 60


def check_copies(roots: Iterable[str], listed: Collection[str]) -> Iterator[Finding]:
    """One finding for each folder that holds Parquet files which are not ``listed``.

    Files with an encrypted footer do not count: they show nothing.  Files of older versions of a
    table do: they stay in its folder until somebody cleans it up.
    """
    names = frozenset(listed)
    for root in roots:
        by_folder: dict[str, list[str]] = {}
        candidates = _candidates(root, names)
        for folder, path in islice(candidates, _MOST_OPENED):
            if _can_show_rows(path):
                by_folder.setdefault(folder, []).append(path)
        # A look at the disk for each listed file, so only where a candidate was found.
        keys = {file_key(path) for path in names} if by_folder else set()
        for folder, paths in by_folder.items():
            # Files are compared, not names: links lead to files that were listed under another
            # path.
            strangers = [path for path in paths if file_key(path) not in keys]
            if strangers:
                yield copies_finding(folder, strangers)
        if next(candidates, None) is not None:
            yield UNCHECKED_COPY.finding(
                f"more than {_MOST_OPENED:,} files that readers skip: the others were not opened",
                path=root,
            )


def copies_finding(folder: str, paths: list[str]) -> Finding:
    """The finding of a folder with these files."""
    first = name_of(paths[0])[:_LONGEST_NAME]
    return UNCHECKED_COPY.finding(
        f"{len(paths):,} Parquet files that readers skip, such as {first}", path=folder
    )


def _candidates(root: str, listed: Collection[str]) -> Iterator[tuple[str, str]]:
    """The folder and path of each file that may be data."""
    tree = tree_of(root)
    if not tree.can_see_folder(root):
        return
    checked = _folders_above(listed)
    # Folders that cannot be read are findings already, from listing the files.
    refused: list[PolicyError] = []
    for folder, folders, names in islice(tree.walk(root, refused), _MOST_FOLDERS):
        # Checkpoints of a log are Parquet; the log has a check of its own.
        folders[:] = (name for name in folders if name != LOG_FOLDER)
        for name in sorted(names):
            path = tree.join(folder, name)
            is_read = folder in checked and name.endswith(_READ_WITH_FOLDERS)
            if not (is_read or path in listed or tree.join(folder, _owner(name)) in listed):
                yield folder, path


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
    magic = len(MAGIC)
    head = file.read_at(0, magic + len(_PAGE_HEADERS[0]))
    if file.size <= TRAILER_SIZE or not head.startswith(MAGIC):
        return False
    # The other end too, because a text may begin with these four letters; PARE is left out, as it
    # shows nothing.  A writer that died has left no footer, and its pages.
    return head[magic:] in _PAGE_HEADERS or file.read_at(file.size - magic, magic) == MAGIC


def _can_show_rows(path: str) -> bool:
    try:
        with open_input(path) as file:
            return can_show_rows(file)
    except Exception:
        # Nobody else can read this file either.
        return False
