# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH118, PTH119, PTH207
"""List the Parquet files that paths, folders and patterns name.

Inside folders the rules are Spark's: names that start with ``.`` or ``_`` are not data, except
partition folders such as ``_day=1``.  A file that the caller names is read whatever its name is.

An output never replaces an input or another output.
"""

from __future__ import annotations

import glob
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.errors import MissingPathError, PolicyError, SecureBloomError
from secure_bloom.reports.text import shell_word
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.folder_trees import Tree
from secure_bloom.storage.paths import (
    absolute_path,
    below,
    is_object_uri,
    join,
    local_path,
    name_of,
    with_slashes,
)

DATA_SUFFIXES = (".parquet", ".parq", ".pq", ".parquet.encrypted")
SUMMARY_NAME = "_metadata"
#: Files of a folder from which on one listing takes less than a question for each.
_FOLDER = 4
_PATTERN = frozenset("*?[")

Path = str | os.PathLike[str]
#: Called with a folder and the names of all its subfolders; it may raise.  If it gives files, these
#: are the folder's, and nobody looks further into it.
FolderCheck = Callable[[Tree, str, Collection[str]], Sequence[str] | None]


def find_files(
    paths: Path | Iterable[Path],
    *,
    suffixes: tuple[str, ...] = DATA_SUFFIXES,
    refused: list[SecureBloomError] | None = None,
    check: FolderCheck | None = None,
) -> list[str]:
    """Return the files that the paths name, sorted, each once however many paths lead to it.

    A path is a file, a folder (with everything below it), a local pattern (``*``, ``?``, ``[]``,
    ``**``) or a URI.  Names in folders and patterns must end in one of ``suffixes``, by default
    those of Parquet files.  Raises :class:`PolicyError` when a path leads to no file. If
    ``refused`` is given and at least one file is found, these errors, and errors of folders that
    may not be read, are added to ``refused`` instead.  ``check`` is called with each folder that is
    listed.
    """
    return sorted(find_by_key(paths, suffixes=suffixes, refused=refused, check=check).values())


def find_by_key(
    paths: Path | Iterable[Path],
    *,
    suffixes: tuple[str, ...] = DATA_SUFFIXES,
    refused: list[SecureBloomError] | None = None,
    check: FolderCheck | None = None,
) -> dict[Hashable, str]:
    """Return the files of :func:`find_files`, each by its :func:`file_key`."""
    found: dict[Hashable, str] = {}
    for path in _as_list(paths):
        try:
            files = _some_files_of(path, suffixes, refused, check)
        except PolicyError as error:
            if refused is None:
                raise
            refused.append(error)
            continue
        tree = tree_of(path)
        for file in files:
            # Two paths may lead to one file, as links do.  Rewritten twice at once, one of the two
            # would fail.
            found.setdefault(tree.key(file), file)
    if refused and not found:
        raise refused[0]
    return found


def _some_files_of(
    path: str,
    suffixes: tuple[str, ...],
    refused: list[SecureBloomError] | None,
    check: FolderCheck | None,
) -> list[str]:
    files = sorted(_files_of(path, suffixes, refused, check))
    if not files:
        raise no_such_files(path, suffixes)
    return files


def no_such_files(path: str, suffixes: tuple[str, ...] = DATA_SUFFIXES) -> PolicyError:
    """Return the error for a path that leads to no file with one of the suffixes."""
    return PolicyError(
        "holds no Parquet file" if suffixes == DATA_SUFFIXES else "holds no such file",
        hint=f"looked for names ending in {', '.join(suffixes)}; "
        "those that start with _ or . are skipped",
        path=path,
    )


def file_sizes(files: Sequence[str]) -> list[int]:
    """Return the size of each file in bytes, or 0 for a missing file."""
    trees = {is_object_uri(file): tree_of(file) for file in files}
    objects = [file for file in files if is_object_uri(file)]
    for folder, count in Counter(trees[True].parents(file)[0] for file in objects).items():
        if count > _FOLDER:
            # One listing has the sizes of a thousand files.
            trees[True].level(folder, sys.maxsize)
    return [trees[is_object_uri(file)].size(file) for file in files]


def file_key(path: str) -> Hashable:
    """Return a key that is equal for two paths of one file."""
    return tree_of(path).key(path)


def file_keys(paths: Iterable[str]) -> Iterator[Hashable]:
    """Yield the :func:`file_key` of each path, and look up the real path of each folder once."""
    trees: dict[bool, Tree] = {}
    for path in paths:
        is_object = is_object_uri(path)
        if is_object not in trees:
            trees[is_object] = tree_of(path)
        yield trees[is_object].key(path)


def summary_files(files: Iterable[str]) -> list[str]:
    """Return the sorted ``_metadata`` files in the folders of these files and in all parents.

    ``_common_metadata`` is not included, because it has only the schema.  A folder that may not be
    read counts as a folder without one.
    """
    found: dict[Hashable, str] = {}
    checked: set[str] = set()
    trees: dict[bool, Tree] = {}
    for file in files:
        # One tree for all files: it keeps where the links among their folders lead.
        tree = trees.setdefault(is_object_uri(file), tree_of(file))
        for folder in tree.parents(file):
            if folder not in checked and _has_summary(tree, folder):
                summary = tree.join(folder, SUMMARY_NAME)
                found.setdefault(tree.key(summary), summary)
            checked.add(folder)
    return sorted(found.values())


def _has_summary(tree: Tree, folder: str) -> bool:
    try:
        return tree.is_file(tree.join(folder, SUMMARY_NAME))
    except PolicyError:
        return False


