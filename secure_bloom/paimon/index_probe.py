"""Ask indexes: can a data file be skipped for a predicate, for files, folders and globs.

Only indexes are read, and footers for the types of columns.  Neither pyarrow nor numba is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

from secure_bloom.bloom.probe import Verdict
from secure_bloom.encryption.access import GivenKeys, GivenPolicy, resolver_of, trust_of
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError, SecureBloomError, located
from secure_bloom.paimon.comparisons import Predicate, as_predicate, comparisons
from secure_bloom.paimon.container import BITMAP, BLOOM_FILTER, FileIndex
from secure_bloom.paimon.data_types import DataType, Hashed
from secure_bloom.paimon.index_files import (
    SUFFIX,
    data_path,
    find_indexed,
    is_index,
    read_beside,
    read_whole,
)
from secure_bloom.paimon.indexed_columns import (
    describe_type,
    differs,
    example_form,
    find_column,
    leaf_of,
    stored_leaf,
    value_forms,
)
from secure_bloom.paimon.skipping import Rules, must_read, paimon_loses_rows
from secure_bloom.parquet.footer import read_tail, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.schema import Leaf, unknown_column
from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.paths import Paths

Types = Mapping[str, DataType | str]

_LOST = (
    "Paimon 0.9 skips the file, and its indexes do not rule out rows that satisfy the condition: "
    "a query may miss them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerdict:
    """One data file: ``absent`` when no row of it satisfies the predicate, or why it is not known.

    ``no_filter`` says that it has no index, or none of a column that is asked for.  By the rules of
    Paimon ``absent`` is a file that Paimon skips; ``note`` tells where that may lose rows.  What a
    file says that is not ``verified``, a signed one whose key is not at hand, may be forged.
    """

    path: str
    verdict: Verdict | None = None
    note: str | None = None
    verified: bool = True
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonProbe:
    """The verdicts of all files, and the rules that they are by.

    ``notes`` tell of columns that are asked for and that no file has.
    """

    rules: Rules
    files: tuple[FileVerdict, ...]
    notes: tuple[str, ...] = ()

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
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    rules: Rules | str = Rules.SAFE,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
) -> PaimonProbe:
    """Ask the index of each data file whether it may hold rows that satisfy ``where``.

    ``paths`` are data files, folders, globs, or index files by name.  ``types`` are Paimon's types
    of columns (``"BIGINT"``, ``"TIMESTAMP(6)"``); where one is missing, the data file's footer
    says it.  ``where`` is a text such as ``"id = 5 and name in ('a', 'b')"``, tuples and lists such
    as ``("id", "=", 5)``, or Paimon's own predicate.  Values are written as for
    :func:`secure_bloom.probe`.  A file that cannot be asked is reported with its error and does not
    stop the others: so is one whose column is of another type than the value or than ``types``, a
    signed one whose key is not at hand although ``keys`` or a ``policy`` are given, unless
    ``allow_unverified``, and one that is protected less than the policy says, unless
    ``allow_unprotected``.
    Where a column is only too small for a value, no row of the file has it.  With ``rules`` as
    ``"paimon-0.9"`` the answer is which files Paimon 0.9 skips by these indexes, rightly or not.
    Raises PolicyError for a predicate or rules that are not understood, and for values or types
    that fit none of the files.
    """
    given = {name: _as_type(data_type) for name, data_type in (types or {}).items()}
    trust = trust_of(policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected)
    question = _Question(
        predicate=as_predicate(where),
        types=given,
        resolver=resolver_of(keys, trust),
        rules=_as_rules(rules),
    )
    files = tuple(question.ask(path) for path in find_indexed(paths))
    question.refuse_if_wrong_for_all(files)
    warn_unverified(file.path for file in files if not file.verified)
    return PaimonProbe(rules=question.rules, files=files, notes=tuple(question.notes(files)))


def _as_rules(rules: Rules | str) -> Rules:
    try:
        return Rules(rules)
    except ValueError:
        raise PolicyError(
            f"rules are {rules!r}", hint=f"there are the rules {' and '.join(Rules)}"
        ) from None


def _as_type(data_type: DataType | str) -> DataType:
    return DataType.parse(data_type) if isinstance(data_type, str) else data_type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One predicate, asked of file after file.

    ``wrong`` is why it makes no sense for some, ``indexed`` what some index has of its columns,
    ``unverified`` the data files whose signature was not checked.
    """

    predicate: Predicate
    types: Mapping[str, DataType]
    resolver: KeyResolver
    rules: Rules
    wrong: list[PolicyError] = field(default_factory=list)
    indexed: set[str] = field(default_factory=set)
    unverified: set[str] = field(default_factory=set)

    def ask(self, path: str) -> FileVerdict:
        try:
            with located(path=path), open_input(path) as file:
                verdict, note = self._verdict(file)
                verified = data_path(file) not in self.unverified
                return FileVerdict(path=path, verdict=verdict, note=note, verified=verified)
        except SecureBloomError as error:
            if isinstance(error, PolicyError) and error.column is not None:
                self.wrong.append(error)
            return FileVerdict(path=path, error=str(error), hint=error.hint)

    def refuse_if_wrong_for_all(self, files: Iterable[FileVerdict]) -> None:
        """Raise the first PolicyError where no file could answer: the question itself is wrong."""
        answers = {Verdict.ABSENT, Verdict.MAYBE}
        if self.wrong and not any(file.verdict in answers for file in files):
            raise self.wrong[0]

    def notes(self, files: Iterable[FileVerdict]) -> Iterator[str]:
        """The columns of no index that are in no file either; none where some file is not known."""
        names = dict.fromkeys(each.column for each in comparisons(self.predicate))
        missing = [name for name in names if name not in self.indexed | self.types.keys()]
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

    def _readable_leaves(self, verdict: FileVerdict) -> tuple[Leaf, ...] | None:
        if verdict.error is not None:
            return None
        try:
            with open_input(verdict.path) as file:
                return self._data_leaves(file, itself=is_index(file))
        except SecureBloomError:
            return None

    def _verdict(self, file: InputFile) -> tuple[Verdict, str | None]:
        itself = is_index(file)
        index = read_whole(file) if itself else read_beside(file)
        asked = self._asked(index) if index is not None else []
        if index is None or not asked:
            return Verdict.NO_FILTER, None
        read = [name for name in asked if _is_read(index, name)]
        forms = _StoredForms(self._leaves(file, read, itself=itself))
        if must_read(index, self.predicate, forms, rules=self.rules):
            return Verdict.MAYBE, None
        as_paimon = self.rules is Rules.PAIMON_0_9
        lost = as_paimon and paimon_loses_rows(index, self.predicate, forms)
        return Verdict.ABSENT, _LOST if lost else None

    def _asked(self, index: FileIndex) -> list[str]:
        """The columns of the predicate that have an index."""
        names = dict.fromkeys(each.column for each in comparisons(self.predicate))
        asked = [name for name in names if index.indexes(name)]
        self.indexed.update(asked)
        return asked

    def _leaves(self, file: InputFile, names: list[str], *, itself: bool) -> dict[str, Leaf]:
        """The leaf of each column, from the data file, or where that tells none as was given.

        PolicyError where both are known and differ: values would be looked for in a wrong form.
        """
        missing = [name for name in names if name not in self.types]
        try:
            stored = self._data_leaves(file, itself=itself) if names else ()
        except SecureBloomError as error:
            if missing:
                own = None if _is_of_another_format(file) else error.hint
                error.hint = _with_types(own, missing[0])
                raise
            stored = ()
        given = {name: self._given(stored, name) for name in names if name in self.types}
        return given | {name: stored[find_column(stored, name).value] for name in missing}

    def _data_leaves(self, file: InputFile, *, itself: bool) -> tuple[Leaf, ...]:
        """The leaves of the data file that an index is of."""
        with open_input(data_path(file)) if itself else nullcontext(file) as data:
            keys = file_keys(self.resolver, data)
            footer = unlock_to_read(read_tail(data), keys)
            if not footer.is_verified:
                self.unverified.add(data.path)
            return footer.leaves

    def _given(self, stored: tuple[Leaf, ...], name: str) -> Leaf:
        """The leaf of the type that was given."""
        data_type = self.types[name]
        leaf = leaf_of(name, data_type)
        found = stored_leaf(stored, name)
        if found is not None and differs(found, leaf):
            raise PolicyError(
                f"the type given is {data_type}, the data file has {describe_type(found)}",
                hint="leave the type out: the data file says it",
                column=name,
            )
        return leaf


