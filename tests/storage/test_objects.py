"""Object stores: the same verbs, against an S3 server on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from secure_bloom.errors import FileChangedError, FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.storage import append_tail, open_input, replace_tail
from secure_bloom.storage.objects import _Held
from testing.storage import KEEP, NEW, OLD, TAIL, Bucket, contents

KEY = "lake/ts=2024-01-01 00%3A00/part-0.parquet"
LARGE = 12 * 1024 * 1024  # pyarrow uploads parts of 10 MiB


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_an_object_is_read_like_a_file(bucket: Bucket, scheme: str) -> None:
    bucket.put(KEY)
    with open_input(bucket.uri(KEY, scheme)) as file:
        assert (file.path, file.name) == (bucket.uri(KEY, scheme), "part-0.parquet")
        assert file.size == len(OLD)
        assert file.read_at(100, 50) == OLD[100:150]
        assert file.read_at(len(OLD), 0) == b""
        with pytest.raises(FormatError, match=f"the file has {len(OLD)}"):
            file.read_at(len(OLD) - 1, 2)


def test_siblings_of_an_object(bucket: Bucket) -> None:
    bucket.put(KEY, "top.parquet", "_KEY_MATERIAL_FOR_top.json")
    bucket.put(KEY.replace("part-0.parquet", "_KEY_MATERIAL_FOR_part-0.json"), body=b"{}")
    with open_input(bucket.uri(KEY)) as file:
        assert file.read_sibling("_KEY_MATERIAL_FOR_part-0.json") == b"{}"
        assert file.read_sibling("none.json") is None
    with open_input(bucket.uri("top.parquet")) as file:
        assert file.read_sibling("_KEY_MATERIAL_FOR_top.json") == OLD


def test_what_is_no_object(bucket: Bucket) -> None:
    bucket.put(KEY)
    bucket.put("empty.parquet", body=b"")
    with pytest.raises(PolicyError, match="no such file"):
        open_input(bucket.uri("none.parquet"))
    with pytest.raises(FormatError, match="folder"):
        open_input(bucket.uri("lake"))
    with pytest.raises(FormatError, match="empty") as caught:
        open_input(bucket.uri("empty.parquet"))
    assert caught.value.path == bucket.uri("empty.parquet")


@pytest.mark.slow  # pyarrow tries again for some seconds
def test_a_server_that_is_not_there_is_an_error_with_the_path() -> None:
    uri = "s3://bucket/x.parquet?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1"
    with pytest.raises(PolicyError, match="NETWORK_CONNECTION") as caught:
        open_input(uri)
    assert caught.value.path == uri


def test_a_query_that_pyarrow_does_not_know(bucket: Bucket) -> None:
    with pytest.raises(PolicyError, match="no_such_option"):
        open_input(f"s3://{bucket.name}/x.parquet?no_such_option=1&region=us-east-1")


def test_an_object_is_replaced(bucket: Bucket) -> None:
    bucket.put(KEY)
    with open_input(bucket.uri(KEY)) as file:
        assert replace_tail(file, KEEP, TAIL) == len(NEW)
    assert bucket.objects() == {KEY: NEW}


def test_an_object_of_several_parts_is_replaced(bucket: Bucket) -> None:
    body = OLD * (LARGE // len(OLD) + 1)
    bucket.put(KEY, body=body)
    with open_input(bucket.uri(KEY)) as file:
        replace_tail(file, LARGE, TAIL)
    assert bucket.objects() == {KEY: body[:LARGE] + b"".join(TAIL)}


def test_output_goes_from_disk_to_store_and_back(bucket: Bucket, data_file: Path) -> None:
    with open_input(str(data_file)) as file:
        replace_tail(file, KEEP, TAIL, output=bucket.uri("out/x.parquet.gz"))
    assert bucket.objects() == {"out/x.parquet.gz": NEW}
    with open_input(bucket.uri("out/x.parquet.gz")) as file:
        replace_tail(file, 10, [b"!"], output=str(data_file.parent / "down/x.parquet"))
    assert contents(data_file.parent / "down") == {"x.parquet": NEW[:10] + b"!"}
    assert contents(data_file.parent) == {"part-0.parquet": OLD}


def test_an_object_changed_since_it_was_read_is_left_alone(bucket: Bucket) -> None:
    bucket.put(KEY)
    with open_input(bucket.uri(KEY)) as file:
        changed = OLD[::-1]  # the same size, within the same second: only the tag tells
        bucket.put(KEY, body=changed)
        with pytest.raises(FileChangedError):
            replace_tail(file, KEEP, TAIL)
        assert bucket.objects() == {KEY: changed}
        bucket.client.delete_object(Bucket=bucket.name, Key=KEY)
        with pytest.raises(FileChangedError, match="gone"):
            replace_tail(file, KEEP, TAIL)
    assert bucket.objects() == {}


def test_a_change_during_the_upload_is_noticed(bucket: Bucket) -> None:
    bucket.put(KEY)
    changed = OLD[::-1]

    class Slow(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            bucket.put(KEY, body=changed)
            return super().__iter__()

    with open_input(bucket.uri(KEY)) as file, pytest.raises(FileChangedError):
        replace_tail(file, KEEP, Slow(TAIL))
    assert bucket.objects() == {KEY: changed}


INTERRUPTED = """
import os, signal, sys, time
from secure_bloom.storage import objects, open_input, replace_tail
from secure_bloom.storage.inputs import InputFile
def interrupted(self, keep, tail):
    yield self.read_at(0, keep)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
    yield b"never"
    yield b"ever"
InputFile.chunks = interrupted
with open_input(sys.argv[1]) as file:
    replace_tail(file, 1000, [b"tail"])
"""


def test_ctrl_c_and_the_end_of_the_process_complete_nothing(
    bucket: Bucket, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    bucket.put(KEY)
    done = run(INTERRUPTED, bucket.uri(KEY))
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    assert bucket.objects() == {KEY: OLD}


def test_objects_are_not_appended_to(bucket: Bucket) -> None:
    bucket.put(KEY)
    with open_input(bucket.uri(KEY)) as file, pytest.raises(UnsupportedFeatureError) as caught:
        append_tail(file, TAIL)
    assert "replace" in str(caught.value.hint)
    assert bucket.objects() == {KEY: OLD}


def test_an_object_that_must_be_new_takes_no_other_s_place(bucket: Bucket) -> None:
    bucket.put("x")
    with open_input(bucket.uri("x")) as file:
        replace_tail(file, 0, [b"first"], output=bucket.uri("new"), must_be_new=True)
        with pytest.raises(FileChangedError, match="there already"):
            replace_tail(file, 0, [b"second"], output=bucket.uri("new"), must_be_new=True)
    assert bucket.objects()["new"] == b"first"


@pytest.mark.parametrize("changed", [False, True])
def test_after_a_pause_bytes_are_of_the_same_object(bucket: Bucket, changed: bool) -> None:
    large = OLD * 20
    bucket.put("x", body=large)
    with open_input(bucket.uri("x")) as file:
        file.read_at(0, 10)
        file.set_aside()
        if changed:
            bucket.put("x", body=large[::-1])
            with pytest.raises(FileChangedError):
                file.read_at(100, 10)
        else:
            assert file.read_at(100, 10) == large[100:110]
            assert file.read_at(200, 10) == large[200:210]


def test_pieces_that_meet_are_one() -> None:
    held = _Held()
    held.add(10, b"bbbbb")
    held.add(5, b"aaaaa")
    assert held.end_from(15) == 5
