"""The store fails: each request of a run once, and from then on, and what a run makes of it.

Requests go through a proxy that fails them, to both servers.  Whatever fails, the old object stands
there or the new one, and no upload is left open that could have been aborted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.errors import (
    AccessDeniedError,
    FileChangedError,
    PolicyError,
    SecureBloomError,
    UnfinishedWriteError,
    UnsupportedFeatureError,
)
from secure_bloom.storage import commit_files, open_input, replace_tail, s3, write_new
from secure_bloom.storage.commit_files import is_committed
from secure_bloom.storage.dispatch import create_file, remove_file
from secure_bloom.storage.object_writes import put_object
from testing.storage import Bucket
from testing.store_proxy import StoreProxy, store_proxy
from testing.waiting import eventually
from tests.rekeying.objects_at_once import assert_a_late_write_has_its_keys
from tests.storage.s3.conftest import KEY, LARGE, SIZES, SMALL, TAIL, new, open_uploads, replaced

#: The SDK would pause between attempts; how often it tries is its own setting.
TRIES = {"AWS_MAX_ATTEMPTS": "2", "AWS_RETRY_MODE": "standard"}


@pytest.fixture(scope="module")
def proxies(ports: dict[str, str]) -> Iterator[dict[str, StoreProxy]]:
    with store_proxy(ports["moto"]) as one, store_proxy(ports["ministack"]) as other:
        yield {"moto": one, "ministack": other}


@pytest.fixture
def few_tries(s3_rights: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TRIES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(s3, "_PAUSES", (0.01, 0.01))


@pytest.fixture(params=["moto", "ministack"])
def proxy(
    request: pytest.FixtureRequest, proxies: dict[str, StoreProxy], few_tries: None
) -> Iterator[StoreProxy]:
    found = proxies[request.param]
    found.tell(fail=None)
    found.counts()
    yield found
    found.tell(fail=None)


def fill(proxy: StoreProxy, old: bytes) -> tuple[Bucket, Any]:
    """A bucket with an object, and that opened for reading, behind a proxy that works."""
    bucket = Bucket(proxy.port)
    bucket.put(KEY, body=old)
    file = open_input(bucket.uri(KEY))
    # As adding does: what is put whole is in memory by then.
    file.read_ahead([(0, file.size)], to_replace=True)
    return bucket, file


def requests_of_a_write(proxy: StoreProxy, old: bytes) -> list[str]:
    _, file = fill(proxy, old)
    proxy.counts()
    replace_tail(file, len(old) - 100, TAIL)
    return [method for method, *_ in proxy.counts().log]


@SIZES
def test_only_what_is_new_is_uploaded(proxy: StoreProxy, old: bytes) -> None:
    _, file = fill(proxy, old)
    proxy.counts()
    replace_tail(file, len(old) - 100, TAIL)
    counts = proxy.counts()
    if old is SMALL:
        assert counts.bytes_up < len(old) + 200
        # Two are about access lists, the first of them once for a bucket.
        assert [method for method, *_ in counts.log] in (
            ["HEAD", "GET", "PUT"],
            ["HEAD", "GET", "GET", "PUT"],
        )
    else:
        # The list of parts goes up too.
        assert counts.bytes_up < 2000
        assert counts.bytes_down < 10_000
        assert counts.requests <= 8


#: Which server, how large an object, whether it fails from then on, and after the work was done.
#: `make test` tries each server in one size and half of the ways, so that each is tried on one.
RUNS = [
    pytest.param(
        server,
        old,
        from_then_on,
        after,
        marks=[] if is_quick and turn == (from_then_on is after) else [pytest.mark.slow],
        id=f"{'answer-lost' if after else 'not-done'}-{'from-then-on' if from_then_on else 'once'}"
        f"-{server}-{'large' if old is LARGE else 'small'}",
    )
    for server, old, is_quick, turn in (
        ("moto", LARGE, True, False),
        ("ministack", SMALL, True, True),
        ("moto", SMALL, False, False),
        ("ministack", LARGE, False, False),
    )
    for from_then_on in (False, True)
    for after in (False, True)
]


@pytest.mark.parametrize(("server", "old", "from_then_on", "after"), RUNS)
def test_a_request_that_fails_leaves_the_old_object_or_the_new_one(
    proxies: dict[str, StoreProxy],
    few_tries: None,
    server: str,
    old: bytes,
    from_then_on: bool,
    after: bool,
) -> None:
    proxy = proxies[server]
    for number in range(len(requests_of_a_write(proxy, old))):
        bucket, file = fill(proxy, old)
        # Only what concerns this object, and not that an upload is aborted: with the store away for
        # good nobody could.
        proxy.tell(
            fail={
                "number": number,
                "from_then_on": from_then_on,
                "after": after,
                "code": "InternalError",
                "status": 500,
                "only": bucket.name,
                "but": "DELETE",
            }
        )
        failed = None
        try:
            replace_tail(file, len(old) - 100, TAIL)
        except SecureBloomError as error:
            failed = error
        proxy.tell(fail=None)
        found = bucket.objects()[KEY]
        assert found in (old, new(old))
        if failed is None:
            assert found == new(old)
        elif not from_then_on:
            # Only an answer that was lost can make it so.
            assert after
        if not after:
            assert open_uploads(bucket) == []


@pytest.mark.parametrize(
    ("status", "code", "kind", "text"),
    [
        (503, "SlowDown", PolicyError, "too busy"),
        (500, "InternalError", PolicyError, "the store failed"),
        (403, "AccessDenied", AccessDeniedError, "denies access"),
        (400, "ExpiredToken", AccessDeniedError, "ExpiredToken"),
        (501, "NotImplemented", UnsupportedFeatureError, "conditional"),
        (409, "ConditionalRequestConflict", UnfinishedWriteError, "unknown whether"),
        (0, "", PolicyError, "cannot be reached"),
    ],
)
def test_why_a_write_failed_is_told(
    proxies: dict[str, StoreProxy],
    few_tries: None,
    status: int,
    code: str,
    kind: type[Exception],
    text: str,
) -> None:
    proxy = proxies["moto"]
    bucket, file = fill(proxy, SMALL)
    proxy.tell(fail={"from_then_on": True, "status": status, "code": code, "only": "PUT"})
    try:
        with pytest.raises(kind, match=text) as caught:
            replace_tail(file, len(SMALL) - 100, TAIL)
    finally:
        proxy.tell(fail=None)
    assert bucket.uri(KEY) in str(caught.value)
    assert bucket.objects() == {KEY: SMALL}


def test_an_error_in_an_answer_that_says_200_is_one(proxy: StoreProxy) -> None:
    bucket, file = fill(proxy, LARGE)
    proxy.tell(
        fail={
            "from_then_on": True,
            "status": 200,
            "code": "InternalError",
            "only": "uploadId",
            "but": "DELETE",
        }
    )
    with pytest.raises(PolicyError, match="the store failed"):
        replace_tail(file, len(LARGE) - 100, TAIL)
    proxy.tell(fail=None)
    assert bucket.objects() == {KEY: LARGE}
    assert open_uploads(bucket) == []


@pytest.mark.parametrize("code", ["AccessDenied", "NotImplemented"])
def test_where_the_store_does_not_copy_all_bytes_go_up(proxy: StoreProxy, code: str) -> None:
    bucket, file = fill(proxy, LARGE)
    proxy.counts()
    proxy.tell(
        fail={
            "from_then_on": True,
            "status": 403,
            "code": code,
            "only": "x-amz-copy-source",
        }
    )
    replace_tail(file, len(LARGE) - 100, TAIL)
    proxy.tell(fail=None)
    assert proxy.counts().bytes_up > len(LARGE) - 100
    assert bucket.objects() == {KEY: new(LARGE)}
    assert open_uploads(bucket) == []


def test_a_store_that_wants_parts_of_one_size_gets_all_bytes_in_such_parts(
    proxy: StoreProxy,
) -> None:
    """As Cloudflare R2 refuses the completion of parts of several sizes."""
    bucket, file = fill(proxy, LARGE)
    proxy.counts()
    completion = {"status": 400, "code": "InvalidPart", "only": "uploadId", "but": "partNumber"}
    proxy.tell(fail=completion)
    replace_tail(file, len(LARGE) - 100, TAIL)
    proxy.tell(fail=None)
    assert proxy.counts().bytes_up > len(LARGE) - 100
    assert bucket.objects() == {KEY: new(LARGE)}
    assert open_uploads(bucket) == []


@pytest.mark.parametrize("status", [500, 0], ids=["refused", "no-answer"])
def test_an_upload_that_cannot_be_aborted_says_why_the_write_failed(
    proxy: StoreProxy, status: int
) -> None:
    """What failed first is told, not the abort; the parts stay until a rule removes them."""
    bucket, file = fill(proxy, LARGE)
    proxy.tell(
        fail={
            "from_then_on": True,
            "status": status,
            "code": "InternalError",
            "only": "uploadId",
            "but": "x-amz-copy-source",
        }
    )
    with pytest.raises(PolicyError, match="the store failed" if status else "cannot be reached"):
        replace_tail(file, len(LARGE) - 100, TAIL)
    proxy.tell(fail=None)
    assert bucket.objects() == {KEY: LARGE}
    assert open_uploads(bucket) == [KEY]
    replaced(bucket)
    assert bucket.objects() == {KEY: new(LARGE)}


def test_a_commit_whose_answer_was_lost_is_ours(proxy: StoreProxy, tmp_path: Path) -> None:
    """The second attempt meets the object of the first one, which is no other writer's."""
    bucket, like = Bucket(proxy.port), tmp_path / "0.json"
    like.write_bytes(b"version 0")
    proxy.tell(fail={"after": True, "status": 500, "code": "InternalError", "only": "PUT"})
    create_file(bucket.uri("_delta_log/1.json"), b"version 1", like=str(like))
    proxy.tell(fail=None)
    assert bucket.objects() == {"_delta_log/1.json": b"version 1"}
    with pytest.raises(FileChangedError, match="there already"):
        create_file(bucket.uri("_delta_log/1.json"), b"version 1", like=str(like))