@dataclass(frozen=True, slots=True)
class _StoredForms:
    """The forms of values in columns of these leaves."""

    leaves: Mapping[str, Leaf]

    def __call__(self, column: str, value: object) -> tuple[Hashed, ...] | None:
        return value_forms(self.leaves[column], value) if column in self.leaves else None

    def example(self, column: str) -> Hashed | None:
        return example_form(self.leaves[column]) if column in self.leaves else None


def _may_have(leaves: tuple[Leaf, ...] | None, column: str) -> bool:
    """Whether a file of these leaves has the column, or what it is a key of."""
    names = (column, column.partition("[")[0])
    return leaves is None or any(leaf.path[0] in names for leaf in leaves)


def _is_of_another_format(file: InputFile) -> bool:
    """Whether the data file is, by its name, one whose types no footer tells here."""
    return file.name.removesuffix(SUFFIX).endswith((".orc", ".avro"))


def _with_types(hint: str | None, column: str) -> str:
    types = (
        f"give the types of the columns as the table has them, such as --type {column}=BIGINT or "
        f"--type {column}=STRING"
    )
    return types if hint is None else f"{hint}; or {types}"


def _is_read(index: FileIndex, column: str) -> bool:
    """Whether an index of the column is asked for values, hence needs its type."""
    return any(
        each.body is not None and each.type in (BLOOM_FILTER, BITMAP)
        for each in index.indexes(column)
    )
