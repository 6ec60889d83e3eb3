"""Random histories of Paimon tables: others write before, between and after our commits.

A history is a table and steps by a seed: pypaimon-rust inserts, deletes, overwrites, renames and
adds columns, and makes tags; we build indexes, and while we do, others write between our look at
the table and our commit.  In some histories the table has a primary key, and inserts replace rows;
there Paimon's writer in Java inserts, compacts, and expires snapshots, if it is installed.
Old snapshots expire by Paimon's own rule, which no judge here has: a file that a snapshot takes
away and does not add again is removed.

Paimon's reader must have the rows of the history after each step, for lookups by indexes too, and
at each tag in the end.  No commit of ours may show a reader of streams a row.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import secure_bloom as sb
from campaigns.disks import MEMORY
from campaigns.outcome import Effort, Outcome
from campaigns.pieces import Tally, in_pieces
from secure_bloom.lakes.avro_files import decode, decoding_room
from secure_bloom.paimon.build import BuildOptions, build_table
from testing.interleaving import Beside
from testing.paimon_java import JARS, JavaWriter, paimon_java
from testing.paimon_tables import Warehouse, latest

#: id -> name: what a table holds.
Rows = dict[int, str]
_FULL: Final = {"append": 350, "primary key": 150}
_QUICK: Final = {"append": 2, "primary key": 1}
#: Histories of a piece.
_A_PIECE: Final = 25
_STEPS: Final = 6
_OPTIONS: Final = sb.paimon.IndexOptions(fpp=0.001)


class PaimonHistory:
    """One table, and what it must hold."""

    def __init__(self, lake: Warehouse, kind: str, seed: int, java: JavaWriter | None) -> None:
        self.random = random.Random(f"{kind} {seed}")
        self.lake = lake
        self.name = f"t{seed}"
        self.rows: Rows = {}
        self.column = "name"
        self.columns = 2
        self.tags: dict[str, Rows] = {}
        self.done: Counter[str] = Counter()
        self.has_key = kind == "primary key"
        # It cannot read the files with keys that pypaimon-rust writes, so it writes all of them.
        self.java = java
        threshold = self.random.choice(["0 b", "500 b", "10 kb"])
        options = {"file_index__in_manifest_threshold": threshold}
        keyed = ", primary key (part, id)" if self.has_key else ""
        options |= {"bucket": "2"} if self.has_key else {"row_tracking__enabled": "true"}
        self.folder = lake.create(
            f"id bigint, name string, part string{keyed}",
            name=self.name,
            partitioned=self.random.choice(["", "part"]) if not self.has_key else "part",
            **options,
        )

    def play(self, steps: int) -> None:
        """Do so many steps, and look at the table after each."""
        self.insert()
        for _ in range(steps):
            self.random.choice([self.build, self.build, self.other])()
            self.check()
        for tag, rows in self.tags.items():
            self._same(self.lake.sql(f"select * from {self.name} version as of '{tag}'"), rows)

    def other(self) -> None:
        """Do what another writer may do."""
        steps = [self.insert, self.insert, self.tag, self.add_column, self.rename, self.expire]
        if self.java is not None:
            steps += [self.compact, self.compact]
        if not self.has_key:
            steps += [self.delete, self.delete, self.overwrite]
        self.random.choice(steps)()

    def insert(self) -> None:
        """Insert a few rows. In a table with a key, some replace others."""
        new = {self.random.randrange(200): f"n{self.random.randrange(20)}" for _ in range(3)}
        if not self.has_key:
            new = {number: name for number, name in new.items() if number not in self.rows}
        if not new:
            return
        nulls = ", null" * (self.columns - 2)
        values = ", ".join(f"({n}, '{name}', 'p{n % 3}'{nulls})" for n, name in new.items())
        if self.java is None:
            self._sql("insert", f"insert into {self.name} values {values}")
        else:
            self._insert_by_java(self.java, new)
        self.rows |= new

    def _insert_by_java(self, java: JavaWriter, new: Rows) -> None:
        more = [(f"c{number}", pa.int32()) for number in range(2, self.columns)]
        texts = [(name, pa.string()) for name in (self.column, "part")]
        schema = pa.schema([("id", pa.int64()), *texts, *more])
        rows = [{"id": n, self.column: name, "part": f"p{n % 3}"} for n, name in new.items()]
        java.insert(self.lake.path, rows, schema, self.name)
        self.done["insert by Java"] += 1

    def compact(self) -> None:
        """Compact all buckets by Paimon's writer in Java: each row has one version then."""
        if self.java is not None:
            self.java.compact(self.lake.path, self.name, buckets=2)
            self.done["compaction"] += 1

    def delete(self) -> None:
        """Delete one row: its data file is written anew."""
        if self.rows:
            number = self.random.choice(sorted(self.rows))
            self._sql("delete", f"delete from {self.name} where id = {number}")
            del self.rows[number]

    def overwrite(self) -> None:
        """Overwrite the table, or a partition of it, by one row."""
        number = self.random.randrange(200, 300)
        nulls = ", null" * (self.columns - 2)
        partition = f"p{number % 3}"
        is_partitioned = "part=" in "".join(map(str, Path(self.folder).iterdir()))
        self._sql(
            "overwrite",
            f"insert overwrite {self.name} values ({number}, 'over', '{partition}'{nulls})",
        )
        kept = {n: x for n, x in self.rows.items() if is_partitioned and f"p{n % 3}" != partition}
        # Rows of an overwrite have the partition of their number, as all have.
        self.rows = kept | {number: "over"}

    def add_column(self) -> None:
        """Add a column, which older files lack."""
        self._sql("add column", f"alter table {self.name} add column c{self.columns} int")
        self.columns += 1

    def rename(self) -> None:
        """Rename the column of names."""
        new = f"name{self.random.randrange(1000)}"
        if new != self.column:
            self._sql("rename", f"alter table {self.name} rename column {self.column} to {new}")
            self.column = new

    def tag(self) -> None:
        """Make a tag, which keeps its rows."""
        tag = f"tag{len(self.tags)}"
        self._sql("tag", f"call sys.create_tag(table => 'default.{self.name}', tag => '{tag}')")
        self.tags[tag] = dict(self.rows)

    def expire(self) -> None:
        """Remove old snapshots, and the files that they take away, by Paimon's rule."""
        if self.java is not None:
            self.java.expire(self.lake.path, self.name)
            self.done["expire by Java"] += 1
            return
        self.done["expire"] += 1
        expire(self.folder)

    def build(self) -> None:
        """Build indexes, while others write now and then between our look and our commit."""
        columns = dict.fromkeys(
            self.random.sample(["id", self.column], self.random.choice([1, 2])), _OPTIONS
        )
        between = Beside([self._between] if self.random.random() < 0.5 else [])
        asked = BuildOptions(commit_every=self.random.choice([None, 1, 2]))
        report = build_table(self.folder, columns, asked, between)
        self.done["build"] += 1
        self.done["commits"] += len(report.commits)
        for file in report.failed:
            raise AssertionError(f"a file failed: {file.error}")

    def _between(self) -> None:
        self.other()
        self.done["between"] += 1

    def check(self) -> None:
        """Compare the table with the history: all rows, and lookups of some ids and names."""
        self._same(self.lake.sql(f"select * from {self.name}"), self.rows)
        for number in (self.random.randrange(300), self.random.choice([*self.rows, 0])):
            wanted = {number: self.rows[number]} if number in self.rows else {}
            self._same(self.lake.sql(f"select * from {self.name} where id = {number}"), wanted)
        name = self.random.choice([*self.rows.values(), "none"])
        found = self.lake.sql(f"select * from {self.name} where {self.column} = '{name}'")
        self._same(found, {n: x for n, x in self.rows.items() if x == name})
        try:
            read = sb.read_table(self.folder, where=f"{self.column} = '{name}'").to_pylist()
        except sb.UnsupportedFeatureError:
            # Its files are not compacted.
            if not self.has_key:
                raise
            return
        self.done["read"] += 1
        self._same(read, {n: x for n, x in self.rows.items() if x == name})

    def _same(self, found: list[dict[str, Any]], wanted: Rows) -> None:
        seen = sorted((row["id"], next(v for k, v in row.items() if "name" in k)) for row in found)
        if seen != sorted(wanted.items()):
            raise AssertionError(f"{len(seen)} rows, wanted {len(wanted)}, or other rows")

    def _sql(self, step: str, statement: str) -> None:
        self.lake.sql(statement)
        self.done[step] += 1