def test_an_object_replaced_while_it_is_read_is_noticed(bucket: Bucket) -> None:
    bucket.put(KEY, body=LARGE)
    with open_input(bucket.uri(KEY)) as file:
        file.read_at(0, 10)
        bucket.put(KEY, body=SMALL)
        with pytest.raises(FileChangedError, match="changed"):
            file.read_at(len(SMALL) + 10, 10)
    bucket.put(KEY, body=LARGE)
    with open_input(bucket.uri(KEY)) as file:
        end = file.read_at(len(LARGE) - 10, 10)
        file.set_aside()
        bucket.put(KEY, body=LARGE[::-1])
        assert file.read_at(len(LARGE) - 10, 10) == end
        with pytest.raises(FileChangedError, match="changed"):
            file.read_at(0, 10)


def test_many_writers_of_one_object_lose_no_update(bucket: Bucket) -> None:
    """All have read it before the first one writes; moto itself is not safe from threads."""
    bucket.put(KEY, body=b"start")
    waiting = [(open_input(bucket.uri(KEY)), f"+{number}".encode()) for number in range(4)]
    refused = 0
    while waiting:
        file, tail = waiting.pop(0)
        try:
            replace_tail(file, file.size, [tail])
        except FileChangedError:
            refused += 1
            waiting.append((open_input(bucket.uri(KEY)), tail))
    assert refused == 3 + 2 + 1
    (content,) = bucket.objects().values()
    assert sorted(content.decode().split("+")) == ["0", "1", "2", "3", "start"]


