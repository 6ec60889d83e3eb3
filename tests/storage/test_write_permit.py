"""A task writes as long as its run lasts and its driver lives, and not a byte after that."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import AccessDeniedError, DriverLostError, RunEnded
from secure_bloom.hudi import add_record_key_filter
from secure_bloom.storage import object_writes, write_permit
from secure_bloom.storage import offered_permit as offering
from secure_bloom.storage.dispatch import create_file, remove_file
from secure_bloom.storage.offered_permit import offered_permit
from secure_bloom.storage.write_permit import may_write, written_under
from testing.storage import Bucket
from testing.tables import customers
from tests.rekeying.lake import KEYS, policy, write_lake


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def under(folder: Path, master_key: str = "k_pii", encryption: str = "") -> Path:
    path = folder.parent.with_name(f"{folder.parent.name}-{master_key}.toml")
    path.write_text(policy(columns={"email": master_key, "s": "k_pii"}, encryption=encryption))
    return path


OUTSIDE = 'key_material = "external"'


def encrypted(folder: Path, encryption: str = "") -> None:
    report = sb.reencrypt(folder, policy=under(folder, encryption=encryption), keys=KEYS)
    assert not report.failed


def torn(folder: Path) -> None:
    """A file as a killed run with in_place leaves it."""
    sb.add_bloom_filters(folder, columns=["day"], in_place=True)
    for path in folder.glob("*.parquet"):
        os.truncate(path, path.stat().st_size - 1)


def with_leftover(folder: Path) -> None:
    sb.add_bloom_filters(folder, columns=["day"])
    for path in [*folder.glob("*.parquet")]:
        path.with_name(f".{path.name}.secure-bloom").write_bytes(b"of a killed writer")


def hudi_file(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        path.unlink()
    keys = pa.table({"_hoodie_record_key": [f"k{n}" for n in range(100)]})
    pq.write_table(keys, folder / "base.parquet")


def key_material(folder: Path) -> None:
    encrypted(folder, OUTSIDE)


Verb = Callable[[Path], object]
VERBS: dict[str, tuple[Verb | None, Verb]] = {
    "add": (None, lambda folder: sb.add_bloom_filters(folder, columns=["day"], jobs=1)),
    "add, in place": (
        None,
        lambda folder: sb.add_bloom_filters(folder, columns=["day"], in_place=True, jobs=1),
    ),
    "add to another folder": (
        None,
        lambda folder: sb.add_bloom_filters(
            folder, columns=["day"], output=folder.parent / "new", jobs=1
        ),
    ),
    "add after a torn append": (
        torn,
        lambda folder: sb.add_bloom_filters(folder, columns=["day"], in_place=True, jobs=1),
    ),
    "add where nothing is to do": (
        with_leftover,
        lambda folder: sb.add_bloom_filters(folder, columns=["day"], jobs=1),
    ),
    "reencrypt": (
        None,
        lambda folder: sb.reencrypt(folder, policy=under(folder), keys=KEYS, jobs=1),
    ),
    "reencrypt, keys outside": (
        None,
        lambda folder: sb.reencrypt(
            folder, policy=under(folder, encryption=OUTSIDE), keys=KEYS, jobs=1
        ),
    ),
    "rotate": (
        encrypted,
        lambda folder: sb.rotate_keys(folder, policy=under(folder, "k_new"), keys=KEYS, jobs=1),
    ),
    "rotate, keys outside": (
        key_material,
        lambda folder: sb.rotate_keys(
            folder, policy=under(folder, "k_new", OUTSIDE), keys=KEYS, jobs=1
        ),
    ),
    "decrypt": (
        encrypted,
        lambda folder: sb.decrypt(folder, output=folder.parent / "clear", keys=KEYS, jobs=1),
    ),
    "paimon build": (None, lambda folder: sb.paimon.build_indexes(folder, ["day"], jobs=1)),
    "hudi": (hudi_file, lambda folder: add_record_key_filter(folder)),
    "a commit": (
        None,
        lambda folder: create_file(
            str(folder / "0.json"), b"{}", like=str(folder / "2.0-zstd.parquet")
        ),
    ),
    "a removal": (None, lambda folder: remove_file(str(folder / "2.0-zstd.parquet"))),
}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_lake(tmp_path / "lake")
    return tmp_path / "lake"


@pytest.mark.parametrize("verb", VERBS)
def test_after_the_run_nothing_is_written(lake: Path, verb: str) -> None:
    prepare, write = VERBS[verb]
    if prepare is not None:
        prepare(lake)
    before = content(lake.parent)
    folders = {path for path in lake.parent.rglob("*") if path.is_dir()}
    with offered_permit(str(lake)) as permit:
        pass
    with written_under(permit), pytest.raises(RunEnded):
        write(lake)
    assert content(lake.parent) == before
    assert {path for path in lake.parent.rglob("*") if path.is_dir()} == folders


@pytest.mark.parametrize("verb", VERBS)
def test_during_the_run_everything_is_written(lake: Path, verb: str) -> None:
    prepare, write = VERBS[verb]
    if prepare is not None:
        prepare(lake)
    before = content(lake.parent)
    with offered_permit(str(lake)) as permit, written_under(permit):
        write(lake)
        names = [path.name for path in lake.iterdir() if path.name.startswith(".call-")]
        assert [Path(permit.path).name] == names
    assert content(lake.parent) != before
    assert not [path for path in lake.iterdir() if path.name.startswith(".call-")]


def test_a_task_that_was_stopped_before_it_published_leaves_no_change(lake: Path) -> None:
    """Its run ended between the work on a file and the rename."""
    before = content(lake)
    ended, reached = threading.Event(), threading.Event()
    source = lake / "2.0-zstd.parquet"

    def stopped() -> None:
        from secure_bloom.storage import open_input, replacement

        with (
            written_under(permit),
            open_input(str(source)) as file,
            replacement(file, file.size, [b"more"]) as put,
        ):
            reached.set()
            ended.wait(10)
            with pytest.raises(RunEnded):
                put()
            done.append(True)

    done: list[bool] = []
    with offered_permit(str(lake)) as permit:
        thread = threading.Thread(target=stopped)
        thread.start()
        assert reached.wait(10)
    ended.set()
    thread.join()
    assert done
    assert content(lake) == before


def test_a_run_ends_only_when_no_task_is_publishing(lake: Path) -> None:
    seen: list[str] = []
    publishing, go_on = threading.Event(), threading.Event()

    def publish() -> None:
        with written_under(permit), may_write():
            publishing.set()
            go_on.wait(60)
            seen.append("published")

    def end() -> None:
        time.sleep(0.3)
        seen.append("told to go on")
        go_on.set()

    with offered_permit(str(lake)) as permit:
        task, ending = threading.Thread(target=publish), threading.Thread(target=end)
        task.start()
        assert publishing.wait(60)
        ending.start()
    seen.append("ended")
    task.join()
    ending.join()
    assert seen == ["told to go on", "published", "ended"]


@contextmanager
def times(monkeypatch: pytest.MonkeyPatch, *, lease: float, renewed: float) -> Iterator[None]:
    with monkeypatch.context() as shorter:
        shorter.setattr(write_permit, "LEASE", lease)
        shorter.setattr(offering, "_RENEWED", renewed)
        yield


def test_nothing_is_written_when_the_driver_is_dead(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed driver removes no permit, and renews none."""
    before = content(lake)
    with (
        times(monkeypatch, lease=0.4, renewed=60.0),
        offered_permit(str(lake)) as permit,
        written_under(permit),
    ):
        time.sleep(0.5)
        report = sb.add_bloom_filters(lake, columns=["day"], jobs=1)
        assert {file.status for file in report.files} == {"failed"}
        assert "has not renewed its permit" in str(report.files[0].error)
    assert content(lake) == before


