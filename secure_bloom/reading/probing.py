"""Look values up in the filters of a table's files. Only footers and filters are read.

A single probe needs neither pyarrow nor numpy, so it starts fast.  An open table asks all filters
of a column together, and keeps them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from secure_bloom.bloom.stored import read_bloom_filter
from secure_bloom.bloom.verdicts import (
    FileProbe,
    ProbeReport,
    RowGroupProbe,
    Verdict,
    verdict,
    verdict_of,
)
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError, SecureBloomError, failure_of
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.literals import BeyondColumnError, physical_values, python_value
from secure_bloom.parquet.schema import (
    INT96_NOTE,
    Leaf,
    in_any_case,
    require_filterable,
    select,
    unknown_column,
)
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.predicates.tree import is_missing
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import InputFile
from secure_bloom.storage.inputs import Extent

if TYPE_CHECKING:
    from secure_bloom.parquet.footer.columns import FileColumns
    from secure_bloom.reading.pruning.kept_columns import KeptColumns


class TableProbe:
    """Probes each file of a table for values of one column.

    Files whose filters are in ``kept``, or are loaded into it, are probed together.
    """

    def __init__(
        self, files: TableFiles, column: str, values: object, kept: KeptColumns | None = None
    ) -> None:
        self._files = files
        self._kept = kept
        self._column = column
        self._values = _as_values(values)
        #: All columns that files have, for the error of one that none has.
        self._known = set[str]()

    def report(self) -> ProbeReport:
        """Return the verdicts. A file that fails is reported with its error.

        Raises PolicyError for a column that no file has, or that cannot hold one of the values.
        """
        files = self._files
        known = {} if self._kept is None else dict(self._asked_together(self._kept))
        others = (ordinal for ordinal in files.with_keys() if ordinal not in known)
        found = in_order(self._probed, others, files.workers, room=len(files))
        reports = tuple(known[n] if n in known else next(found) for n in range(len(files)))
        # A column that was added to a table is in none of the files that were written before.
        self._known |= files.listing.column_names()
        if self._known and self._column not in self._known:
            spelled = in_any_case(self._column, self._known)
            if spelled is None:
                raise unknown_column(self._column, self._known, files.paths)
            return TableProbe(files, spelled, self._values, self._kept).report()
        warn_unverified(report.path for report in reports if not report.verified)
        return ProbeReport(column=self._column, files=reports)

    def _asked_together(self, kept: KeptColumns) -> Iterator[tuple[int, FileProbe]]:
        """Yield the files whose filters are all in memory, with the answers of the filters."""
        for columns in kept.schemas:
            # What is wrong with the request, or a file, is found where the files are asked singly.
            with suppress(SecureBloomError):
                self._known.update(leaf.name for leaf in columns.leaves)
                ordinal = self._ordinal(columns.leaves)
                if ordinal is not None:
                    yield from self._asked_of(kept, columns, ordinal)

    def _asked_of(
        self, kept: KeptColumns, columns: FileColumns, ordinal: int
    ) -> Iterator[tuple[int, FileProbe]]:
        leaf, groups = columns.leaves[ordinal], dict[int, list[RowGroupProbe]]()
        probed = _encoded(leaf, self._values)
        every = [encoding for encodings in probed.values() for encoding in encodings or ()]
        for file, row_group, answer in kept.answers(columns, ordinal, every):
            verdicts = dict(zip(probed, _verdicts(probed.values(), answer), strict=True))
            group = RowGroupProbe(row_group=row_group, filter=answer is not None, verdicts=verdicts)
            groups.setdefault(file, []).append(group)
        for file, found in groups.items():
            footer = self._files.kept(file)
            # A row group without rows may have a filter too, and none of these is kept.
            if footer is not None and len(footer.row_groups) == len(found):
                yield file, self._report(footer, ordinal, found)

    def _report(
        self, footer: Footer, ordinal: int | None, row_groups: Iterable[RowGroupProbe]
    ) -> FileProbe:
        return FileProbe(
            path=footer.path,
            verified=footer.is_verified,
            note=None if ordinal is None else _note(footer.leaves[ordinal]),
            row_groups=tuple(row_groups),
        )

    def _probed(self, ordinal: int) -> FileProbe:
        try:
            with self._files.opened(ordinal) as (file, footer):
                return self._probe_file(file, footer)
        except SecureBloomError as error:
            if isinstance(error, PolicyError) and error.column is not None:
                # The request itself is wrong, so it is wrong for all other files too.
                raise
            return FileProbe(path=self._files.paths[ordinal], **failure_of(error))

    def _probe_file(self, file: InputFile, footer: Footer) -> FileProbe:
        self._known.update(leaf.name for leaf in footer.leaves)
        ordinal = self._ordinal(footer.leaves)
        probed = {} if ordinal is None else _encoded(footer.leaves[ordinal], self._values)
        chunks = [
            None if ordinal is None else footer.chunk_to_read(row_group, ordinal)
            for row_group in range(len(footer.row_groups))
        ]
        file.read_ahead(_filter_extents(filter(None, chunks)))
        found = (
            _probe_row_group(file, row_group, chunk, probed or dict.fromkeys(self._values))
            for row_group, chunk in enumerate(chunks)
        )
        return self._report(footer, ordinal, found)

    def _ordinal(self, leaves: tuple[Leaf, ...]) -> int | None:
        """Return the ordinal of the column's leaf, or None for a file without the column.

        Raises PolicyError for a column with several leaves.
        """
        ordinals = select(leaves, self._column)
        if ordinals:
            # A column with leaves inside is known by its own name too, and gets the error below.
            self._known.add(self._column)
        if len(ordinals) > 1:
            raise PolicyError(
                f"the column has {len(ordinals)} leaves",
                hint="name one of " + ", ".join(leaves[i].name for i in ordinals),
                column=self._column,
            )
        return ordinals[0] if ordinals else None


def _as_values(values: object) -> list[object]:
    """Return the values as a list.

    A text, bytes, and anything that is no collection are one value.
    """
    values = python_value(values)
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        return [_distinguishable(values)]
    # A missing value in a column of pandas is a NaN, NA or NaT, whatever the column holds.
    of_pandas = type(values).__module__.partition(".")[0] == "pandas"
    return [
        _distinguishable(python_value(value))
        for value in values
        if not (of_pandas and is_missing(value))
    ]


def _distinguishable(value: object) -> object:
    """Return the value. Raises PolicyError for one that cannot be looked up, such as a list."""
    try:
        hash(value)
    except TypeError:
        raise PolicyError(
            f"a value is of type {type(value).__name__}, wanted for example a text or a number"
        ) from None
    return value


def _filter_extents(chunks: Iterable[Chunk]) -> list[Extent]:
    """Return the places of filters, as far as the footer names them."""
    every = [(it.meta_data.bloom_filter_offset, it.meta_data.bloom_filter_length) for it in chunks]
    return [(start, start + length) for start, length in every if start and length]


def _encoded(leaf: Leaf, values: list[object]) -> dict[object, tuple[bytes, ...] | None]:
    require_filterable(leaf)
    encoded: dict[object, tuple[bytes, ...] | None] = {}
    for number, value in enumerate(values, 1):
        try:
            encoded[value] = _encodings(leaf, value)
        except PolicyError as error:
            if len(values) > 1:
                error.message = f"value {number:,} of {len(values):,}: {error.message}"
            raise
    # A reader rounds the value that it looks for, so the exact one may be absent where rows match.
    return dict.fromkeys(encoded) if leaf.type is Type.INT96 else encoded


def _encodings(leaf: Leaf, value: object) -> tuple[bytes, ...] | None:
    """Return the encodings of a value, or an empty tuple if the column cannot hold the value.

    Return None if filters cannot answer for the value.
    """
    try:
        return physical_values(leaf, value)
    except BeyondColumnError:
        # Another file may have the column in a larger type.
        return ()


def _note(leaf: Leaf) -> str | None:
    return f"column {leaf.name}: {INT96_NOTE}" if leaf.type is Type.INT96 else None


def _verdicts(
    probed: Collection[tuple[bytes, ...] | None], answer: Iterable[bool] | None
) -> list[Verdict]:
    """Return the verdicts from a filter's answers for all encodings. None means no filter."""
    if answer is None:
        return [Verdict.NO_FILTER] * len(probed)
    left = iter(answer)
    return [verdict_of(None if it is None else [next(left) for _ in it]) for it in probed]


def _probe_row_group(
    file: InputFile,
    row_group: int,
    chunk: Chunk | None,
    probed: Mapping[object, tuple[bytes, ...] | None],
) -> RowGroupProbe:
    stored = None if chunk is None else read_bloom_filter(file, chunk)
    return RowGroupProbe(
        row_group=row_group,
        filter=stored is not None,
        # A file without a filter says nothing, and it must not look like one that has the value.
        verdicts={
            value: Verdict.NO_FILTER if stored is None else verdict(stored.filter, encodings)
            for value, encodings in probed.items()
        },
    )