#: What the second request of a repeated one gets, after the first one has done its work.
REPEATED = [
    pytest.param(412, "PreconditionFailed", id="precondition"),
    pytest.param(409, "ConditionalRequestConflict", id="conflict"),
]


@SIZES
@pytest.mark.parametrize(("status", "code"), REPEATED)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_layer_below_repeats_the_write_and_meets_its_own_object(
    proxy: StoreProxy, old: bytes, status: int, code: str, is_new: bool
) -> None:
    bucket, file = fill(proxy, old)
    # The last request of a write: the only one that makes the object visible.
    only = "POST /" if old is LARGE else f"PUT /{bucket.name}"
    but = "uploads" if old is LARGE else None
    proxy.tell(fail={"status": status, "code": code, "after": True, "only": only, "but": but})
    if is_new:
        write_new(file, len(old) - 100, TAIL, bucket.uri("new.parquet"))
    else:
        replace_tail(file, len(old) - 100, TAIL)
    proxy.tell(fail=None)
    assert bucket.objects()["new.parquet" if is_new else KEY] == new(old)


@SIZES
@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "OperationAborted"])
def test_a_write_that_conflicts_with_its_own_first_request(
    proxy: StoreProxy, old: bytes, code: str
) -> None:
    """The first request is still under way when a layer below repeats it."""
    bucket, file = fill(proxy, old)
    only = "POST /" if old is LARGE else f"PUT /{bucket.name}"
    but = "uploads" if old is LARGE else None
    proxy.tell(fail={"status": 409, "code": code, "late": 0.1, "only": only, "but": but})
    replace_tail(file, len(old) - 100, TAIL)
    proxy.tell(fail=None)
    assert bucket.objects()[KEY] == new(old)


