"""Read the rows of files through statistics, dictionaries, Bloom filters and page indexes.

Four functions have one signature, the fields of a :class:`ReadRequest`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.calling.signatures import takes
from secure_bloom.encryption.access import GivenKeys, resolver_with
from secure_bloom.errors import FileChangedError, located
from secure_bloom.reading.pruning.plan import FilePlan, PlannedFile, ReadPlan
from secure_bloom.reading.read_request import ReadRequest
from secure_bloom.reading.report import ReadReport
from secure_bloom.reading.rows.file_reader import FileReader
from secure_bloom.reading.rows.pyarrow_source import SourceOpener
from secure_bloom.reading.rows.units import Unit, tables_of, units
from secure_bloom.reading.table.footer import read_footer
from secure_bloom.reading.table.table_schema import SchemaCache
from secure_bloom.reading.table_read import BATCH_ROWS, TableRead
from secure_bloom.storage import CountedFile, open_input


@takes(ReadRequest)
def read_table(asked: ReadRequest) -> pa.Table:
    """Return the rows of files, folders or globs for which ``where`` is true.

    ``where`` is a structure such as ``[("email", "=", "a@x"), ("country", "in", ["it", "no"])]``,
    nested by ``("or", ..., ...)`` and ``("and", ..., ...)``.  It may also be a pyarrow.compute
    expression of that shape, or a text as on the command line.  Its rows are those of a full scan:
    comparisons with null are not true, NaN equals nothing, zeros are equal.  Values are compared
    exactly, whether or not the column's type has them; those of another kind are refused.

    ``columns`` are top-level columns, all unless given; a column that is named twice comes once.
    ``limit`` is the number of rows after which the read stops.  ``keys``, or the KMS of a
    ``policy`` (or of the policy at a path), decrypt.  The schema is the union of the files'
    schemas, hive partition columns last.

    For a Delta table the live files of its latest version are read, or of ``version``, or of the
    last version until ``timestamp``.  For an Iceberg table those of its current snapshot are read,
    or of ``snapshot`` (its id), or of the one at ``timestamp``.  Deleted rows are left out.  The
    log lists columns and partitions.

    A row group is decrypted only as far as its statistics, dictionary, Bloom filter and page index
    leave it open.  Raises KeyUnavailableError if a key is missing and rows are left that need it.
    With ``without_filter_keys`` a condition on a column whose key is missing is left out instead,
    and rows come back for which it may not hold.  A signed file whose key is missing is an
    error where ``keys`` or a ``policy`` are given, unless ``allow_unverified``, and read with a
    warning else.  One that is protected less than the ``policy`` says is an error unless
    ``allow_unprotected`` is given.  Raises IntegrityError for a module that does not authenticate,
    PolicyError for a request that makes no sense.

    >>> rows = sb.read_table("out/", where="email = 'user7@example.com'", policy="keys/policy.toml")
    >>> rows.num_rows
    1
    """
    read = TableRead(asked)
    return pa.Table.from_batches(read.batches(), schema=read.schema)


@takes(ReadRequest)
def read_batches(asked: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Return the rows of :func:`read_table` in batches, with few of them in memory at a time.

    >>> batches = sb.read_batches("out/", columns="id", policy="keys/policy.toml")
    >>> sum(batch.num_rows for batch in batches)
    40
    """
    return TableRead(asked).batches()


@takes(ReadRequest)
def explain(asked: ReadRequest) -> ReadReport:
    """Do :func:`read_table`, drop the rows, and say what was read and why.

    >>> where = [("email", "=", "user2x@example.com")]
    >>> sb.explain("out/", where=where, policy="keys/policy.toml").skipped
    {'Bloom filter': 2}
    """
    read = TableRead(asked, explain=True)
    for _ in read.batches():
        pass
    return read.report()


@takes(ReadRequest)
def plan_read(asked: ReadRequest) -> ReadPlan:
    """The row groups that :func:`read_table` would read, for :func:`read_row_groups` elsewhere.

    A ``limit`` does not shorten the plan.

    >>> plan = sb.plan_read("out/", where="email = 'user7@example.com'", policy="keys/policy.toml")
    >>> [len(file.row_groups) for file in plan.files]
    [1]
    """
    return TableRead(asked).plan()


@checked_arguments
def read_row_groups(
    plan: ReadPlan, file: PlannedFile, *, keys: GivenKeys = None
) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows of one file of a plan, in the plan's schema.

    ``plan`` may be one without files: of it only what is asked for counts.  Raises
    FileChangedError where the file is not the one that was planned.

    >>> plan = sb.plan_read("out/", where="email = 'user7@example.com'", policy="keys/policy.toml")
    >>> keys = sb.Keyring.load("keys/dev-keyring.json")
    >>> sum(b.num_rows for file in plan.files for b in sb.read_row_groups(plan, file, keys=keys))
    1
    """
    # The policy's KMS is not asked here: whoever carries a plan out brings the keys.
    resolver = resolver_with(keys, plan.trust)
    with located(path=file.path), open_input(file.path) as opened:
        footer = read_footer(CountedFile(opened), resolver, SchemaCache(plan.names))
        if (footer.written, footer.digest) != (file.written, file.digest):
            raise FileChangedError(
                "the file was changed after it was planned",
                hint="plan anew; copies of a file on several machines keep its time of writing",
            )
    planned = FilePlan(
        path=file.path,
        footer=footer,
        partition=file.partition,
        row_groups=file.row_groups,
        unchecked=file.unchecked,
        deleted=file.deleted,
        equality=file.equality,
        fills=file.fills,
    )
    reader = FileReader(planned, plan.request(), SourceOpener(resolver))
    try:
        for unit in filter(None, map(Unit.narrowed, units(reader))):
            for table in tables_of(unit.read()):
                yield from table.to_batches(max_chunksize=BATCH_ROWS)
    finally:
        reader.close()
