"""Search files of any kind for values of columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from secure_bloom.calling.arguments import Progress, checked_arguments
from secure_bloom.calling.options import as_texts
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.reading.kept_table import Table
from secure_bloom.reading.read_request import OpenRequest
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.storage.storage_options import with_storage_options
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import candidates, search_files
from secure_bloom.tracing.report import TraceReport
from secure_bloom.tracing.subjects import SearchedColumn, table_subject, written_subject
from secure_bloom.tracing.written import written_words


@checked_arguments
@with_storage_options
def trace(
    files: Paths,
    *,
    values_of: str | Iterable[str],
    parts: Iterable[str] = (),
    as_written: bool = False,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    memory: int | str = "1GiB",
    jobs: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> TraceReport:
    """Search files of any kind for values of columns of tables.

    The values of each column are read once, into one index.  Each file is searched whole: as it is
    stored, and opened if it is an archive, a packed file, or a file with columns.  A value is found
    in other capitals, with other marks and spaces, in other notations of numbers and dates, encoded
    (Base64, hexadecimal, escapes, UTF-16), backwards, and as a digest without a salt.  What passes
    the index is compared with the values.  docs/leak-search.md says what is not found.

    Args:
        files: Files and folders, local or in a store. Everything below a folder is searched.
        values_of: Columns, each written ``TABLE:COLUMN``.
        parts: Parts of values that count as values: ``"local"`` and ``"domain"`` of e-mails.
        as_written: Search for values as the column has them, and encoded or backwards. If the files
            have few words, these are looked up in the filters of the tables, and only the row
            groups that may have one are read. Other capitals, marks and notations, parts and
            digests are found only for values that are found in this way. If the files have many
            words, or with ``parts``, all values are read.
        keys: A keyring or KMS client for the tables, and for encrypted Parquet files among
            ``files``; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unverified: Read a signed file of a table whose footer key is missing.
        allow_unprotected: Read a file of a table that is protected less than the policy says.
        memory: The most that the index, and what is kept of the tables, may take; the process takes
            some 400 MiB more. What does not fit is reported.
        jobs: Files that are searched at once; by default one for each processor.
        progress: Called with the number of files done and the number of all files.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with counts for each file and column. It holds no value.

    Raises:
        KeyUnavailableError: A key of a column is missing.
        MissingPathError: There is no such file.
        PolicyError: A table has no such column.

    Example:
        >>> report = sb.trace("dump.csv", values_of="out/:email", policy="keys/policy.toml")
        >>> report.is_clean
        False
    """
    request = TraceRequest.of(
        values_of,
        parts,
        Access.of(
            keys,
            policy,
            allow_unverified=allow_unverified,
            allow_unprotected=allow_unprotected,
        ),
        memory,
    )
    found = list(candidates(as_paths(files)))
    jobs = jobs or os.cpu_count() or 1
    opening = request.access.describing_resolver()
    with request.index(written_words(found, jobs, opening) if as_written else None) as index:
        return search_files(found, index, jobs=jobs, progress=progress, keys=opening)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TraceRequest:
    """The columns of tables whose values are searched for, and the memory for them.

    It can be pickled if its keys can.
    """

    columns: tuple[tuple[str, str], ...]
    parts: tuple[str, ...]
    access: Access
    memory: int

    @classmethod
    def of(
        cls,
        values_of: str | Iterable[str],
        parts: Iterable[str],
        access: Access,
        memory: int | str,
    ) -> TraceRequest:
        """Return the request for a caller's arguments. Raises PolicyError for invalid ones."""
        return cls(
            columns=tuple(_column(text) for text in as_texts("values_of", values_of)),
            parts=tuple(parts),
            access=access,
            memory=OpenRequest("", memory=memory).most_bytes(),
        )

    @contextmanager
    def index(self, written: Sequence[bytes] | None = None) -> Iterator[WordIndex]:
        """Open the tables, and yield the index of the words of their columns.

        With ``written``, only the values that are written exactly as one of these texts are in
        the index, and only if Bloom filters can find them.
        """
        paths = dict.fromkeys(path for path, _ in self.columns)
        # Footers and filters of the tables are kept, for words that are looked up.
        kept = self.memory // _KEPT
        with ExitStack() as opened:
            tables = {
                path: opened.enter_context(
                    Table(
                        OpenRequest(
                            path,
                            keys=self.access.keys,
                            policy=self.access.policy,
                            allow_unverified=self.access.allow_unverified,
                            allow_unprotected=self.access.allow_unprotected,
                            memory=kept // len(paths),
                        )
                    )
                )
                for path in paths
            }
            subjects = [
                self._subject(tables[path], path, name, written) for path, name in self.columns
            ]
            yield WordIndex.build(subjects, self.memory - kept)

    def _subject(
        self, table: Table, path: str, column: str, written: Sequence[bytes] | None
    ) -> SearchedColumn:
        parts = self._parts_of(path, column)
        # No filter has parts of values.
        few = None if parts or written is None else written_subject(table, column, written)
        return table_subject(table, column, parts) if few is None else few

    def _parts_of(self, path: str, column: str) -> tuple[str, ...]:
        """Return the parts of a column's values that the caller or the policy names."""
        policy = self.access.policy
        rule = None if policy is None else policy.rules_at(path).columns.get(column)
        return tuple(dict.fromkeys((*self.parts, *(() if rule is None else rule.parts))))


#: The part of the memory that footers and filters may take.
_KEPT: Final = 4


def _column(text: str) -> tuple[str, str]:
    table, colon, column = text.rpartition(":")
    if not (colon and table and column):
        raise PolicyError(
            f"{text!r} names no column of a table", hint="write TABLE:COLUMN, such as out/:email"
        )
    return table, column
