"""The columns of a table, and the reasons why some can never have a filter that a lookup uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from secure_bloom.errors import KeyUnavailableError, UnsupportedFeatureError
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.schema import INT96_NOTE, Leaf, require_filterable
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import is_float16

_BOOLEAN = "BOOLEAN: the format has no filter for it, and two values need none"
_REPEATED = "repeated: conditions do not look into maps, nor into lists of lists or of structures"
_DURATION = "duration: a file does not say its unit, so no filter can be asked for one"
_TWICE = "two columns of the file have this name"
_LOCKED = "its key is missing, so nothing is known about its values"
_PARTITION = "partition: its values are in the names of folders, and readers skip whole folders"
#: Equality of numbers with fractions is hardly ever asked for.
_FRACTIONS = {Type.FLOAT, Type.DOUBLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One column. ``refusal`` says why it never has a filter, or is None.

    ``lookup`` is the path by which conditions name it: for the elements of a list, the path of the
    list. ``is_locked`` is whether its key is missing. ``has_fractions`` is whether it is assumed
    that queries ask for ranges of it and not for equal values. A log of queries can show otherwise.
    """

    path: tuple[str, ...]
    type: str
    lookup: tuple[str, ...] = ()
    refusal: str | None = None
    is_locked: bool = False
    has_fractions: bool = False

    @property
    def name(self) -> str:
        """The dotted path of the column."""
        return ".".join(self.path)


def candidates(footers: Sequence[Footer], partitions: Sequence[str]) -> tuple[Candidate, ...]:
    """Return the columns of all files, given one footer for each schema.

    The partition columns come last.
    """
    found: dict[tuple[str, ...], Candidate] = {}
    for footer in footers:
        for ordinal, leaf in enumerate(footer.columns.leaves):
            if leaf.path[0] not in partitions and leaf.path not in found:
                found[leaf.path] = _candidate(footer, ordinal, leaf)
    for name in partitions:
        found[(name,)] = Candidate(path=(name,), type="partition", refusal=_PARTITION)
    return tuple(found.values())


def _candidate(footer: Footer, ordinal: int, leaf: Leaf) -> Candidate:
    is_locked = _is_locked(footer, ordinal)
    lookup = _lookup(footer, ordinal, leaf)
    return Candidate(
        path=leaf.path,
        type=leaf.type.name,
        lookup=lookup or leaf.path,
        refusal=_LOCKED if is_locked else _refusal(footer, leaf, is_found=lookup is not None),
        is_locked=is_locked,
        has_fractions=leaf.type in _FRACTIONS or is_float16(leaf),
    )


def _is_locked(footer: Footer, ordinal: int) -> bool:
    try:
        if footer.row_groups:
            footer.chunk_to_read(0, ordinal)
    except KeyUnavailableError:
        return True
    return False


def _lookup(footer: Footer, ordinal: int, leaf: Leaf) -> tuple[str, ...] | None:
    """Return the path by which a condition names the leaf, or None."""
    columns = footer.columns
    if not leaf.is_repeated:
        return leaf.path if columns.ordinals[leaf.path] == ordinal else None
    found: pa.DataType = columns.arrow.field(leaf.path[0]).type
    for depth, member in enumerate(leaf.path[1:], start=1):
        if not pa.types.is_struct(found):
            is_flat = _is_list(found) and not pa.types.is_nested(found.value_type)
            is_one = columns.elements.get(leaf.path[:depth]) == ordinal
            return leaf.path[:depth] if is_flat and is_one else None
        found = found.field(member).type
    return None


def _is_list(found: pa.DataType) -> bool:
    return bool(pa.types.is_list(found) or pa.types.is_large_list(found))


def _refusal(footer: Footer, leaf: Leaf, *, is_found: bool) -> str | None:
    if leaf.type is Type.BOOLEAN:
        return _BOOLEAN
    if leaf.type is Type.INT96:
        return INT96_NOTE
    if not is_found:
        return _REPEATED if leaf.is_repeated else _TWICE
    if pa.types.is_duration(footer.columns.arrow.field(leaf.path[0]).type):
        return _DURATION
    try:
        require_filterable(leaf)
    except UnsupportedFeatureError as error:
        return str(error)
    return None
