"""Ask indexes: can a data file be skipped for a predicate, for files, folders and globs.

Only indexes are read, and footers for the types of columns.  Neither pyarrow nor numba is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from secure_bloom.errors import PolicyError, SecureBloomError, located
from secure_bloom.footer import read_tail, unlock
from secure_bloom.keys import ExplicitKeys, KeyResolver, Keyring, KmsClient
from secure_bloom.paimon.columns import find_column, leaf_of, value_forms
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, FileIndex
from secure_bloom.paimon.evaluation import must_read
from secure_bloom.paimon.files import data_path, is_index, read_beside, read_whole
from secure_bloom.paimon.predicates import Predicate, as_predicate, comparisons
from secure_bloom.paimon.types import DataType, Hashed
from secure_bloom.reader import Verdict
from secure_bloom.schema import Leaf
from secure_bloom.sources import Paths, as_paths, file_keys
from secure_bloom.storage import InputFile, find_files, open_input

Types = Mapping[str, DataType | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerdict:
    """One data file: ``absent`` when no row of it satisfies the predicate, or why it is not known.

    ``no_filter`` says that it has no index, or none of a column that is asked for.
    """

    path: str
    verdict: Verdict | None = None
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonProbe:
    """The verdicts of all files."""

    files: tuple[FileVerdict, ...]

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """Every verdict that occurs."""
        return frozenset(file.verdict for file in self.files if file.verdict is not None)

    @property
    def failed(self) -> tuple[FileVerdict, ...]:
        """The files that could not be asked."""
        return tuple(file for file in self.files if file.error is not None)

    def to_json(self) -> dict[str, Any]:
        """The document that ``secure-bloom paimon probe --json`` prints."""
        return asdict(self)


def probe(
    paths: Paths,
    where: object,
    *,
    types: Types | None = None,
    keys: Keyring | KmsClient | ExplicitKeys | None = None,
) -> PaimonProbe:
    """Ask the index of each data file whether it may hold rows that satisfy ``where``.

    ``paths`` are data files, folders, globs, or index files by name.  ``types`` are Paimon's types
    of columns (``"BIGINT"``, ``"TIMESTAMP(6)"``); where one is missing, the data file's footer
    says it.  ``where`` is a text such as ``"id = 5 and name in ('a', 'b')"``, tuples and lists such
    as ``("id", "=", 5)``, or Paimon's own predicate.  Values are written as for
    :func:`secure_bloom.probe`.  A file that cannot be asked is reported with its error and does not
    stop the others.  Raises PolicyError for a predicate that is not understood, or a value that
    cannot be one of its column.
    """
    given = {name: _as_type(data_type) for name, data_type in (types or {}).items()}
    question = _Question(predicate=as_predicate(where), types=given, resolver=KeyResolver(keys))
    return PaimonProbe(files=tuple(question.ask(path) for path in find_files(as_paths(paths))))


def _as_type(data_type: DataType | str) -> DataType:
    return DataType.parse(data_type) if isinstance(data_type, str) else data_type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One predicate, asked of file after file."""

    predicate: Predicate
    types: Mapping[str, DataType]
    resolver: KeyResolver

    def ask(self, path: str) -> FileVerdict:
        try:
            with located(path=path), open_input(path) as file:
                return FileVerdict(path=path, verdict=self._verdict(file))
        except SecureBloomError as error:
            if isinstance(error, PolicyError) and error.column is not None:
                # The question itself is wrong, for this file and all others.
                raise
            return FileVerdict(path=path, error=str(error), hint=error.hint)

    def _verdict(self, file: InputFile) -> Verdict:
        itself = is_index(file)
        index = read_whole(file) if itself else read_beside(file)
        if index is None:
            return Verdict.NO_FILTER
        asked = self._asked(index)
        if not asked:
            return Verdict.NO_FILTER
        leaves = self._leaves(file, [n for n in asked if _is_read(index, n)], itself=itself)

        def forms(column: str, value: object) -> tuple[Hashed, ...] | None:
            return value_forms(leaves[column], value) if column in leaves else None

        return Verdict.MAYBE if must_read(index, self.predicate, forms) else Verdict.ABSENT

    def _asked(self, index: FileIndex) -> list[str]:
        """The columns of the predicate that have an index."""
        names = dict.fromkeys(each.column for each in comparisons(self.predicate))
        return [name for name in names if index.indexes(name)]

    def _leaves(self, file: InputFile, names: list[str], *, itself: bool) -> dict[str, Leaf]:
        """The leaf of each column, from the types that were given, else from the data file."""
        known = {n: leaf_of(n, self.types[n]) for n in names if n in self.types}
        missing = [name for name in names if name not in known]
        if not missing:
            return known
        if not itself:
            return known | self._stored(file, missing)
        with open_input(data_path(file)) as data:
            return known | self._stored(data, missing)

    def _stored(self, file: InputFile, names: list[str]) -> dict[str, Leaf]:
        try:
            keys = file_keys(self.resolver, file)
            leaves = unlock(read_tail(file), keys, allow_unverified=True).leaves
        except SecureBloomError as error:
            error.hint = error.hint or "give the types of the columns: id=BIGINT"
            raise
        return {name: leaves[find_column(leaves, name).value] for name in names}


def _is_read(index: FileIndex, column: str) -> bool:
    """Whether an index of the column is asked for values, hence needs its type."""
    return any(
        each.body is not None and each.type in (BLOOM_FILTER, BITMAP)
        for each in index.indexes(column)
    )
