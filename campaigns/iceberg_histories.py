"""Random histories of Iceberg tables: others write before, between and after our commits.

A history is a table and steps by a seed: pyiceberg appends, deletes, overwrites and changes schema
and partition spec; in some histories Iceberg's Java library deletes by position and by value; we
add filters, and while we do, others write between our look at the table and our commit.  A third
of pyiceberg's steps were planned on an older look at the table.

In some steps we encrypt the table, rotate its keys and decrypt it again.  Others read nothing that
is encrypted: they append meanwhile, and the snapshots between are read by us, with the keys.

What a writer was told it had done must be there, and nothing else, after each step, and at each
snapshot in the end.  No new data file may stay that no snapshot names.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.utils.config import Config

import secure_bloom as sb
from campaigns.disks import MEMORY
from campaigns.outcome import Effort, Outcome
from campaigns.pieces import Tally, in_pieces
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.lakes.iceberg.commit_table import CommitTable
from testing import hadoop_catalog
from testing.iceberg_java import IcebergSpark
from testing.storage import Bucket, s3_server
from testing.tables import KEYRING

#: id -> email: what a table holds.
Rows = dict[int, str]
#: Histories of each kind in a full run, and in a quick one.
_FULL: Final = {"with Java": 100, "S3": 100, "local": 800}
_QUICK: Final = {"local": 3}
#: Histories of a piece: each has a server, or a JVM, of its own.
_A_PIECE: Final = {"local": 25, "with Java": 50, "S3": 50}
_STEPS: Final = 6
_EMAIL_FIELD: Final = 2
_SCHEMA: Final = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(_EMAIL_FIELD, "email", StringType(), required=False),
    NestedField(3, "city", StringType(), required=False),
)
_BY_CITY: Final = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "city"))
_S3: Final = {
    "s3.access-key-id": "testing",
    "s3.secret-access-key": "testing",
    "s3.region": "us-east-1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """A catalog that pyiceberg's settings call ``lake``, and who else writes to its tables.

    ``java`` deletes rows: its Spark, and the name that the catalog has there.  ``left`` returns
    the names of files in a table's folder.
    """

    catalog: Catalog
    left: Callable[[Table], list[str]]
    java: tuple[IcebergSpark, str] | None = None


_POLICY: Final = sb.KeyPolicy(
    footer_key="k_footer", columns={"id": ColumnRule(path="id", key="k_pii")}
)
#: Verb -> the call that changes the keys of a table.  What others appended in clear has no keys to
#: rotate, and fails there.
_CHANGES_OF_KEYS: Final[dict[str, Callable[..., sb.RekeyReport]]] = {
    "reencrypt": partial(sb.reencrypt, policy=_POLICY),
    "rotate": partial(sb.rotate_keys, policy=_POLICY, moves={"k_pii": "k_finance"}),
    "decrypt": sb.decrypt,
}


class History:
    """One table, and what was done to it."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self._lake, self._chance = lake, random.Random(seed)
        self._name = f"db.t{seed}"
        self._uri = f"iceberg://lake/{self._name}"
        self._next = 0
        self._rows: Rows = {}
        self._stale: Table | None = None
        self._has_values_deleted = False
        #: The rows that each snapshot must have.
        self.snapshots: dict[int, Rows] = {}
        #: Those of them that have encrypted files.
        self._encrypted: set[int] = set()
        self.done: Counter[str] = Counter()
        version = 2 if lake.java else self._chance.choice([1, 2])
        deletes = {"write.delete.mode": "merge-on-read"} if lake.java else {}
        # Deletes by value are of all partitions in a spec that has none.
        specs = [UNPARTITIONED_PARTITION_SPEC] + ([] if lake.java else [_BY_CITY])
        self._table = lake.catalog.create_table(
            self._name,
            _SCHEMA,
            partition_spec=self._chance.choice(specs),
            properties={"format-version": str(version), "commit.retry.min-wait-ms": "1"} | deletes,
        )
        self._append(self._table)
        self._note()

    def play(self, steps: int) -> None:
        """Do this many steps, of others or of us; raise AssertionError if a row is wrong."""
        for _ in range(steps):
            self._chance.choices([self._write, self._add, self._change_keys], [10, 8, 2])[0]()
            assert self._found() == self._rows, "other rows than the writers wrote"
        for snapshot, rows in self.snapshots.items():
            assert self._found(snapshot) == rows, f"snapshot {snapshot} has other rows"
        self._check_files()

    def _check_files(self) -> None:
        """The next run ends well, and every new data file is that of a snapshot."""
        report = sb.add_bloom_filters(self._uri, columns=["id"], jobs=1)
        assert not report.failed, report.failed
        table = self._fresh()
        named = {
            entry.data_file.file_path.rpartition("/")[2]
            for snapshot in table.snapshots()
            for manifest in snapshot.manifests(table.io)
            for entry in manifest.fetch_manifest_entry(table.io)
        }
        left = {name for name in self._lake.left(table) if ".sb-" in name} - named
        assert not left, f"{len(left)} new files stay that no snapshot names"

    def _found(self, snapshot: int | None = None) -> Rows:
        """The rows as others read them: pyiceberg, or Java if values were deleted."""
        if snapshot in self._encrypted:
            return _rows(sb.read_table(self._uri, keys=KEYRING, snapshot=snapshot))
        if self._has_values_deleted:
            return self._found_by_java(snapshot)
        return _rows(self._fresh().scan(snapshot_id=snapshot).to_arrow())

    def _found_by_java(self, snapshot: int | None) -> Rows:
        assert self._lake.java is not None
        spark, catalog = self._lake.java
        at = "" if snapshot is None else f"VERSION AS OF {snapshot}"
        return _rows(pa.Table.from_pylist(spark.sql(f"SELECT * FROM {catalog}.{self._name} {at}")))

    def _add(self) -> None:
        """We add filters, and others write before our commit and while it is tried."""
        email = self._email(self._fresh())
        try:
            with self._others_before_the_commit(self._write):
                report = sb.add_bloom_filters(
                    self._uri,
                    columns=self._chance.choice([[email], ["id"], ["id", email]]),
                    replace_filters=self._chance.random() < 0.3,
                    commit_every=self._chance.choice([None, 1, 2]),
                    jobs=1,
                    progress=self._others_after_the_work(),
                )
            assert not report.failed, report.failed
            self.done["add"] += 1
        except sb.FileChangedError:
            # Others were faster as often as the table allows to try; its new files must be gone.
            self.done["add that gave up"] += 1
        self._note()

    def _change_keys(self) -> None:
        """We encrypt the table, rotate its keys and decrypt it; others append meanwhile."""
        for verb, change in _CHANGES_OF_KEYS.items():
            before = set(self.snapshots)
            every = self._chance.choice([None, 1, 2])
            while True:
                try:
                    with self._others_before_the_commit(self._append_meanwhile):
                        change(self._uri, keys=KEYRING, commit_every=every, jobs=1)
                    break
                except sb.FileChangedError:
                    self.done[f"{verb} that gave up"] += 1
            self.done[verb] += 1
            new = {it.snapshot_id for it in self._fresh().snapshots()} - before
            self._encrypted |= new
            for snapshot in new:
                self.snapshots.setdefault(snapshot, dict(self._rows))
            assert _rows(sb.read_table(self._uri, keys=KEYRING)) == self._rows, f"after {verb}"
        head = self._fresh().current_snapshot()
        assert head is not None
        # In clear again, so others judge it.
        self._encrypted.discard(head.snapshot_id)

    def _append_meanwhile(self) -> None:
        """Others append rows, and the snapshots until then have the rows of before."""
        known = {it.snapshot_id for it in self._fresh().snapshots()} - set(self.snapshots)
        for snapshot in known:
            self.snapshots[snapshot] = dict(self._rows)
        self._encrypted |= known
        self._append(self._fresh())
        self.done["append"] += 1
        head = self._fresh().current_snapshot()
        assert head is not None
        self.snapshots[head.snapshot_id] = dict(self._rows)
        self._encrypted.add(head.snapshot_id)

    def _others_after_the_work(self) -> Callable[[int, int], None]:
        inside = self._chance.random() < 0.5

        def progress(done: int, total: int) -> None:
            if inside and done == total:
                self._write()

        return progress

    @contextmanager
    def _others_before_the_commit(self, write: Callable[[], None]) -> Iterator[None]:
        asked = CommitTable.commit

        def commit(table: CommitTable, *given: Any) -> None:
            if self._chance.random() < 0.3:
                write()
            asked(table, *given)

        with mock.patch.object(CommitTable, "commit", commit):
            yield

    def _write(self) -> None:
        """Another writer does something, perhaps as it had planned before."""
        self._note()
        table, before = self._stale or self._fresh(), dict(self._rows)
        self._stale = self._fresh() if self._chance.random() < 0.3 else None
        step = self._chance.choice(self._writers())
        try:
            step(table)
            self.done[step.__name__.strip("_").replace("_", " ")] += 1
        except (CommitFailedException, ValidationException):
            # It was told that it lost: then nothing of its step may be there.
            self._rows = before
            self.done["lost races"] += 1
        self._note()

    def _writers(self) -> list[Callable[[Table], None]]:
        found = [self._append, self._append, self._change_schema, self._change_spec]
        # pyiceberg 0.12 reads no table with equality deletes, so it deletes nothing there.
        if not self._has_values_deleted:
            found += [self._delete, self._overwrite]
        if self._lake.java is not None:
            found += [self._delete_by_position, self._delete_by_position, self._delete_by_value]
        return found

    def _note(self) -> None:
        """Every snapshot since the last note has the rows of now.

        A step of pyiceberg may make several.  Those between are as they are read right after it.
        """
        new = [it for it in self._fresh().snapshots() if it.snapshot_id not in self.snapshots]
        for snapshot in new:
            is_between = snapshot is not new[-1] and _operation(snapshot) != "replace"
            rows = self._found(snapshot.snapshot_id) if is_between else dict(self._rows)
            self.snapshots[snapshot.snapshot_id] = rows

    def _append(self, table: Table) -> None:
        ids = range(self._next, self._next + self._chance.randint(1, 4))
        new = {i: f"u{i}@x" for i in ids}
        self._next = ids.stop
        table.append(self._arrow(table, new))
        self._rows |= new

    def _delete(self, table: Table) -> None:
        gone = self._some()
        table.delete(_any_of(gone))
        self._rows = {i: email for i, email in self._rows.items() if i not in gone}

    def _overwrite(self, table: Table) -> None:
        """Some rows get another e-mail."""
        changed = {i: f"n{self._chance.random()}@x" for i in self._some() if i in self._rows}
        if changed:
            table.overwrite(self._arrow(table, changed), overwrite_filter=_any_of(list(changed)))
            self._rows |= changed

    def _change_schema(self, table: Table) -> None:
        """A column comes, goes, or gets another name; plans of before are made anew."""
        self._stale = None
        names = set(table.schema().column_names)
        with table.update_schema() as update:
            if self._chance.random() < 0.5:
                old = self._email(table)
                update.rename_column(old, "mail" if old == "email" else "email")
            elif "age" in names:
                update.delete_column("age")
            else:
                update.add_column("age", LongType())

    def _change_spec(self, table: Table) -> None:
        """The table begins to be partitioned, or ends.

        Plans of before are made anew: pyiceberg 0.12 tries no append again with other fields.
        """
        self._stale = None
        fields = [it.name for it in table.spec().fields]
        with table.update_spec() as update:
            if fields:
                update.remove_field(fields[0])
            else:
                update.add_field("city", IdentityTransform(), f"city_{self._next}")

    def _delete_by_position(self, _: Table) -> None:
        """Java's merge-on-read DELETE, which plans on the table of now."""
        assert self._lake.java is not None
        spark, catalog = self._lake.java
        gone = self._some()
        ids = ", ".join(map(str, gone))
        spark.sql(f"DELETE FROM {catalog}.{self._name} WHERE id IN ({ids})")
        self._rows = {i: email for i, email in self._rows.items() if i not in gone}

    def _delete_by_value(self, _: Table) -> None:
        """Java's equality delete of e-mails."""
        assert self._lake.java is not None
        spark, catalog = self._lake.java
        gone = {self._rows[i] for i in self._some() if i in self._rows}
        if gone:
            spark.delete_equal(f"{catalog}.{self._name}", self._email(self._fresh()), sorted(gone))
            self._has_values_deleted = True
            self._rows = {i: email for i, email in self._rows.items() if email not in gone}

    def _some(self) -> list[int]:
        low = self._chance.randrange(self._next)
        return list(range(low, low + self._chance.randint(1, 3)))

    def _fresh(self) -> Table:
        return self._lake.catalog.load_table(self._name)

    @staticmethod
    def _email(table: Table) -> str:
        return table.schema().find_field(_EMAIL_FIELD).name

    def _arrow(self, table: Table, rows: Rows) -> pa.Table:
        columns = {
            "id": pa.array(list(rows), pa.int64()),
            self._email(table): list(rows.values()),
            "city": [f"c{i % 2}" for i in rows],
        }
        schema = table.schema().as_arrow()
        return pa.table(
            {
                name: columns.get(name, pa.nulls(len(rows), schema.field(name).type))
                for name in schema.names
            }
        )