@pytest.mark.parametrize("what", ["delta", "paimon"])
def test_a_commit_that_appears_after_every_answer_was_a_conflict(
    proxy: StoreProxy, tmp_path: Path, what: str
) -> None:
    """What the commit names is there when it appears."""
    bucket = Bucket(proxy.port)
    if what == "delta":
        deltalake = pytest.importorskip("deltalake")
        deltalake.write_deltalake(tmp_path / "t", pa.table({"id": range(100)}))
        folder, commits = tmp_path / "t", "/_delta_log/"
    else:
        paimon_tables = pytest.importorskip("testing.paimon_tables")
        lake = paimon_tables.Warehouse(path=str(tmp_path))
        folder, commits = Path(lake.create("id bigint")), "/snapshot/snapshot-"
        lake.insert([(number,) for number in range(100)])
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(f"t/{path.relative_to(folder)}", body=path.read_bytes())
    proxy.tell(
        fail={
            "status": 409,
            "code": "ConditionalRequestConflict",
            "late": 0.3,
            "from_then_on": True,
            "only": f"PUT /{bucket.name}/t{commits}",
        }
    )

    def made() -> int:
        return sum(commits in key for key in bucket.objects())

    before = made()
    options = {"id": sb.paimon.IndexOptions(items=100, fpp=1e-6)}
    run = (
        partial(sb.add_bloom_filters, bucket.uri("t"), columns="id", jobs=1)
        if what == "delta"
        else partial(sb.paimon.build_index, bucket.uri("t"), options)
    )
    # On a slow machine the commit is there before the run has looked for it.
    with suppress(UnfinishedWriteError):
        run()
    assert eventually(lambda: made() > before)
    proxy.tell(fail=None)
    assert sorted(sb.read_table(bucket.uri("t"))["id"].to_pylist()) == list(range(100))


@pytest.mark.parametrize(("status", "code"), REPEATED)
def test_a_small_file_of_a_table_whose_write_is_repeated(
    proxy: StoreProxy, status: int, code: str
) -> None:
    bucket = Bucket(proxy.port)
    proxy.tell(fail={"status": status, "code": code, "after": True, "only": "PUT"})
    put_object(bucket.uri("m0.avro"), b"manifest", must_be_new=True)
    proxy.tell(fail=None)
    assert bucket.objects() == {"m0.avro": b"manifest"}
    with pytest.raises(FileChangedError):
        put_object(bucket.uri("m0.avro"), b"MANIFEST", must_be_new=True)


def test_an_object_of_another_writer_is_not_taken_for_our_own(proxy: StoreProxy) -> None:
    bucket, file = fill(proxy, SMALL)
    bucket.put("new.parquet", body=new(SMALL)[:-1])
    with pytest.raises(FileChangedError):
        replace_tail(
            file, len(SMALL) - 100, TAIL, output=bucket.uri("new.parquet"), must_be_new=True
        )
    assert bucket.objects()["new.parquet"] == new(SMALL)[:-1]


def test_a_removal_that_is_repeated_meets_nothing(proxy: StoreProxy) -> None:
    bucket = Bucket(proxy.port)
    bucket.put("material.json", body=b"{}")
    with open_input(bucket.uri("material.json")) as stored:
        proxy.tell(
            fail={
                "status": 404,
                "code": "NoSuchKey",
                "after": True,
                "only": "DELETE /",
                "but": ".secure",
            }
        )
        remove_file(bucket.uri("material.json"), only=stored)
    proxy.tell(fail=None)


def bucket_with_delta(proxy: StoreProxy, table: Path, *rows: int) -> Bucket:
    """Return a bucket with a Delta table ``t`` of a file for each number of rows."""
    deltalake = pytest.importorskip("deltalake")
    first = 0
    for count in rows:
        ids = pa.table({"id": range(first, first + count)})
        deltalake.write_deltalake(table, ids, mode="append")
        first += count
    bucket = Bucket(proxy.port)
    for path in table.rglob("*"):
        if path.is_file():
            bucket.put(f"t/{path.relative_to(table)}", body=path.read_bytes())
    return bucket


