"""Check the folders of data files: other files in them, and the folders' names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from secure_bloom.auditing.checks.leaks import has_bounds, shown_record_keys, texts_of
from secure_bloom.auditing.checks.writer_schemas import columns_with_metadata
from secure_bloom.auditing.failures import file_failure
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.naming import secret_named, secret_partition, short
from secure_bloom.auditing.rules.key_rules import KEY_MATERIAL_ORPHANED
from secure_bloom.auditing.rules.leak_rules import (
    HUDI_KEYS_IN_CLEAR,
    PAIMON_INDEX_IN_CLEAR,
    PAIMON_INDEX_PRESENT,
    PARTITION_IN_CLEAR,
    SCHEMA_IN_CLEAR,
    SUMMARY_IN_CLEAR,
)
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import UnsupportedFeatureError, located
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, read_unverified
from secure_bloom.parquet.key_material_files import key_material_name
from secure_bloom.storage import InputFile, below, local_path, name_of, open_input, sibling
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.folder_trees import Tree

_SUMMARIES = ("_metadata", "_common_metadata")
_MATERIAL_PREFIX, _MATERIAL_SUFFIX = key_material_name("|").split("|")
_PATTERN = re.compile(r"[^/]*[*?\[].*", re.DOTALL)
#: The most bytes of an index or a summary: they are read whole.
_MOST_READ = 64 * 1024 * 1024


def check_folders(
    files: Iterable[str], roots: Iterable[str], policy: KeyPolicy
) -> Iterator[Finding]:
    """Yield findings about the folders of ``files`` and the folders above them.

    The folders above are checked up to one of ``roots``, or up to the folder that a pattern begins
    with. Partition folders never end this search.
    """
    for folder in looked_into(files, roots):
        tree, rules = tree_of(folder), policy.rules_at(folder)
        names = frozenset(tree.names(folder))
        yield from _check_orphans(tree, folder, names)
        # Without a sensitive column nothing in clear can be a leak.
        if any(rule.key is not None for rule in rules.columns.values()):
            yield from _check_summaries(tree, folder, names, rules)
            yield from _check_indexes(tree, folder, names, rules)


def looked_into(files: Iterable[str], roots: Iterable[str]) -> list[str]:
    """Return the folders that are checked."""
    tops = [_PATTERN.split(local_path(root), maxsplit=1)[0].rstrip("/") for root in roots]
    found = set(map(folder_of, files))
    return sorted(found | set(_above(found, tops)))


def folder_of(path: str) -> str:
    """Return the folder of a file as a path."""
    return sibling(path, "").rstrip("/") or ("/" if path.startswith("/") else ".")


def _above(folders: Iterable[str], tops: Collection[str]) -> Iterator[str]:
    """Yield the folders above the given folders, up to one of ``tops``."""
    for folder in folders:
        # A path may name one partition alone: its table, and the summary there, are above it.
        while "=" in name_of(folder) or any(below(folder, top) for top in tops):
            folder = folder_of(folder)
            yield folder


def _check_orphans(tree: Tree, folder: str, names: Collection[str]) -> Iterator[Finding]:
    for name in sorted(names):
        if name.startswith(_MATERIAL_PREFIX) and name.endswith(_MATERIAL_SUFFIX):
            of = name.removeprefix(_MATERIAL_PREFIX).removesuffix(_MATERIAL_SUFFIX)
            if of not in names:
                yield KEY_MATERIAL_ORPHANED.finding(
                    "its data file is not beside it", path=tree.join(folder, name)
                )


def check_partitions(
    files: Iterable[str], folders: Mapping[str, KeyPolicy], policy: KeyPolicy
) -> Iterator[Finding]:
    """Yield a finding for each folder whose subfolders are named by values of a sensitive column.

    The checked folders are those of ``files``, and ``folders``, which have no data files, each
    with its rules.
    """
    found: dict[tuple[str, str], None] = {}
    # Folders have those above them in common, and each is looked at once for a table's rules.
    seen: set[tuple[int, str]] = set()
    live = {folder: policy.rules_at(folder) for folder in dict.fromkeys(map(folder_of, files))}
    for folder, rules in {**live, **folders, **live}.items():
        new = list[tuple[str, str]]()
        while (id(rules), folder) not in seen:
            seen.add((id(rules), folder))
            above, _, part = folder.rpartition("/")
            column = secret_partition(part, rules)
            if column is not None:
                new.append((above or ".", column))
            folder = above
        found |= dict.fromkeys(reversed(new))
    for above, column in found:
        # The path of the finding ends above the folder, whose name is a value.
        yield PARTITION_IN_CLEAR.finding(
            "the column's values are names of folders", path=above, column=column
        )


def _check_indexes(
    tree: Tree, folder: str, names: Collection[str], policy: KeyPolicy
) -> Iterator[Finding]:
    # Of files that are gone too: an index that stayed shows what it showed.
    for name in sorted(names):
        if name.endswith(".index"):
            yield from _read(tree.join(folder, name), policy, index_findings)


def index_findings(file: InputFile, policy: KeyPolicy) -> Iterator[Finding]:
    """Yield the sensitive columns of a Paimon index, or nothing for another file."""
    # Imported here: few files have an index beside them.
    from secure_bloom.paimon import container

    if file.read_at(0, min(file.size, len(container.MAGIC))) != container.MAGIC:
        # The index of another tool, or something that only has the name of one: a copy is found
        # with the copies.
        return
    _refuse_large(file)
    # Paimon indexes the key of a map under the name m[k].
    columns = container.FileIndex.from_bytes(file.all_bytes()).columns
    names = dict.fromkeys(column.name.partition("[")[0] for column in columns)
    secret = [name for name in names if secret_named(name.split("."), policy) is not None]
    if not secret and names:
        what = f"an index beside the data file, in clear: {short(', '.join(names))}"
        yield PAIMON_INDEX_PRESENT.finding(what, path=file.path)
    for name in secret:
        what = "an index beside the data file holds the column in clear"
        yield PAIMON_INDEX_IN_CLEAR.finding(what, path=file.path, column=name)


def _check_summaries(
    tree: Tree, folder: str, names: Collection[str], policy: KeyPolicy
) -> Iterator[Finding]:
    for name in _SUMMARIES:
        if name in names:
            yield from _read(tree.join(folder, name), policy, _summary_findings)


def _refuse_large(file: InputFile) -> None:
    if file.size > _MOST_READ:
        raise UnsupportedFeatureError(f"the file has {file.size} bytes")


def _summary_findings(file: InputFile, policy: KeyPolicy) -> Iterator[Finding]:
    _refuse_large(file)
    tail = read_tail(file)
    if tail.mode is FooterMode.ENCRYPTED:
        return
    # Without a key: this is about what anyone can read, whether it is true or not.
    footer = read_unverified(tail)
    for ordinal, leaf in enumerate(footer.leaves):
        shown = (chunks[ordinal].meta_data for chunks in footer.column_chunks)
        if secret_named(leaf.path, policy) is not None and any(
            meta_data is not None and has_bounds(meta_data) for meta_data in shown
        ):
            yield SUMMARY_IN_CLEAR.finding(
                "the summary shows the column's smallest and largest values",
                path=file.path,
                column=leaf.name,
            )
    yield from _summary_texts(file.path, footer, policy)


def _summary_texts(path: str, footer: Footer, policy: KeyPolicy) -> Iterator[Finding]:
    """Yield findings about the texts in a summary, as in the readable footer of a data file."""
    texts = texts_of(footer)
    shown = shown_record_keys(texts)
    if shown is not None:
        yield HUDI_KEYS_IN_CLEAR.finding(shown, path=path)
    for writer, columns in columns_with_metadata(texts).items():
        for column in sorted(columns):
            if secret_named(column.split("."), policy) is not None:
                yield SCHEMA_IN_CLEAR.finding(
                    f"the {writer} schema in the summary holds metadata of the column",
                    path=path,
                    column=column,
                )


def _read(
    path: str, policy: KeyPolicy, check: Callable[[InputFile, KeyPolicy], Iterator[Finding]]
) -> Iterator[Finding]:
    try:
        with located(path=path), open_input(path) as file:
            yield from check(file, policy)
    # Any error: what lies in a folder may be anything, and must not end the audit of the table.
    except Exception as error:
        yield file_failure(path, error)
