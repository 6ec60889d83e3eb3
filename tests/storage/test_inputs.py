"""Reading a local file: bounds, siblings, identity, and what is no file at all."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secure_bloom.errors import FileChangedError, FormatError, PolicyError
from secure_bloom.storage import CountedFile, inputs, open_input
from secure_bloom.storage.inputs import MAX_SIBLING_BYTES, covered
from testing.storage import OLD

ANYWHERE = st.integers(-5, len(OLD) + 5) | st.integers(-(2**70), 2**70)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(offset=ANYWHERE, length=ANYWHERE)
def test_read_at_gives_exactly_these_bytes_or_says_why_not(
    data_file: Path, offset: int, length: int
) -> None:
    with open_input(str(data_file)) as file:
        if offset >= 0 and length >= 0 and offset + length <= len(OLD):
            assert file.read_at(offset, length) == OLD[offset : offset + length]
        else:
            message = f"bytes {offset}..{offset + length}, the file has {len(OLD)}"
            with pytest.raises(FormatError, match=message) as caught:
                file.read_at(offset, length)
            assert caught.value.path == str(data_file)


@pytest.mark.parametrize("length", [0, 1, 999, 1000, 1001, 2000, 5555])
def test_a_view_is_read_in_pieces(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(inputs, "_CHUNK_BYTES", 1000)
    with open_input(str(data_file)) as file:
        assert file.view_at(7, length) == OLD[7 : 7 + length]
        with pytest.raises(FormatError, match=f"the file has {len(OLD)}"):
            file.view_at(len(OLD) - length, 2**62)


def test_content_that_repeats_is_counted_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"-" + b"ab...." * 5 + b"ab")
    with open_input(str(path)) as file:
        assert [file.repeats(b"ab", 1, 6, most) for most in (0, 3, 6)] == [0, 3, 6]
        assert file.repeats(b"ab", 1, 6, 1000) == 6
        assert file.repeats(b"ab", 0, 6, 5) == file.repeats(b"ab", 2**40, 6, 5) == 0
        # The last one is cut short by the end of the file.
        assert file.repeats(b"ab.", 1, 6, 6) == 5


def test_a_file_has_a_path_a_name_and_a_size(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data_file.parent)
    with open_input("./part-0.parquet") as file:
        assert (file.path, file.name, file.size) == ("./part-0.parquet", "part-0.parquet", len(OLD))


def test_a_file_uri_is_read(tmp_path: Path) -> None:
    (tmp_path / "a b?.parquet").write_bytes(b"x")
    with open_input(f"file://{tmp_path}/a%20b%3F.parquet") as file:
        assert (file.read_at(0, 1), file.name) == (b"x", "a b?.parquet")


def test_threads_share_a_file(data_file: Path) -> None:
    with open_input(str(data_file)) as file, ThreadPoolExecutor(8) as pool:
        offsets = [n * 37 % (len(OLD) - 10) for n in range(2000)]
        for offset, data in zip(
            offsets, pool.map(lambda at: file.read_at(at, 10), offsets), strict=True
        ):
            assert data == OLD[offset : offset + 10]


def test_a_file_cut_while_it_is_read_is_a_format_error(data_file: Path) -> None:
    with open_input(str(data_file)) as file:
        os.truncate(data_file, 100)
        with pytest.raises(FormatError, match="the file ended at 100"):
            file.read_at(90, 20)


def test_what_is_not_there_and_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no such file") as caught:
        open_input(str(tmp_path / "none.parquet"))
    assert caught.value.path == str(tmp_path / "none.parquet")
    with pytest.raises(FormatError, match="folder"):
        open_input(str(tmp_path))
    (tmp_path / "empty").touch()
    with pytest.raises(FormatError, match="empty"):
        open_input(str(tmp_path / "empty"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="regular"):
        open_input(str(tmp_path / "pipe"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(data_file: Path) -> None:
    data_file.chmod(0)
    with pytest.raises(PolicyError, match="permission denied") as caught:
        open_input(str(data_file))
    assert caught.value.hint is not None


def test_opening_nothing_leaks_no_descriptor(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(FormatError):
            open_input(str(tmp_path))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_siblings_are_read_and_bounded(data_file: Path) -> None:
    (data_file.parent / "_KEY_MATERIAL_FOR_part-0.json").write_bytes(b"{}")
    with open_input(str(data_file)) as file:
        assert file.read_sibling("_KEY_MATERIAL_FOR_part-0.json") == b"{}"
        assert file.read_sibling("other.json") is None
        (data_file.parent / "big.json").write_bytes(b"")
        os.truncate(data_file.parent / "big.json", MAX_SIBLING_BYTES)
        assert len(file.read_sibling("big.json") or b"") == MAX_SIBLING_BYTES
        os.truncate(data_file.parent / "big.json", MAX_SIBLING_BYTES + 1)
        with pytest.raises(FormatError, match=r"big\.json"):
            file.read_sibling("big.json")


def test_a_sibling_that_is_no_file_is_told(data_file: Path) -> None:
    os.mkfifo(data_file.with_name("pipe.index"))
    data_file.with_name("folder.index").mkdir()
    data_file.with_name("device.index").symlink_to("/dev/zero")
    with open_input(str(data_file)) as file:
        for name in ("pipe.index", "device.index"):
            with pytest.raises(FormatError, match="not a regular file") as caught:
                file.read_sibling(name)
            assert caught.value.path == str(data_file.with_name(name))
        with pytest.raises(FormatError, match="is a folder"):
            file.read_sibling("folder.index")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "", ".", "..", "a/b", "a\0b"])
def test_a_sibling_is_in_the_same_folder(data_file: Path, name: str) -> None:
    with open_input(str(data_file)) as file, pytest.raises(PolicyError, match="not the name"):
        file.read_sibling(name)


def test_identity_tells_a_changed_file(data_file: Path) -> None:
    with open_input(str(data_file)) as file:
        file.check_unchanged()
        with open_input(str(data_file)) as again:
            assert again.identity == file.identity
        os.utime(data_file, ns=(1, 1))
        with open_input(str(data_file)) as again:
            assert again.identity != file.identity
        with pytest.raises(FileChangedError):
            file.check_unchanged()
        data_file.unlink()
        with pytest.raises(FileChangedError, match="gone"):
            file.check_unchanged()


def test_the_umask_is_the_same_where_the_system_does_not_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = inputs._umask()
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert inputs._umask() == shown
    assert inputs._umask() == shown


def test_reads_are_counted_and_joined_where_they_follow_one_another(data_file: Path) -> None:
    with open_input(str(data_file)) as file, CountedFile(file) as counted:
        assert counted.read_at(10, 5) == OLD[10:15]
        assert counted.read_at(15, 5) == OLD[15:20]
        assert counted.read_at(0, 12) == OLD[:12]
    assert (counted.bytes_read, counted.requests) == (22, 3)
    assert counted.extents == [(10, 20), (0, 12)]
    assert covered(counted.extents) == 20


def test_content_that_repeats_is_counted_as_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"ab...." * 3 + b"ac....")
    with open_input(str(tmp_path / "x")) as file, CountedFile(file) as counted:
        assert counted.repeats(b"ab", 0, 6, 9) == 3
    assert (counted.bytes_read, counted.requests) == (6, 3)
    assert counted.extents == [(0, 2), (6, 8), (12, 14)]


def test_it_is_the_file_that_it_counts(data_file: Path) -> None:
    data_file.with_name("beside.json").write_text(json.dumps({"a": 1}))
    with open_input(str(data_file)) as file:
        counted = CountedFile(file)
        assert (counted.path, counted.size) == (str(data_file), len(OLD))
        assert counted.read_sibling("beside.json") == b'{"a": 1}'
        counted.check_unchanged()
        data_file.write_bytes(OLD + b"!")
        with pytest.raises(FileChangedError):
            counted.check_unchanged()


def test_closing_it_closes_the_file(data_file: Path) -> None:
    file = open_input(str(data_file))
    CountedFile(file).close()
    # A closed file has no descriptor left to close: closing twice is no error.
    file.close()
    with pytest.raises(Exception, match="refuses"):
        file.read_at(0, 1)