@pytest.mark.parametrize(("status", "code"), [*REPEATED, pytest.param(0, "", id="lost")])
@pytest.mark.parametrize("from_then_on", [False, True])
def test_a_commit_to_a_delta_log_that_meets_its_own_version(
    proxy: StoreProxy, tmp_path: Path, status: int, code: str, from_then_on: bool
) -> None:
    """The new files of the run stay: the version names them."""
    bucket = bucket_with_delta(proxy, tmp_path / "t", 100, 100)
    proxy.tell(
        fail={
            "status": status,
            "code": code,
            "after": True,
            "from_then_on": from_then_on,
            "only": f"PUT /{bucket.name}/t/_delta_log/",
        }
    )
    report = sb.add_bloom_filters(bucket.uri("t"), columns="id", jobs=1)
    proxy.tell(fail=None)
    assert [file.status for file in report.files] == ["added"] * 2
    assert [(it.version, len(it.files)) for it in report.commits] == [(2, 2)]
    assert sorted(sb.read_table(bucket.uri("t"))["id"].to_pylist()) == list(range(200))
    assert not sb.add_bloom_filters(bucket.uri("t"), columns="id").commits


def test_a_commit_that_may_still_arrive_keeps_the_files_of_the_run(
    proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_files, "_SETTLING_SECONDS", 0)
    bucket = bucket_with_delta(proxy, tmp_path / "t", 100)
    proxy.tell(
        fail={"status": 0, "from_then_on": True, "only": f"PUT /{bucket.name}/t/_delta_log/"}
    )
    with pytest.raises(UnfinishedWriteError, match="unknown whether the commit is in the log"):
        sb.add_bloom_filters(bucket.uri("t"), columns="id", jobs=1)
    proxy.tell(fail=None)
    assert len([name for name in bucket.objects() if ".sb-" in name]) == 1


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), REPEATED[0].values])
def test_a_write_that_is_refused_while_it_is_under_way_keeps_its_keys(
    proxy: StoreProxy, tmp_path: Path, status: int, code: str
) -> None:
    bucket = Bucket(proxy.port)
    failure = {"status": status, "code": code, "only": f"PUT /{bucket.name}/lake/x.parquet"}

    def put(key: str, content: bytes) -> None:
        bucket.put(key, body=content)

    assert_a_late_write_has_its_keys(bucket, put, proxy, tmp_path, failure)


REFUSALS = [
    (401, "Unauthorized"),
    (403, "AccessDenied"),
    (400, "ExpiredToken"),
    (404, "NoSuchBucket"),
    (501, "NotImplemented"),
    REPEATED[0].values,
]


@pytest.mark.parametrize(
    ("status", "code", "is_later"),
    [
        (400, "ExpiredToken", False),
        (404, "NoSuchBucket", False),
        (*REPEATED[0].values, False),
        (403, "AccessDenied", True),
        (501, "NotImplemented", True),
    ],
)
def test_a_commit_that_is_refused_while_it_is_under_way_keeps_the_files_of_the_run(
    proxy: StoreProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    is_later: bool,
) -> None:
    """Also of one that appears when nobody looks for it any more."""
    bucket = bucket_with_delta(proxy, tmp_path / "t", 100)
    if is_later:
        monkeypatch.setattr(commit_files, "_SETTLING_SECONDS", 0)
    proxy.tell(
        fail={
            "status": status,
            "code": code,
            "late": 0.7 if is_later else 0.3,
            "from_then_on": True,
            "only": f"PUT /{bucket.name}/t/_delta_log/",
        }
    )
    # Boto repeats nothing here, so the run ends before a commit that is later.
    with pytest.raises(UnfinishedWriteError) if is_later else nullcontext():
        report = sb.add_bloom_filters(bucket.uri("t"), columns="id", jobs=1)
        assert [file.status for file in report.files] == ["added"]
    proxy.tell(fail=None)
    assert eventually(lambda: any(".sb-" in path for path in sb.open_table(bucket.uri("t")).files))
    assert sorted(sb.read_table(bucket.uri("t"))["id"].to_pylist()) == list(range(100))


@pytest.mark.parametrize(("status", "code"), REFUSALS)
def test_a_commit_that_never_appears(
    proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    """A refusal that nothing in the log explains may be about our own first request."""
    bucket, like = Bucket(proxy.port), tmp_path / "0.json"
    like.write_bytes(b"version 0")
    monkeypatch.setattr(commit_files, "_SETTLING_SECONDS", 0.1)
    monkeypatch.setattr(commit_files, "_LOOK_SECONDS", 0.1)
    proxy.tell(fail={"status": status, "code": code, "from_then_on": True, "only": "PUT"})
    with pytest.raises(UnfinishedWriteError, match="unknown whether the commit is in the log"):
        is_committed(bucket.uri("_delta_log/1.json"), b"version 1", like=str(like), hint="look")
