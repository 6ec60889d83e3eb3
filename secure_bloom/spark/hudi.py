"""Look up Hudi's record keys in a Spark job: a DataFrame of keys in, keys and files out.

    blocks of keys, each key once  ->  a copy for each group of files  ->  one task a group

A task reads the footers of its files once.  It checks the keys, as they stream by, against the
ranges and filters.  Then it reads the key column of the files that have candidates.  No machine
holds all keys, so there may be many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from secure_bloom.encryption.access import Access, GivenPolicy
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError, located
from secure_bloom.hudi.key_column import key_ordinal
from secure_bloom.hudi.key_lookup import SearchedKeys, present_keys
from secure_bloom.hudi.record_keys.footer_entry import RECORD_KEY, RecordKeyEntry, read_entry_of
from secure_bloom.hudi.record_keys.packed_keys import keys_bytes
from secure_bloom.lakes.formats import HUDI
from secure_bloom.lakes.managed_tables import find_unmanaged
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.runs.column_check import require_in_one
from secure_bloom.spark.compat import check_table_arguments
from secure_bloom.spark.jobs_of_call import context_of
from secure_bloom.spark.package_archive import opened_once, ship
from secure_bloom.spark.tasks import in_partitions
from secure_bloom.storage import open_input
from secure_bloom.storage.paths import Paths, absolute_path, as_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

RESULT_SCHEMA = "key string, path string"
#: The most files of a task, which holds their filters; one of Hudi's default size takes 0.75 MB.
_MOST_FILES = 128
#: Keys travel in this many blocks: a row for each key would cost more than probing the filters.
_BLOCKS = 4096
#: The least keys that are looked up in the filters at once.
_BATCH = 65_536
#: The number of candidates that a task gathers before it reads files for them.
_MOST_CANDIDATES = 1_000_000


def hudi_lookup(
    spark: SparkSession,
    paths: Paths,
    keys: DataFrame,
    policy: GivenPolicy = None,
    *,
    key: str | None = None,
    column: str = RECORD_KEY,
    file_groups: int | None = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
) -> DataFrame:
    """Find the base files that hold record keys, as :func:`secure_bloom.hudi.lookup` does.

    ``paths`` are files, folders or globs that driver and executors see alike.  ``keys`` has the
    record keys, which must be texts, in its column ``key``. The name may be left out if there is
    only one column.  Nulls are skipped and duplicates count once. An empty key, which Hudi refuses,
    fails the job.  ``column`` is the key column of the files.  Encrypted files need a ``policy``:
    the executors ask its KMS.

    Returns a lazy DataFrame of ``key`` and ``path``: a row for each file that holds a key, none for
    a key that no file holds.  A file that cannot be read fails the job, because an answer without
    it would be wrong.  With a policy two more kinds of files fail the job: a signed file whose key
    is not available, unless ``allow_unverified``, and a file that is protected less than the policy
    says, unless ``allow_unprotected``.  Without a policy, signatures are not checked, and a warning
    says so.

    ``file_groups`` is the number of tasks. The keys are sent to each task once.  By default it is
    twice the session's cores, and at least one for 128 files.
    """
    check_table_arguments()
    from pyspark.sql import functions as f

    files = [absolute_path(path) for path in find_unmanaged(as_paths(paths), honoured=[HUDI])]
    groups = _group_count(spark, len(files), file_groups)
    access = Access.of(
        None, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    # Elsewhere the executors alone may reach the KMS.
    if isinstance(access.key_source(), Keyring | None):
        require_in_one(files, access.resolver(), lambda footer: key_ordinal(footer, column))
    shared = ship(access)
    copies = _copies(_wanted(keys, _key_column(keys, key)), groups)
    # A plain Python UDTF: it needs no pandas, and Spark Connect has it too.
    handler = _handler(files, groups, column, shared)
    search = f.udtf(handler, returnType=RESULT_SCHEMA, useArrow=False)
    table = in_partitions(copies, "file_group", max(groups, 1)).asTable()
    return cast("DataFrame", cast(Any, search)(table))


def _key_column(keys: DataFrame, key: str | None) -> str:
    if key is not None:
        return key
    if len(keys.columns) != 1:
        raise PolicyError(
            f"the keys have {len(keys.columns)} columns, one must be named",
            hint="hudi_lookup(..., key=NAME)",
        )
    name: str = keys.columns[0]
    return name


def _wanted(keys: DataFrame, name: str) -> DataFrame:
    """Return the keys to look for, in a column ``key``. Spark raises an error for an empty key."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import CharType, StringType, VarcharType

    column = keys.select(keys[name].alias("key"))
    stored = column.schema["key"].dataType
    if not isinstance(stored, StringType | CharType | VarcharType):
        raise PolicyError(
            f"record keys are {stored.simpleString()}, wanted text",
            hint=f'write them as Hudi does, first of all: keys["{name}"].cast("string")',
            column=name,
        )
    refused = f.raise_error(f.lit("a record key is empty, which Hudi refuses")).cast("string")
    checked = f.when(f.col("key") == "", refused).otherwise(f.col("key"))
    return column.dropna().select(checked.alias("key"))


