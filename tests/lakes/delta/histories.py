"""Random histories of a Delta table: two writers by deltalake, us between their steps, a reader.

We add filters and sign files anew: footers are signed and columns in clear, because deltalake opens
no encrypted column, and is to go on writing.

The others write where it hurts: between our look at the table and our commit.  A writer may also
have planned before that.  What a writer was told it had done must be there, and nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

import secure_bloom as sb
from secure_bloom.calling.options import FooterMode
from secure_bloom.storage import commit_files
from secure_bloom.storage.dispatch import create_file
from testing.delta_tables import deltalake
from testing.storage import Bucket
from testing.tables import KEYRING

#: id -> email: what the table holds.
Rows = dict[int, str]
_SIGNED = sb.KeyPolicy(footer_key="k_footer", footer_mode=FooterMode.SIGNED)
_MOVES = ({"k_footer": "k_pii"}, {"k_pii": "k_footer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A table's folder as we call it, and as deltalake does."""

    ours: str
    theirs: str
    options: Mapping[str, str] = field(default_factory=dict)
    _open: list[Any] = field(default_factory=list, repr=False)

    def latest(self) -> int:
        """The latest version: one open table follows the log, which costs less than a new one."""
        if not self._open:
            self._open.append(self.open())
        self._open[0].update_incremental()
        return int(self._open[0].version())

    def open(self, version: int | None = None) -> Any:
        return deltalake.DeltaTable(
            self.theirs, version=version, storage_options=dict(self.options)
        )

    def rows(self, version: int | None = None) -> Rows:
        builder = deltalake.QueryBuilder().register("t", self.open(version))
        found = pa.table(builder.execute("SELECT id, email FROM t").read_all())
        rows = list(zip(*(found.column(name).to_pylist() for name in ("id", "email")), strict=True))
        assert len(rows) == len(dict(rows)), "a row is there twice"
        return dict(rows)


def local(folder: Path) -> Place:
    return Place(ours=str(folder), theirs=str(folder))


def remote(bucket: Bucket, port: str, name: str) -> Place:
    """A table in a bucket of an S3 server."""
    options = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }
    return Place(ours=bucket.uri(name), theirs=f"s3://{bucket.name}/{name}", options=options)