def _operation(snapshot: Any) -> str:
    return str(snapshot.summary.operation.value) if snapshot.summary else ""


def _any_of(ids: list[int]) -> str:
    return f"id in ({', '.join(map(str, ids))})"


def _rows(found: pa.Table) -> Rows:
    """The rows of a table; its column of e-mails has one of two names."""
    if not found.num_rows:
        return {}
    (email,) = {"email", "mail"} & set(found.column_names)
    pairs = [*zip(found["id"].to_pylist(), found[email].to_pylist(), strict=True)]
    assert len(pairs) == len(dict(pairs)), "a row is there twice"
    return dict(pairs)


@contextmanager
def _in_settings(**properties: str) -> Iterator[SqlCatalog]:
    """A catalog in SQLite that pyiceberg's settings call ``lake``."""
    names = {name.replace("-", "_").replace(".", "__").upper(): name for name in properties}
    variables = {f"PYICEBERG_CATALOG__LAKE__{key}": properties[it] for key, it in names.items()}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, variables))
        stack.enter_context(mock.patch("pyiceberg.catalog._ENV_CONFIG", Config()))
        catalog = SqlCatalog("lake", **properties)
        stack.callback(catalog.engine.dispose)
        catalog.create_namespace("db")
        yield catalog


def _files_below(table: Table) -> list[str]:
    return [path.name for path in _folder(table).rglob("*") if path.is_file()]


