"""Find the data files that their indexes rule out for a predicate, in files, folders and globs.

Only indexes are read, and footers for the types of columns.  pyarrow is not needed. The report has
a verdict for each data file, and notes.

A file is "absent" only if no row of it can satisfy the predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError, SecureBloomError, failure_of, located
from secure_bloom.lakes.paimon.names import table_folder
from secure_bloom.lakes.paimon.table import PaimonFile, PaimonTable, paimon_table
from secure_bloom.paimon import index_readers
from secure_bloom.paimon.column_types import ColumnTypes
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, FileIndex
from secure_bloom.paimon.data_types import DataType
from secure_bloom.paimon.index_files import (
    data_path,
    find_indexed,
    is_index,
    read_listed,
    read_whole,
    table_alone,
)
from secure_bloom.paimon.index_readers import Predicate, as_predicate, require_predicate
from secure_bloom.paimon.physical_values import Forms, StoredForms
from secure_bloom.parquet.schema import Leaf, unknown_column
from secure_bloom.predicates.tree import leaves
from secure_bloom.reports.base import ReportOfFiles, counted_files
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.paths import Paths, as_paths, files_at_once
from secure_bloom.storage.storage_options import with_storage_options


@checked_arguments
def must_read(index: FileIndex, predicate: Predicate, forms: Forms) -> bool:
    """Return whether the file may hold rows that satisfy ``predicate``. False is certain.

    Raises FormatError for a damaged index, PolicyError for an object that is no predicate, and
    UnsupportedFeatureError if a column of the predicate has an index of a type that Paimon does not
    have.
    """
    require_predicate(predicate)
    return index_readers.may_match(index, predicate, forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerdict:
    """One data file: ``absent`` if none of its rows satisfies the predicate, or its error.

    ``no_filter``: the file has no index of a column of the predicate.  A signed file whose key is
    missing is not ``verified``: its content may be forged.  ``note`` says if newer files of a table
    may replace rows of this one.
    """

    path: str
    verdict: Verdict | None = None
    note: str | None = None
    verified: bool = True
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PaimonProbe(ReportOfFiles[FileVerdict]):
    """The verdicts of all files. ``notes`` name columns that no file has."""

    files: tuple[FileVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """Every verdict that occurs."""
        return frozenset(file.verdict for file in self.files if file.verdict is not None)

    def _document(self) -> dict[str, Any]:
        # Programs that read the document expect its rules, of which there is one set.
        return {"rules": "safe", **asdict(self)}

    def _summary(self) -> str:
        return counted_files(
            "failed" if file.verdict is None else file.verdict for file in self.files
        )


Types = Mapping[str, DataType | str]

_MERGED = "rows of this file are merged with those of others: a newer file may replace them"


@checked_arguments
@with_storage_options
def probe(
    paths: Paths,
    where: object,
    *,
    types: Types | None = None,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> PaimonProbe:
    """Find by the index of each data file whether it may hold rows that satisfy ``where``.

    A file that cannot be probed is reported with its error and does not stop the others.  A file
    whose column has another type than the value, or than ``types`` says, cannot be probed.  If the
    column's type is only too small for the value, the verdict is "absent".

    Args:
        paths: Data files, folders, globs, or index files by name; or one Paimon table, whose live
            files are asked by the indexes that its manifests list.
        where: A text such as ``"id = 5 and name in ('a', 'b')"``, tuples and lists such as ``("id",
            "=", 5)``, or Paimon's own predicate.
        types: Paimon's types of columns (``"BIGINT"``, ``"TIMESTAMP(6)"``); by default those of the
            data file's footer.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with a verdict for each file.

    Raises:
        PolicyError: The predicate is not understood, or its values fit none of the files.

    Example:
        >>> sb.paimon.probe("plain/", "email = 'nobody@example.com'")
        <PaimonProbe: 1 file (1 no_filter)>
    """
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    given = as_paths(paths)
    place = table_alone(given)
    table = None if place is None else paimon_table(table_folder(place))
    run = _Probe(
        predicate=as_predicate(where),
        columns=ColumnTypes(
            given={name: _as_type(name, given) for name, given in (types or {}).items()},
            resolver=access.resolver(),
        ),
        table=table,
    )
    every = find_indexed(given) if table is None else list(table.files)
    files = tuple(in_order(run.verdict_of, every, files_at_once(every)))
    run.refuse_if_it_fits_no_file(files)
    warn_unverified(file.path for file in files if not file.verified)
    return PaimonProbe(files=files, notes=tuple(run.notes(files)))


def _as_type(name: str, given: object) -> DataType:
    if isinstance(given, DataType):
        return given
    if isinstance(given, str):
        return DataType.parse(given)
    raise PolicyError(
        f"the type of {name!r} is of type {type(given).__name__}, wanted a text such as 'BIGINT'"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """One predicate, which is checked against the index of one file after the other.

    ``misfits`` are the errors of files whose columns do not fit the predicate. ``indexed`` are the
    columns of the predicate that some index has.
    """

    predicate: Predicate
    columns: ColumnTypes
    table: PaimonTable | None = None
    misfits: list[PolicyError] = field(default_factory=list)
    indexed: set[str] = field(default_factory=set)

    def verdict_of(self, path: str) -> FileVerdict:
        """Return the verdict of one data file, or its error."""
        try:
            with located(path=path), self._open(path) as file:
                verdict = self._verdict(file, self._listed(path))
                # This is the data file's path, whether it or its index was named.
                verified = data_path(file) not in self.columns.unverified
                note = self._note(path)
                return FileVerdict(path=path, verdict=verdict, note=note, verified=verified)
        except SecureBloomError as error:
            if isinstance(error, PolicyError) and error.column is not None:
                self.misfits.append(error)
            return FileVerdict(path=path, **failure_of(error))

    def _listed(self, path: str) -> PaimonFile | None:
        return None if self.table is None else self.table.files[path]

    def _open(self, path: str) -> InputFile:
        file = open_input(path)
        if self.table is not None:
            file.column_names = self.table.mapping(self.table.files[path])
        return file

    def _note(self, path: str) -> str | None:
        is_merged = self.table is not None and self.table.is_merged(self.table.files[path])
        return _MERGED if is_merged else None

    def refuse_if_it_fits_no_file(self, files: Iterable[FileVerdict]) -> None:
        """Raise the first misfit if no file gave an answer, because the predicate is wrong then."""
        answers = {Verdict.ABSENT, Verdict.MAYBE}
        if self.misfits and not any(file.verdict in answers for file in files):
            raise self.misfits[0]

    def notes(self, files: Iterable[FileVerdict]) -> Iterator[str]:
        """Yield a note for each column that no index and no file has.

        Yields nothing if the columns of some file are unknown, because that file may have the
        column.
        """
        missing = [
            name for name in self._names() if name not in self.indexed | self.columns.given.keys()
        ]
        known: dict[str, None] = {}
        for file in files if missing else ():
            leaves = self._readable_leaves(file)
            missing = [name for name in missing if not _may_have(leaves, name)]
            if leaves is None or not missing:
                return
            known |= dict.fromkeys(leaf.path[0] for leaf in leaves)
        for name in missing:
            hint = unknown_column(name, known).hint
            yield f"no file has a column {name}" + (f": {hint}" if hint else "")

    def _names(self) -> list[str]:
        """Return the columns of the predicate, each once."""
        return list(dict.fromkeys(each.column for each in leaves(self.predicate)))

    def _readable_leaves(self, verdict: FileVerdict) -> tuple[Leaf, ...] | None:
        if verdict.error is not None:
            return None
        try:
            with self._open(verdict.path) as file:
                itself = self.table is None and is_index(file)
                return self.columns.data_leaves(file, itself=itself)
        except SecureBloomError:
            return None

    def _verdict(self, file: InputFile, listed: PaimonFile | None) -> Verdict:
        itself = listed is None and is_index(file)
        index = read_whole(file) if itself else read_listed(file, listed)
        if index is None:
            return Verdict.NO_FILTER
        if file.column_names is not None:
            index = index.renamed(file.column_names.logical)
        indexed = [name for name in self._names() if index.indexes(name)]
        self.indexed.update(indexed)
        if not indexed:
            return Verdict.NO_FILTER
        typed = [name for name in indexed if _needs_type(index, name)]
        forms = StoredForms(self.columns.leaves(file, typed, itself=itself))
        return Verdict.MAYBE if must_read(index, self.predicate, forms) else Verdict.ABSENT


def _may_have(leaves: tuple[Leaf, ...] | None, column: str) -> bool:
    """Return whether these leaves have the column, or the map whose key it is."""
    names = (column, column.partition("[")[0])
    return leaves is None or any(leaf.path[0] in names for leaf in leaves)


def _needs_type(index: FileIndex, column: str) -> bool:
    """Return whether an index of the column looks values up.

    The form of a value depends on the column's type.
    """
    return any(
        each.body is not None and each.type in (BLOOM_FILTER, BITMAP)
        for each in index.indexes(column)
    )