class History:
    """One table and what was done to it."""

    def __init__(self, place: Place, seed: int) -> None:
        self._place = place
        self._chance = random.Random(seed)
        self._next = 0
        #: The table that the reader must find at each version.
        self.versions: list[Rows] = []
        self._rows: Rows = {}
        self._stale: list[Any] = [None, None]
        self.lost_races = 0
        self._append(None)

    def play(self, steps: int) -> None:
        """So many steps, each of a writer or of us, and the reader's look."""
        for _ in range(steps):
            if self._chance.random() < 0.5:
                self._write()
            else:
                self._chance.choice([self._add, self._add, self._reencrypt, self._rotate])()
            assert self._place.rows() == self._rows
        # Time travel: no step has changed what was there before.
        for version, rows in enumerate(self.versions):
            assert self._place.rows(version) == rows, f"version {version}"

    def _add(self) -> None:
        """We add filters, and others write before our commit, and while it is tried."""
        with self._others_before_the_commit():
            report = sb.add_bloom_filters(
                self._place.ours,
                columns=self._chance.choice(["email", "id", ["id", "email"]]),
                keys=KEYRING,
                replace_filters=self._chance.random() < 0.3,
                commit_every=self._chance.choice([None, 1, 2]),
                jobs=1,
                progress=self._others_after_the_work(),
            )
        assert not report.failed, report.failed
        self._note()

    def _reencrypt(self) -> None:
        """We sign all files with new keys, or those that are not signed."""
        with self._others_before_the_commit():
            report = sb.reencrypt(
                self._place.ours,
                policy=_SIGNED,
                keys=KEYRING,
                new_data_keys=self._chance.random() < 0.5,
                commit_every=self._chance.choice([None, 2]),
                jobs=1,
                progress=self._others_after_the_work(),
            )
        assert not report.failed, report.failed
        self._note()

    def _rotate(self) -> None:
        """We bring signed files under another master key; those that others wrote have none."""
        with self._others_before_the_commit():
            report = sb.rotate_keys(
                self._place.ours,
                policy=_SIGNED,
                keys=KEYRING,
                moves=self._chance.choice(_MOVES),
                jobs=1,
                progress=self._others_after_the_work(),
            )
        assert all("not encrypted" in str(file.error) for file in report.failed), report.failed
        self._note()

    def _others_after_the_work(self) -> Callable[[int, int], None]:
        inside = self._chance.random() < 0.6

        def progress(done: int, total: int) -> None:
            if inside and done == total:
                self._write()

        return progress

    @contextmanager
    def _others_before_the_commit(self) -> Iterator[None]:
        def create(path: str, content: bytes, *, like: str) -> None:
            if self._chance.random() < 0.3:
                self._write()
            create_file(path, content, like=like)

        with mock.patch.object(commit_files, "create_file", create):
            yield

    def _write(self) -> None:
        """One of the two writers does something, perhaps as it had planned before."""
        self._note()
        writer = self._chance.randrange(2)
        table = self._stale[writer] or self._place.open()
        # What it plans next starts from now.
        is_planned = self._chance.random() < 0.3
        self._stale[writer] = self._place.open() if is_planned else None
        steps = [self._append, self._delete, self._update, self._merge, self._optimize]
        step = self._chance.choice(steps)
        before = dict(self._rows)
        try:
            step(table)
        except deltalake.exceptions.DeltaError:
            # It was told that it lost: then nothing of its step may be there.
            self._rows = before
            self.lost_races += 1
            self._stale[writer] = None
        self._note()

    def _note(self) -> None:
        """Each version since the last note holds the rows of now."""
        last = self._place.latest()
        while len(self.versions) <= last:
            self.versions.append(dict(self._rows))

    def _append(self, table: Any) -> None:
        ids = list(range(self._next, self._next + self._chance.randint(1, 4)))
        self._next = ids[-1] + 1
        rows = pa.table({"id": pa.array(ids, pa.int64()), "email": [f"u{i}@x" for i in ids]})
        target = self._place.theirs if table is None else table
        options = {"storage_options": dict(self._place.options)} if table is None else {}
        deltalake.write_deltalake(target, rows, mode="append", **options)
        self._rows |= {i: f"u{i}@x" for i in ids}
        self._note()

    def _delete(self, table: Any) -> None:
        low, high = self._range()
        known = self.versions[table.version()]
        table.delete(f"id >= {low} AND id < {high}")
        # What came after the table that it had looked at stays.
        gone = known.keys() & range(low, high)
        self._rows = {i: email for i, email in self._rows.items() if i not in gone}

    def _update(self, table: Any) -> None:
        low, high = self._range()
        known = self.versions[table.version()]
        email = f"n{self._chance.random()}@x"
        table.update({"email": f"'{email}'"}, predicate=f"id >= {low} AND id < {high}")
        changed = known.keys() & range(low, high)
        self._rows = {i: email if i in changed else old for i, old in self._rows.items()}

    def _merge(self, table: Any) -> None:
        """Some rows that it knows get another e-mail, and a new one comes."""
        low, high = self._range()
        known = self.versions[table.version()].keys() & range(low, high)
        fresh, self._next = self._next, self._next + 1
        email = f"m{self._chance.random()}@x"
        ids = [*sorted(known), fresh]
        rows = pa.table({"id": pa.array(ids, pa.int64()), "email": [email] * len(ids)})
        merger = table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        # Of rows that others deleted meanwhile it would have been told.
        self._rows |= dict.fromkeys(ids, email)

    def _optimize(self, _table: Any) -> None:
        # Never as planned before: deltalake does not notice what others took out meanwhile, its own
        # OPTIMIZE neither (see test_histories).
        self._place.open().optimize.compact()

    def _range(self) -> tuple[int, int]:
        low = self._chance.randrange(self._next + 1)
        return low, low + self._chance.randint(1, 3)


def play(make: Callable[[int], Place], seeds: range, steps: int = 6) -> tuple[int, int]:
    """Many histories; how many versions they made, and how many races writers lost."""
    versions = races = 0
    for seed in seeds:
        history = History(make(seed), seed)
        try:
            history.play(steps)
        except Exception as error:
            raise AssertionError(f"history {seed}: {error}") from error
        versions += len(history.versions)
        races += history.lost_races
    return versions, races