def expire(folder: str) -> None:
    """Remove all snapshots but the last, and data files that only they need."""
    snapshots = sorted(
        Path(folder, "snapshot").glob("snapshot-*"), key=lambda it: int(it.name.split("-")[1])
    )
    tagged = {
        name
        for tag in Path(folder, "tag").glob("tag-*")
        for name in _live(folder, json.loads(tag.read_text()))
    }
    # A snapshot takes away what the one before it needed.
    for old, following in itertools.pairwise(snapshots):
        gone: dict[str, None] = {}
        document = json.loads(following.read_text())
        for record in _records(folder, document["deltaManifestList"]):
            for entry in _records(folder, record["_FILE_NAME"]):
                name = entry["_FILE"]["_FILE_NAME"]
                if entry["_KIND"] == 0:
                    gone.pop(name, None)
                else:
                    gone[name] = None
        for name in gone.keys() - tagged:
            for path in Path(folder).rglob(f"{name}*"):
                path.unlink()
        old.unlink()


def _live(folder: str, document: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for name in ("baseManifestList", "deltaManifestList"):
        for record in _records(folder, document[name]):
            found |= {e["_FILE"]["_FILE_NAME"] for e in _records(folder, record["_FILE_NAME"])}
    return found


def _records(folder: str, name: str) -> Sequence[dict[str, Any]]:
    return decode(Path(folder, "manifest", name).read_bytes(), decoding_room()).records


def run(effort: Effort) -> Outcome:
    """Play the histories of each kind, or of the kinds that begin with a word of the scenes."""
    wanted = _QUICK if effort.quick else _FULL
    kinds = [it for it in wanted if not effort.scenes or it.startswith(tuple(effort.scenes))]
    pieces = [
        (kind, range(effort.seed + first, effort.seed + min(first + _A_PIECE, wanted[kind])))
        for kind in kinds
        for first in range(0, wanted[kind], _A_PIECE)
    ]
    tally = in_pieces("paimon_histories", pieces, _count, quick=effort.quick)
    told = tally.counted()
    played = " and ".join(f"{wanted[kind]:,} {kind}" for kind in kinds)
    return Outcome(
        tried=(
            f"random histories of Paimon tables, {played}, of {_STEPS} steps and those of others "
            f"between our look at a table and our commit: {told}; all rows, and lookups by "
            "indexes, after each step, and all rows at each tag; judged by pypaimon-rust"
        ),
        trials=tally.trials,
        failures=tally.failures,
    )


def _count(piece: tuple[str, range]) -> Tally:
    """Play some histories of a kind."""
    kind, seeds = piece
    done: Counter[str] = Counter()
    failures: list[str] = []
    with (
        tempfile.TemporaryDirectory(dir=MEMORY, prefix="histories-") as folder,
        _java(kind) as java,
    ):
        lake = Warehouse(path=f"{folder}/lake")
        for seed in seeds:
            failures += _played(lake, kind, seed, done, java)
    return Tally(trials=len(seeds), failures=tuple(failures), counts=done)


def _java(kind: str) -> AbstractContextManager[JavaWriter | None]:
    return paimon_java() if kind == "primary key" and JARS.is_dir() else nullcontext()


def _played(
    lake: Warehouse, kind: str, seed: int, done: Counter[str], java: JavaWriter | None
) -> list[str]:
    """Play one history, and count its steps; what went wrong."""
    history = None
    try:
        history = PaimonHistory(lake, kind, seed, java)
        history.play(_STEPS)
    except Exception as error:
        return [f"history {seed}, {kind}: {type(error).__name__}: {error}"]
    finally:
        if history is not None:
            done.update(history.done)
            done["snapshots"] += int(latest(history.folder)["id"])
            shutil.rmtree(history.folder, ignore_errors=True)
    return []