def _folder(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


@contextmanager
def _local(folder: Path) -> Iterator[Lake]:
    with _in_settings(uri=f"sqlite:///{folder}/c.db", warehouse=folder.as_uri()) as catalog:
        yield Lake(catalog=catalog, left=_files_below)


@contextmanager
def _with_java(folder: Path) -> Iterator[Lake]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        spark = stack.enter_context(IcebergSpark())
        catalog = hadoop_catalog.in_settings(folder, patch)
        name = spark.catalog(type="hadoop", warehouse=catalog.properties["warehouse"])
        yield Lake(catalog=catalog, left=_files_below, java=(spark, name))


@contextmanager
def _in_s3(folder: Path) -> Iterator[Lake]:
    with s3_server() as port:
        address = f"http://127.0.0.1:{port}"
        rights = {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": address,
        }
        with mock.patch.dict(os.environ, rights):
            bucket = Bucket(port)
            warehouse = f"s3://{bucket.name}/lake"
            settings = {"uri": f"sqlite:///{folder}/c.db", "warehouse": warehouse}
            with _in_settings(**settings, **_S3, **{"s3.endpoint": address}) as catalog:
                yield Lake(catalog=catalog, left=lambda table: _keys_below(bucket, table))


def _keys_below(bucket: Bucket, table: Table) -> list[str]:
    prefix = table.location().removeprefix(f"s3://{bucket.name}/") + "/"
    pages = bucket.client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket.name, Prefix=prefix
    )
    return [entry["Key"].rpartition("/")[2] for page in pages for entry in page["Contents"]]


