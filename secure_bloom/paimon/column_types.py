"""The types of columns in a probe: from the data file's footer, or as the caller gave them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.paimon.data_types import DataType
from secure_bloom.paimon.index_files import SUFFIX, data_path
from secure_bloom.paimon.indexed_columns import find_column, stored_leaf
from secure_bloom.paimon.physical_values import differs
from secure_bloom.paimon.stored_types import describe_type, leaf_of
from secure_bloom.parquet.footer import unlock_to_read
from secure_bloom.parquet.footer_tail import read_tail
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.schema import Leaf
from secure_bloom.storage import InputFile, open_input


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTypes:
    """The types that the caller gave, and the keys that open footers.

    ``unverified`` are the data files whose signature was not checked.
    """

    given: Mapping[str, DataType]
    resolver: KeyResolver
    unverified: set[str] = field(default_factory=set)

    def leaves(self, file: InputFile, names: list[str], *, itself: bool) -> dict[str, Leaf]:
        """The leaf of each column: as the caller gave its type, else as the data file has it.

        ``itself``: the file is an index, not a data file.
        PolicyError where both are known and differ: values would be looked for in a wrong form.
        """
        missing = [name for name in names if name not in self.given]
        try:
            stored = self.data_leaves(file, itself=itself) if names else ()
        except SecureBloomError as error:
            if missing:
                own = None if _is_of_another_format(file) else error.hint
                error.hint = _with_types(own, missing[0])
                raise
            stored = ()
        given = {name: self._given_leaf(stored, name) for name in names if name in self.given}
        return given | {name: stored[find_column(stored, name).value] for name in missing}

    def data_leaves(self, file: InputFile, *, itself: bool) -> tuple[Leaf, ...]:
        """The leaves of the data file; with ``itself`` of the one that this index stands beside."""
        with open_input(data_path(file)) if itself else nullcontext(file) as data:
            keys = file_keys(self.resolver, data)
            footer = unlock_to_read(read_tail(data), keys)
            if not footer.is_verified:
                self.unverified.add(data.path)
            return footer.leaves

    def _given_leaf(self, stored: tuple[Leaf, ...], name: str) -> Leaf:
        data_type = self.given[name]
        leaf = leaf_of(name, data_type)
        found = stored_leaf(stored, name)
        if found is not None and differs(found, leaf):
            raise PolicyError(
                f"the type given is {data_type}, the data file has {describe_type(found)}",
                hint="leave the type out: the data file says it",
                column=name,
            )
        return leaf


def _is_of_another_format(file: InputFile) -> bool:
    """Whether the data file, by its name, has no Parquet footer that could tell types."""
    return file.name.removesuffix(SUFFIX).endswith((".orc", ".avro"))


def _with_types(hint: str | None, column: str) -> str:
    types = (
        f"give the types of the columns as the table has them, such as --type {column}=BIGINT or "
        f"--type {column}=STRING"
    )
    return types if hint is None else f"{hint}; or {types}"
