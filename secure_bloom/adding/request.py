"""The filters that a run is to add, from the caller or a policy, and the guard of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from secure_bloom.calling.options import OTHER_TABLE, BloomFilterOptions, Names, as_names
from secure_bloom.encryption.access import loaded_policy
from secure_bloom.encryption.kms import ExplicitKeys, Keyring, KmsClient
from secure_bloom.encryption.trust import REENCRYPT, ROTATE
from secure_bloom.errors import PolicyError, located
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.schema import Leaf, select
from secure_bloom.storage import InputFile, open_in_table
from secure_bloom.storage.column_mapping import ColumnMapping

# Loaded where there is one.
if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy

#: Columns with their options (a number is an fpp), or names alone; a single text is one name.
Columns: TypeAlias = Mapping[str, BloomFilterOptions | float | None] | Names
Keys: TypeAlias = Keyring | KmsClient | ExplicitKeys

#: Ends the name of a structure of which all leaves are meant.
_ALL_BELOW = ".*"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFilters:
    """The columns that get filters, with the options of each.

    ``known`` has the columns that a table's log names: a file may lack them. ``names`` maps the
    table's column names to those of its files, if they differ. ``whole`` has the structures whose
    leaves all get a filter; None means every structure, as in a policy. ``shared`` has the columns
    that a policy names for all of its tables: it is no error if one table lacks one of them.
    """

    columns: Mapping[str, BloomFilterOptions]
    replace_filters: bool = False
    known: frozenset[str] = frozenset()
    names: ColumnMapping | None = None
    whole: frozenset[str] | None = None
    shared: frozenset[str] = frozenset()

    def required(self) -> list[str]:
        """Return the columns that a table must have."""
        return [name for name in self.columns if name not in self.shared]

    def open(self, path: str) -> InputFile:
        """Open a file. Its columns have the names of its table."""
        return open_in_table(path, self.names)

    def resolve(self, leaves: tuple[Leaf, ...]) -> dict[int, BloomFilterOptions]:
        """Return leaf ordinal -> options, in column order.

        Options for a leaf override those for its parent.  Raises PolicyError for a structure of
        several leaves that is not in ``whole``: lookups use one or two of them, and each filter
        costs space and time.
        """
        found: dict[int, BloomFilterOptions] = {}
        # A parent's name is shorter than its leaf's, so the leaf's options are set last.
        for name in sorted(self.columns, key=len):
            ordinals = select(leaves, name)
            self._check_structure(name, [leaves[ordinal].name for ordinal in ordinals])
            found.update(dict.fromkeys(ordinals, self.columns[name]))
        return dict(sorted(found.items()))

    def _check_structure(self, name: str, below: list[str]) -> None:
        if self.whole is None or name in self.whole or len(below) < 2 or name in below:
            return
        raise PolicyError(
            f"{name} is a structure of {len(below)} columns: {', '.join(below[:20])}",
            hint="name the columns that lookups use, or all columns of the structure: "
            f"--column '{name}.*'",
        )

    def missing(self, leaves: tuple[Leaf, ...]) -> list[str]:
        """Return the requested columns that a file with these leaves does not have."""
        return [name for name in self.required() if not select(leaves, name)]


@dataclass(frozen=True, slots=True)
class FilterGuard:
    """The check of each column chunk before it gets a filter. Without a policy all chunks pass."""

    policy: KeyPolicy | None = None

    def lookalikes(self, leaves: Sequence[Leaf], ordinals: Iterable[int]) -> Mapping[int, str]:
        """Return a mapping from leaf ordinals to the sensitive columns that have similar names."""
        if self.policy is None:
            return {}
        wanted = {leaves[ordinal].path: ordinal for ordinal in ordinals}
        alike = self.policy.likeness.lookalikes(wanted, [leaf.path for leaf in leaves])
        return {wanted[path]: name for path, name in alike.items()}

    def check(self, chunk: Chunk, *, like: str | None = None) -> None:
        """Raise PolicyError unless the chunk is under the key that the policy names for it.

        A filter of a sensitive column must never be written in clear, or under another key.
        ``like`` is the sensitive column that has a similar name, if any.
        """
        self._check_readers(chunk)
        if like is not None and self.policy is not None and chunk.cipher is None:
            with located(row_group=chunk.row_group):
                raise self.policy.alike_error(chunk.leaf.name, like)
        policy = self.policy
        rule = None if policy is None else policy.key_for(chunk.leaf.path)
        if policy is None or rule is None:
            return
        # The names of master keys are compared: a data key is new in each file and does not show
        # its master key.
        actual = None if chunk.cipher is None else chunk.cipher.key.name
        if chunk.cipher is None:
            got = "is stored in clear"
        elif actual != rule:
            got = f"is encrypted under {actual or 'a key without a name'}"
        else:
            return
        # A rotation changes the names of keys, not whether a column has one of its own.
        has_own = policy.own_key_for(chunk.leaf.path) is not None
        is_older = actual in policy.older_keys | policy.retired_keys
        command = ROTATE if is_older and chunk.is_under_footer_key != has_own else REENCRYPT
        raise PolicyError(
            f"the policy says key {rule}, the column {got}",
            hint=f"{command} brings files under the policy, and then they can get filters; "
            f"{OTHER_TABLE}",
            row_group=chunk.row_group,
            column=chunk.leaf.name,
        )

    def _check_readers(self, chunk: Chunk) -> None:
        """Raise PolicyError if a filter would keep DuckDB from reading the column.

        The policy can say that DuckDB reads these files.
        """
        if self.policy is None or not self.policy.duckdb_reads or not chunk.is_under_footer_key:
            return
        raise PolicyError(
            "the column is encrypted with the footer key, and DuckDB cannot read the column "
            "once it has a filter",
            hint="the policy says that DuckDB reads these files: leave the column without a "
            "filter, or remove `duckdb = true` from [readers]",
            row_group=chunk.row_group,
            column=chunk.leaf.name,
        )


@dataclass(frozen=True, slots=True)
class FilterRequest:
    """The filters that each file of a run is to have, and the guard of its columns.

    Under a policy with several tables, :meth:`for_file` returns those of one file.
    """

    wanted: WantedFilters
    guard: FilterGuard = field(default_factory=FilterGuard)
    #: Whether the policy says which columns get filters, and not the caller.
    from_policy: bool = False

    @property
    def source(self) -> str | None:
        """The file of the policy that names the columns, if one does."""
        policy = self.guard.policy
        return policy.source if policy is not None and self.from_policy else None

    def on_table(self, names: ColumnMapping | None, known: Iterable[str]) -> FilterRequest:
        """Return the request for the files of a table.

        ``names`` are those of :class:`WantedFilters`. The table has the ``known`` columns.
        """
        return replace(self, wanted=replace(self.wanted, names=names, known=frozenset(known)))

    def with_tables_at(self, places: Mapping[str, str]) -> FilterRequest:
        """Return the request under a policy that knows the places of tables of a catalog."""
        policy = self.guard.policy
        known = None if policy is None else policy.with_tables_at(places)
        return self if known is policy else replace(self, guard=FilterGuard(known))

    def for_file(self, path: str) -> FilterRequest:
        """Return the request for one file, or for a table by its address.

        It differs from file to file only for a policy with several tables. Raises PolicyError for a
        file that is in no table of the policy, or in several.
        """
        policy = self.guard.policy
        own = None if policy is None else policy.for_table(path)
        return self if own is None or own is policy else self._under(own)

    def by_table(self, files: Sequence[str]) -> Iterator[tuple[FilterRequest, list[str]]]:
        """Yield the request for each table, and its files.

        A file of no table is left out: it fails when its turn comes.
        """
        if self.guard.policy is None or not self.guard.policy.tables:
            yield self, list(files)
            return
        found: dict[str | None, tuple[FilterRequest, list[str]]] = {}
        for path in files:
            with suppress(PolicyError):
                policy = self.guard.policy.for_table(path)
                found.setdefault(policy.table, (self._under(policy), []))[1].append(path)
        yield from found.values()

    def for_paths(self, paths: Iterable[str]) -> FilterRequest:
        """Return the request for the one table that the paths name, or else this request."""
        policy = self.guard.policy
        own = None if policy is None else policy.for_paths(paths)
        return self if own is None or own is policy else self._under(own)

    def _under(self, policy: KeyPolicy) -> FilterRequest:
        """Return the request under the policy of one table."""
        wanted = self.wanted
        if self.from_policy:
            wanted = replace(wanted, columns=policy.bloom_columns(), shared=policy.shared)
        return replace(self, wanted=wanted, guard=FilterGuard(policy))


def filter_request(
    columns: Columns | None,
    policy: KeyPolicy | str | PathLike[str] | None,
    *,
    replace_filters: bool = False,
) -> FilterRequest:
    """Return the request of a call: explicit columns, or the columns of the policy.

    Raises PolicyError when neither names a column.
    """
    guard = FilterGuard(loaded_policy(policy))
    whole, chosen = None, {}
    if columns is not None:
        given = _given(columns)
        chosen = {name.removesuffix(_ALL_BELOW): options for name, options in given.items()}
        whole = frozenset(chosen.keys() - given.keys())
    elif guard.policy is not None:
        chosen = guard.policy.bloom_columns()
    if not chosen:
        raise PolicyError(
            "no column is named for a filter",
            hint="name columns (--column NAME), or give a policy (--policy FILE) in which columns "
            "have bloom = true",
        )
    wanted = WantedFilters(columns=chosen, replace_filters=replace_filters, whole=whole)
    return FilterRequest(wanted, guard, from_policy=columns is None)


def _given(columns: Columns) -> dict[str, BloomFilterOptions]:
    if isinstance(columns, Mapping):
        return {name: BloomFilterOptions.of(name, options) for name, options in columns.items()}
    return dict.fromkeys(as_names("columns", columns), BloomFilterOptions())