_LAKES: Final = {"local": _local, "with Java": _with_java, "S3": _in_s3}


def run(effort: Effort) -> Outcome:
    """Play the histories of each kind, or of the kinds that begin with a word of the scenes."""
    wanted = _QUICK if effort.quick else _FULL
    kinds = [it for it in wanted if not effort.scenes or it.startswith(tuple(effort.scenes))]
    # pyiceberg logs each of its retries.
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)
    pieces = [
        (kind, range(effort.seed + first, effort.seed + min(first + _A_PIECE[kind], wanted[kind])))
        for kind in kinds
        for first in range(0, wanted[kind], _A_PIECE[kind])
    ]
    tally = in_pieces("iceberg_histories", pieces, _count, quick=effort.quick)
    told = tally.counted()
    played = " and ".join(f"{wanted[kind]:,} {kind}" for kind in kinds)
    return Outcome(
        tried=(
            f"random histories of Iceberg tables, {played}, of {_STEPS} steps and those of others "
            f"between our look at a table and our commit: {told}; no row is lost or there twice "
            "after a step, or at any snapshot in the end, and no new file stays that no snapshot "
            "names; judged by pyiceberg, and by Java if it deleted values"
        ),
        trials=tally.trials,
        failures=tally.failures,
    )


def _count(piece: tuple[str, range]) -> Tally:
    """Play some histories of a kind."""
    kind, seeds = piece
    done: Counter[str] = Counter()
    failures: list[str] = []
    folder = tempfile.TemporaryDirectory(dir=MEMORY, prefix="histories-")
    with folder as own, _LAKES[kind](Path(own)) as lake:
        for seed in seeds:
            failures += _played(lake, kind, seed, done)
    return Tally(trials=len(seeds), failures=tuple(failures), counts=done)


def _played(lake: Lake, kind: str, seed: int, done: Counter[str]) -> list[str]:
    """Play one history, and count its steps; what went wrong."""
    history = None
    try:
        with warnings.catch_warnings():
            # pyiceberg warns of a delete that finds no row.
            warnings.simplefilter("ignore")
            history = History(lake, seed)
            history.play(_STEPS)
    except Exception as error:
        return [f"history {seed}, {kind}: {type(error).__name__}: {error}"]
    finally:
        if history is not None:
            done.update(history.done)
            done["snapshots"] += len(history.snapshots)
            shutil.rmtree(_folder(lake.catalog.load_table(f"db.t{seed}")), ignore_errors=True)
    return []