def _copies(wanted: DataFrame, groups: int) -> DataFrame:
    """Return all keys once for each group of files. Each row holds a block of keys."""
    from pyspark.sql import functions as f

    block = (f.xxhash64("key") % _BLOCKS).alias("block")
    blocks = wanted.groupBy(block).agg(f.collect_set("key").alias("keys"))
    every_group = f.explode(f.sequence(f.lit(0), f.lit(groups - 1)))
    return blocks.select(every_group.alias("file_group"), "keys")


def _group_count(spark: SparkSession, files: int, asked: int | None) -> int:
    if asked is not None:
        if asked < 1:
            raise PolicyError(f"file_groups is {asked}, wanted at least 1")
        return min(asked, files)
    context = context_of(spark)
    cores = 8 if context is None else context.defaultParallelism
    return min(files, max(2 * cores, -(-files // _MOST_FILES)))


@opened_once
def _resolver(access: Access) -> KeyResolver:
    return access.resolver()


def _handler(files: list[str], groups: int, column: str, shared: bytes) -> type:
    """Return the class that Spark instantiates in each task, to give it the task's rows."""

    class Search:
        def __init__(self) -> None:
            # All rows of a task are of one group, unless Spark joined partitions.
            self.searches: dict[int, _GroupSearch] = {}

        def eval(self, row: Row) -> Iterator[tuple[str, str]]:
            search = self.searches.get(row.file_group)
            if search is None:
                search = _GroupSearch(files[row.file_group :: groups], column, _resolver(shared))
                self.searches[row.file_group] = search
            yield from search.take(row["keys"])

        def terminate(self) -> Iterator[tuple[str, str]]:
            for search in self.searches.values():
                yield from search.finish()

    return Search


class _GroupSearch:
    """Searches the files of one task: reads footers once, collects candidates, looks them up."""

    def __init__(self, paths: list[str], column: str, resolver: KeyResolver) -> None:
        self._column = column
        self._resolver = resolver
        self._entries = {path: self._read_entry(path) for path in paths}
        self._keys: list[bytes] = []
        self._candidates: dict[str, set[bytes]] = {path: set() for path in paths}

    def take(self, keys: list[str]) -> Iterator[tuple[str, str]]:
        """Take more keys. Yields results only when many candidates have been collected."""
        self._keys += keys_bytes(keys)
        if len(self._keys) >= _BATCH:
            self._probe_filters()
            if sum(map(len, self._candidates.values())) >= _MOST_CANDIDATES:
                yield from self._read_files()

    def finish(self) -> Iterator[tuple[str, str]]:
        """Yield the rest of the results, after all keys."""
        self._probe_filters()
        yield from self._read_files()

    def _probe_filters(self) -> None:
        searched = SearchedKeys(self._keys)
        self._keys = []
        for path, entry in self._entries.items():
            with located(path=path):
                _, candidates = searched.candidates(entry)
            self._candidates[path] |= candidates

    def _read_files(self) -> Iterator[tuple[str, str]]:
        for path, candidates in self._candidates.items():
            yield from ((key.decode(), path) for key in self._present(path, candidates))
            candidates.clear()

    def _read_entry(self, path: str) -> RecordKeyEntry | None:
        with located(path=path), open_input(path) as file:
            footer = unlock_to_read(read_tail(file), file_keys(self._resolver, file))
            warn_unverified(() if footer.is_verified else (path,))
            return read_entry_of(footer, self._column)

    def _present(self, path: str, candidates: set[bytes]) -> set[bytes]:
        if not candidates:
            return set()
        with located(path=path), open_input(path) as file:
            footer = unlock_to_read(read_tail(file), file_keys(self._resolver, file))
            return present_keys(file, footer, self._column, candidates)
