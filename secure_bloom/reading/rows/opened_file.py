"""One file of a read, opened when it is first needed: for single pages, and for pyarrow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

import pyarrow.parquet as pq

from secure_bloom.errors import FileChangedError
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.reading.rows.stored_column import StoredColumn
from secure_bloom.reading.table.kept_chunks import KeptChunks
from secure_bloom.running.memory_budget import memory_budget
from secure_bloom.storage import CountedFile, InputFile, open_input
from secure_bloom.storage.inputs import Extent


class OpenedFile:
    """The file whose footer was read. Raises FileChangedError if another file is there by now.

    ``leaves`` returns the leaves that pyarrow sees, and ``row_groups`` are its row groups.
    ``open_file`` opens a path: the file itself, or a file with the same pages and planned filters.
    ``kept`` is what an open table keeps of chunks.
    """

    def __init__(
        self,
        footer: Footer,
        opener: SourceOpener,
        *,
        leaves: Callable[[], list[int]],
        row_groups: Sequence[int],
        count_bytes: bool = True,
        open_file: Callable[[str], InputFile] = open_input,
        kept: KeptChunks | None = None,
    ) -> None:
        self.footer = footer
        self._opener = opener
        self._leaves = leaves
        self._row_groups = list(row_groups)
        self._count_bytes = count_bytes
        self._open_input = open_file
        self._kept = kept
        self._lock = threading.Lock()
        self._file: InputFile | None = None
        self._pages: CountedFile | None = None
        #: Columns of which some rows were looked for, and the files that they are read with.
        self._columns: dict[tuple[int, int], StoredColumn] = {}
        self._counted: list[CountedFile] = []
        self._source: pq.ParquetFile | None = None
        # Read once: to look into the environment takes as long as to take a value.
        self._budget = memory_budget()

    def file(self) -> InputFile:
        """Return the file, after checking that it has not changed since its footer was read."""
        with self._lock:
            return self._checked()

    def _checked(self) -> InputFile:
        if self._file is None:
            file = self._open_input(self.footer.path)
            if file.identity != self.footer.identity:
                file.close()
                raise FileChangedError(
                    "the file was changed after its footer was read", hint="read it again"
                )
            self._file = file
        return self._file

    def pages(self) -> CountedFile:
        """Return the file for reading single pages."""
        if self._pages is None:
            self._pages = CountedFile(self.file())
        return self._pages

    def column(self, row_group: int, ordinal: int) -> StoredColumn:
        """Return a column whose rows are found and taken in its pages.

        It is the same one until it is forgotten, so that what was found is not read again.
        """
        known = self._columns.get((row_group, ordinal))
        if known is not None:
            return known
        chunk = self.footer.chunk_to_read(row_group, ordinal)
        with self._lock:
            known = self._columns.get((row_group, ordinal))
            if known is None:
                file = self._checked()
                if self._count_bytes:
                    file = CountedFile(file)
                    self._counted.append(file)
                known = StoredColumn(file, self.footer, chunk, self._budget, self._kept)
                self._columns[row_group, ordinal] = known
            return known

    def forget(self, row_groups: Iterable[int], *, least: int = 0) -> None:
        """Drop the columns of row groups that hold more than ``least`` bytes."""
        gone = set(row_groups)
        with self._lock:
            for place, column in tuple(self._columns.items()):
                if place[0] in gone and (not least or column.held >= least):
                    del self._columns[place]

    def source(self) -> pq.ParquetFile:
        """Return the file as pyarrow opens it."""
        if self._source is None:
            file = self.file()
            source = self._opener.open(self.footer, self._leaves(), self._row_groups, file)
            if not file.is_pinned:
                file.check_unchanged()
            self._source = source
        return self._source

    def close(self) -> list[Extent]:
        """Close the file. Return the extents that were read page by page."""
        counted = [*self._counted, *([] if self._pages is None else [self._pages])]
        extents = [extent for file in counted for extent in file.extents]
        self._counted, self._columns = [], {}
        for opened in (self._source, self._file):
            if opened is not None:
                opened.close()
        self._file = self._pages = self._source = None
        return extents