def expand(paths: Path | Iterable[Path]) -> list[str]:
    """Return the existing files and folders that the paths name, with patterns resolved.

    Raises :class:`PolicyError` for a path that names nothing.
    """
    return [found for path in _as_list(paths) for found in _matches(path)]


def _as_list(paths: Path | Iterable[Path]) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return [local_path(path) for path in paths]


def _matches(path: str) -> list[str]:
    tree = tree_of(path)
    # A path that exists is no pattern: a partition's value may hold a bracket.
    if tree.is_folder(path) or tree.is_file(path):
        return [path]
    if _is_pattern(path) and (matches := sorted(glob.glob(path, recursive=True))):
        return [with_slashes(match) for match in matches]
    raise missing_path(tree, path)


def missing_path(tree: Tree, path: str) -> MissingPathError:
    """Return the error for a path that names nothing, with similar names as its hint."""
    return MissingPathError("no such file or folder", hint=_near(tree, path), path=path)


def _near(tree: Tree, path: str) -> str:
    """Return the hint for a path to nothing: similar names, or the nearest folder that is there."""
    if is_object_uri(path):
        return "check the bucket and the prefix: the store has no object below it"
    parent, _ = os.path.split(absolute_path(path))
    folder = next(filter(tree.is_folder, tree.parents(path)), parent)
    # As it was typed: the hint is a path that can be given in its place.
    typed, name = os.path.split(path.rstrip("/"))
    below: list[str] = []
    while typed and not tree.is_folder(typed):
        below.insert(0, name)
        typed, name = os.path.split(typed)
    names = CloseNames(tree.names(folder)).close_files(name, 3)
    similar = [os.path.join(typed, it) for it in names]
    close = [os.path.join(it, *below) for it in similar]
    # Those that have what was typed below them, if there are any.
    close = [it for it in close if tree.find_folder(it) is not None] or similar
    if close:
        return f"did you mean {', '.join(map(shell_word, close))}"
    if folder != parent:
        return f"the nearest folder that is there is {folder}"
    return f"{folder} has no name like it"


def _is_pattern(path: str) -> bool:
    return not is_object_uri(path) and not _PATTERN.isdisjoint(path)


def _files_of(
    path: str,
    suffixes: tuple[str, ...],
    refused: list[SecureBloomError] | None,
    check: FolderCheck | None,
) -> Iterator[str]:
    tree = tree_of(path)
    for match in _matches(path):
        if tree.is_folder(match):
            yield from _data_files_below(tree, match, suffixes, refused, check)
        # Named outright: the user means it, whatever it is called.  After a pattern Spark's rules
        # hold.
        elif match == path or is_data_file(os.path.basename(match), suffixes):
            yield match


def _data_files_below(
    tree: Tree,
    top: str,
    suffixes: tuple[str, ...],
    refused: list[SecureBloomError] | None,
    check: FolderCheck | None,
) -> Iterator[str]:
    for folder, folders, files in tree.walk(top, refused):
        managed = None if check is None else check(tree, folder, folders)
        if managed is not None:
            folders.clear()
            yield from managed
            continue
        # The list is changed in place, because the walk looks at it for where to go next.
        folders[:] = filter(is_data_name, folders)
        yield from (tree.join(folder, name) for name in files if is_data_file(name, suffixes))


def is_data_name(name: str) -> bool:
    """Return whether a file or folder of this name inside a folder counts as data."""
    return not name.startswith(".") and (not name.startswith("_") or "=" in name)


def is_data_file(name: str, suffixes: tuple[str, ...] = DATA_SUFFIXES) -> bool:
    """Return whether a file of this name inside a folder is a data file."""
    return is_data_name(name) and name.lower().endswith(suffixes)


def output_paths(files: Iterable[str], paths: Iterable[str], output: str) -> dict[str, str]:
    """Return the new path of each file.

    The part of a file's path below the folder in which it was found is repeated below ``output``.
    """
    folders = [local_path(path) for path in paths]
    targets: dict[str, str] = {}
    for file in files:
        relative = [inner for folder in folders if (inner := below(file, folder)) is not None]
        # The nearest of the folders given: with lake/ and lake/day=1/ both named, the file keeps
        # the name that the nearer one gives.
        targets[file] = join(local_path(output), min(relative, key=len, default=name_of(file)))
    check_targets(targets)
    return targets


def check_targets(targets: Mapping[str, str]) -> None:
    """Raise PolicyError if an output is also an input, or the output of another file."""
    # Files are compared, not texts: links and ./ make many names of one file.
    keys = dict(zip(file_keys(targets.values()), targets, strict=True))
    for file, key in zip(targets, file_keys(targets), strict=True):
        if key in keys:
            raise PolicyError(
                "the output would overwrite the input",
                hint="name another folder; add and reencrypt replace the files without --output",
                path=file,
            )
    if len(keys) < len(targets):
        raise PolicyError(
            "two input files would become one output file",
            hint="give the folder that holds them, so that their paths below it are kept",
        )


def refuse_inside(output: str, paths: Iterable[str]) -> None:
    """Raise PolicyError for an output folder inside the table that is read.

    The next reader of the table would take the files in it for rows of the table.
    """
    target = _behind_links(output)
    for path in paths:
        if below(f"{target}/", _behind_links(path)) is not None:
            raise PolicyError(
                "the output would lie inside the table itself",
                hint="name a folder beside it",
                path=output,
            )


def _behind_links(path: str) -> str:
    text = absolute_path(path)
    # Links are followed: a folder may lead back into the table under another name.
    return text if is_object_uri(text) else os.path.realpath(text)
