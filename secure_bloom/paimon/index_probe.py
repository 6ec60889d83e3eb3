"""Find the data files that their indexes rule out for a predicate, in files, folders and globs.

Only indexes are read, and footers for the types of columns.  pyarrow is not needed. The report has
a verdict for each data file, and notes.

Files are skipped by the safe rules, or by those of Paimon 0.9.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from secure_bloom.bloom.verdicts import Verdict
from secure_bloom.calling.arguments import checked_arguments, member_of
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError, SecureBloomError, failure_of, located
from secure_bloom.paimon import index_readers, version_0_9
from secure_bloom.paimon.column_types import ColumnTypes
from secure_bloom.paimon.comparisons import Predicate, as_predicate, require_predicate
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, FileIndex
from secure_bloom.paimon.data_types import DataType
from secure_bloom.paimon.index_files import (
    data_path,
    find_indexed,
    is_index,
    read_beside,
    read_whole,
)
from secure_bloom.paimon.physical_values import Forms, StoredForms
from secure_bloom.parquet.schema import Leaf, unknown_column
from secure_bloom.predicates.tree import leaves
from secure_bloom.reports.base import ReportOfFiles, counted_files
from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.paths import Paths


class Rules(enum.StrEnum):
    """The rules that join the answers of several indexes into one."""

    #: A file is skipped only where no row of it can satisfy the predicate.
    SAFE = "safe"
    #: A file is skipped where Paimon 0.9 skips it, also where that loses rows.
    PAIMON_0_9 = "paimon-0.9"


@checked_arguments
def must_read(
    index: FileIndex, predicate: Predicate, forms: Forms, *, rules: Rules | str = Rules.SAFE
) -> bool:
    """Return whether the file may hold rows that satisfy ``predicate``. False is certain.

    With the rules of Paimon 0.9 the answer is whether Paimon reads the file, and False is not
    certain.  Raises FormatError for a damaged index, PolicyError for an object that is no
    predicate, and UnsupportedFeatureError if a column of the predicate has an index of a type that
    Paimon does not have.
    """
    require_predicate(predicate)
    return _DECISIONS[member_of(Rules, "rules", rules)](index, predicate, forms)


_DECISIONS: dict[Rules, Callable[[FileIndex, Predicate, Forms], bool]] = {
    Rules.SAFE: index_readers.may_match,
    Rules.PAIMON_0_9: version_0_9.reads,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerdict:
    """One data file: ``absent`` if none of its rows satisfies the predicate, or its error.

    ``no_filter``: the file has no index of a column of the predicate.  If the rules are Paimon's,
    ``absent`` is a file that Paimon skips, and ``note`` says where that may lose rows.  A signed
    file whose key is missing is not ``verified``: its content may be forged.
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
    """The verdicts of all files by these rules. ``notes`` name columns that no file has."""

    rules: Rules
    files: tuple[FileVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """Every verdict that occurs."""
        return frozenset(file.verdict for file in self.files if file.verdict is not None)

    def _document(self) -> dict[str, Any]:
        return asdict(self)

    def _summary(self) -> str:
        return counted_files(
            "failed" if file.verdict is None else file.verdict for file in self.files
        )


Types = Mapping[str, DataType | str]

_LOST = (
    "Paimon 0.9 skips the file, and its indexes do not rule out rows that satisfy the condition: "
    "a query may miss them"
)


@checked_arguments
def probe(
    paths: Paths,
    where: object,
    *,
    types: Types | None = None,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    rules: Rules | str = Rules.SAFE,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
) -> PaimonProbe:
    """Find by the index of each data file whether it may hold rows that satisfy ``where``.

    A file that cannot be probed is reported with its error and does not stop the others.  A file
    whose column has another type than the value, or than ``types`` says, cannot be probed.  If the
    column's type is only too small for the value, the verdict is "absent".

    Args:
        paths: Data files, folders, globs, or index files by name.
        where: A text such as ``"id = 5 and name in ('a', 'b')"``, tuples and lists such as ``("id",
            "=", 5)``, or Paimon's own predicate.
        types: Paimon's types of columns (``"BIGINT"``, ``"TIMESTAMP(6)"``); by default those of the
            data file's footer.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        rules: ``"safe"``, or ``"paimon-0.9"`` for the files that Paimon 0.9 skips, rightly or not.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.

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
    run = _Run(
        predicate=as_predicate(where),
        columns=ColumnTypes(given=_as_types(types or {}), resolver=access.resolver()),
        rules=member_of(Rules, "rules", rules),
    )
    files = tuple(run.verdict_of(path) for path in find_indexed(paths))
    run.refuse_if_it_fits_no_file(files)
    warn_unverified(file.path for file in files if not file.verified)
    return PaimonProbe(rules=run.rules, files=files, notes=tuple(run.notes(files)))


def _as_types(types: Types) -> dict[str, DataType]:
    return {name: _as_type(name, given) for name, given in types.items()}


def _as_type(name: str, given: object) -> DataType:
    if isinstance(given, DataType):
        return given
    if isinstance(given, str):
        return DataType.parse(given)
    raise PolicyError(f"the type of {name!r} is of type {type(given).__name__}, wanted its text")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One predicate, which is checked against the index of one file after the other.

    ``misfits`` are the errors of files whose columns do not fit the predicate. ``indexed`` are the
    columns of the predicate that some index has.
    """

    predicate: Predicate
    columns: ColumnTypes
    rules: Rules
    misfits: list[PolicyError] = field(default_factory=list)
    indexed: set[str] = field(default_factory=set)

    def verdict_of(self, path: str) -> FileVerdict:
        """Return the verdict of one data file, or its error."""
        try:
            with located(path=path), open_input(path) as file:
                verdict, note = self._verdict(file)
                # This is the data file's path, whether it or its index was named.
                verified = data_path(file) not in self.columns.unverified
                return FileVerdict(path=path, verdict=verdict, note=note, verified=verified)
        except SecureBloomError as error:
            if isinstance(error, PolicyError) and error.column is not None:
                self.misfits.append(error)
            return FileVerdict(path=path, **failure_of(error))

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
            with open_input(verdict.path) as file:
                return self.columns.data_leaves(file, itself=is_index(file))
        except SecureBloomError:
            return None

    def _verdict(self, file: InputFile) -> tuple[Verdict, str | None]:
        itself = is_index(file)
        index = read_whole(file) if itself else read_beside(file)
        if index is None:
            return Verdict.NO_FILTER, None
        indexed = [name for name in self._names() if index.indexes(name)]
        self.indexed.update(indexed)
        if not indexed:
            return Verdict.NO_FILTER, None
        typed = [name for name in indexed if _needs_type(index, name)]
        forms = StoredForms(self.columns.leaves(file, typed, itself=itself))
        if must_read(index, self.predicate, forms, rules=self.rules):
            return Verdict.MAYBE, None
        is_lossy = self.rules is Rules.PAIMON_0_9
        lost = is_lossy and version_0_9.loses_rows(index, self.predicate, forms)
        return Verdict.ABSENT, _LOST if lost else None


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