def test_a_permit_that_is_renewed_is_good_after_a_long_pause(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        times(monkeypatch, lease=1.2, renewed=0.05),
        offered_permit(str(lake)) as permit,
        written_under(permit),
    ):
        for _ in range(3):
            time.sleep(0.5)
            with may_write():
                pass


def test_a_permit_that_cannot_be_read_lets_nothing_be_written(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with offered_permit(str(lake)) as permit, written_under(permit):
        kept = Path(permit.path)
        kept.rename(kept.with_name("moved"))
        kept.symlink_to(kept.with_name("moved"))  # a link is not followed
        with pytest.raises(DriverLostError, match="cannot be read"), may_write():
            pass
        kept.unlink()
        kept.with_name("moved").rename(kept)


def test_permits_of_killed_drivers_are_removed_by_a_later_run(lake: Path) -> None:
    old, fresh = lake / ".call-0123456789abcdef.secure-bloom", lake / ".call-1.secure-bloom"
    for path in (old, fresh):
        path.write_bytes(b"1")
    os.utime(old, (time.time() - 7200,) * 2)
    with offered_permit(str(lake)):
        pass
    assert not old.exists()
    assert fresh.exists()


def put_tables(bucket: Bucket) -> str:
    bucket.put("lake/a.parquet", body=pq_bytes())
    return bucket.uri("lake")


def pq_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(customers(100), sink)
    return sink.getvalue().to_pybytes()


def test_objects_are_written_during_the_run_and_not_after_it(bucket: Bucket) -> None:
    uri = put_tables(bucket)
    with offered_permit(uri) as permit, written_under(permit):
        sb.add_bloom_filters(uri, columns=["id"], jobs=1)
    before = bucket.objects()
    assert set(before) == {"lake/a.parquet"}
    with written_under(permit), pytest.raises(RunEnded):
        sb.add_bloom_filters(uri, columns=["email"], jobs=1)
    with written_under(permit), pytest.raises(RunEnded):
        sb.add_bloom_filters(uri, columns=["email"], output=bucket.uri("new"), jobs=1)
    with written_under(permit), pytest.raises(RunEnded):
        remove_file(bucket.uri("lake/a.parquet"))
    assert bucket.objects() == before


def test_a_permit_stays_withdrawn_although_ctrl_c_is_pressed_twice(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal that is under way meanwhile does not bring it back."""
    renewing, put = threading.Event(), object_writes.put_object

    def slow(path: str, content: bytes, *, must_be_new: bool) -> None:
        if threading.current_thread() is not threading.main_thread() and not renewing.is_set():
            renewing.set()
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        put(path, content, must_be_new=must_be_new)

    monkeypatch.setattr(object_writes, "put_object", slow)
    monkeypatch.setattr(offering, "_RENEWED", 0.05)

    def interrupted() -> None:
        with offered_permit(put_tables(bucket)) as permit:
            offered.append(permit)
            assert renewing.wait(60)
            raise KeyboardInterrupt

    offered: list[write_permit.Permit] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    time.sleep(0.7)
    assert set(bucket.objects()) == {"lake/a.parquet"}
    with written_under(offered[0]), pytest.raises(RunEnded), may_write():
        pass


def test_a_permit_that_may_not_be_removed_is_overwritten(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: str) -> bool:
        raise AccessDeniedError("may not be removed", path=path)

    uri = put_tables(bucket)
    with offered_permit(uri) as permit:
        monkeypatch.setattr(object_writes, "remove_object", denied)
    with written_under(permit), pytest.raises(RunEnded), may_write():
        pass
