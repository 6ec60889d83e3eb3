"""What every store other than S3 must do, told once; each store's tests run it on its emulator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.errors import (
    FileChangedError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from secure_bloom.lakes.managed_tables import refuse_managed
from secure_bloom.storage import find_files, open_input, replace_tail
from secure_bloom.storage.object_writer import LEAST_PART
from testing.store_proxy import StoreProxy, store_proxy
from testing.tables import KEYRING, Mode, customers, read, write
from tests.rekeying.objects_at_once import (
    assert_a_late_write_has_its_keys,
    assert_no_key_is_lost,
)

KEY = "lake/ts=2024-01-01 00%3A00/part ü+0.parquet"
SMALL = b"small " * 1000
LARGE = b"0123456789abcdef" * (LEAST_PART // 16 + 1000)
TAIL = [b"filter", b"", b"footer"]
SIZES = pytest.mark.parametrize("old", [SMALL, LARGE], ids=["small", "large"])


class Container(ABC):
    """A bucket of its own for one test, seen through the store's own SDK."""

    name: str
    port: str

    @abstractmethod
    def uri(self, key: str) -> str:
        """The URI of a key."""

    @abstractmethod
    def put(self, key: str, body: bytes) -> None:
        """Store an object that has attributes."""

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove an object."""

    @abstractmethod
    def objects(self) -> dict[str, bytes]:
        """All that stands there."""

    @abstractmethod
    def attributes(self, key: str) -> Any:
        """What an object is besides its bytes."""


def new(old: bytes) -> bytes:
    return old[:-100] + b"".join(TAIL)


def replaced(container: Container, **options: Any) -> int:
    with open_input(container.uri(KEY)) as file:
        return replace_tail(file, file.size - 100, TAIL, **options)


def failing_writes(
    behind: Container,
    proxy: StoreProxy,
    old: bytes,
    *,
    from_then_on: bool,
    after: bool,
    status: int = 503,
) -> None:
    """Fail each request of a write, and look what stands there: the old object or the new one."""
    number, requests = 0, 1
    while number < requests:
        behind.put(KEY, old)
        with open_input(behind.uri(KEY)) as file:
            file.read_at(file.size - 200, 200)
            proxy.counts()
            proxy.tell(
                fail={
                    "number": number,
                    "from_then_on": from_then_on,
                    "after": after,
                    "status": status,
                    "code": "ServerBusy",
                    "only": behind.name,
                }
            )
            failed = None
            try:
                replace_tail(file, len(old) - 100, TAIL)
            except SecureBloomError as error:
                failed = error
        proxy.tell(fail=None)
        requests = max(requests, proxy.counts().requests - 1)
        found = behind.objects()[KEY]
        assert found in (old, new(old))
        # Only an answer that was lost can make a write fail that was done.
        assert found == new(old) if failed is None else after or from_then_on
        number += 1


def replaced_right_before_a_write(
    monkeypatch: pytest.MonkeyPatch, replace: Callable[[], None]
) -> None:
    """Have another program write, once, when filters are planned and the write is to begin."""
    ways = iter([replace])

    def late(*arguments: Any, **options: Any) -> int:
        for other in ways:
            other()
        return replace_tail(*arguments, **options)

    monkeypatch.setattr("secure_bloom.adding.rewrite.replace_tail", late)


class Changing(list[bytes]):
    """A tail that does something when it is looked at."""

    def __init__(self, change: Callable[[], None]) -> None:
        super().__init__(TAIL)
        self.change = change

    def __iter__(self) -> Iterator[bytes]:
        self.change()
        return super().__iter__()


class StoreTests:
    """Tests that a class of each store's test file inherits; ``container`` is its fixture.

    ``late`` is in the head of the request that replaces the data in ``lake/x.parquet``, and
    ``late_number`` the number of such requests before it.
    """

    late: str
    late_number = 0

    @SIZES
    def test_an_object_gets_a_new_tail_and_stays_what_it_was(
        self, container: Container, old: bytes
    ) -> None:
        container.put(KEY, old)
        before = container.attributes(KEY)
        assert replaced(container) == len(new(old))
        assert container.objects() == {KEY: new(old)}
        assert container.attributes(KEY) == before

    def test_an_open_table_asks_once_for_each_object(
        self, container: Container, tmp_path: Path
    ) -> None:
        """The end of each object, on whose mark later requests depend."""
        path = write(tmp_path / "x.parquet", customers(400), Mode.PLAIN, row_group_size=100)
        sb.add_bloom_filters(path, columns=["email"])
        with store_proxy(container.port) as proxy:
            behind: Container = type(container)(proxy.port)  # type: ignore[call-arg]
            for name in "ab":
                behind.put(f"lake/{name}.parquet", path.read_bytes())

            def asked() -> list[str]:
                log = [f"{method} {target}" for method, target, *_ in proxy.counts().log]
                return [line for line in log if ".parquet" in line]

            proxy.counts()
            uri = behind.uri("lake")
            assert sb.read_table(uri, where="email = 'nobody'").num_rows == 0
            assert [line.split()[0] for line in asked()] == ["GET", "GET"]
            with sb.open_table(uri) as table:
                assert table.read("email = 'nobody'").num_rows == 0
                assert [line.split()[0] for line in asked()] == ["GET", "GET"]
                assert table.read("email = 'nobody else'").num_rows == 0
                assert asked() == []
                assert table.read("email = 'user7@example.com'").num_rows == 2
                assert {line.split()[0] for line in asked()} == {"GET"}
                behind.put("lake/a.parquet", path.read_bytes())
                assert table.read("email = 'user7@example.com'").num_rows == 2

    @SIZES
    def test_a_copy_with_a_new_tail_gets_another_key(
        self, container: Container, old: bytes
    ) -> None:
        container.put(KEY, old)
        output = container.uri("out/x.parquet")
        replaced(container, output=output, must_be_new=True)
        assert container.objects() == {KEY: old, "out/x.parquet": new(old)}
        assert container.attributes("out/x.parquet") == container.attributes(KEY)
        with pytest.raises(FileChangedError, match="there already"):
            replaced(container, output=output, must_be_new=True)
        assert container.objects() == {KEY: old, "out/x.parquet": new(old)}

    @SIZES
    def test_of_two_writers_one_is_refused(self, container: Container, old: bytes) -> None:
        container.put(KEY, old)
        files = [open_input(container.uri(KEY)) for _ in range(2)]
        replace_tail(files[0], len(old), [b"first"])
        with pytest.raises(FileChangedError, match="changed after it was read"):
            replace_tail(files[1], len(old), [b"second"])
        assert container.objects() == {KEY: old + b"first"}
        container.remove(KEY)
        with pytest.raises(FileChangedError):
            replace_tail(files[1], len(old), [b"second"])
        assert container.objects() == {}

    def test_an_object_that_shrinks_while_it_is_read_has_changed(
        self, container: Container
    ) -> None:
        container.put(KEY, bytes(1_000))
        with open_input(container.uri(KEY)) as file:
            container.put(KEY, bytes(10))
            with pytest.raises(FileChangedError):
                file.all_bytes()

    @SIZES
    def test_a_change_during_the_upload_wins(self, container: Container, old: bytes) -> None:
        container.put(KEY, old)
        with open_input(container.uri(KEY)) as file:
            tail = Changing(lambda: container.put(KEY, old[::-1]))
            with pytest.raises(FileChangedError):
                replace_tail(file, file.size - 100, tail)
        assert container.objects() == {KEY: old[::-1]}

    @pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
    def test_an_upload_that_breaks_off_changes_nothing(
        self, container: Container, error: type[BaseException]
    ) -> None:
        container.put(KEY, LARGE)

        def fail() -> None:
            raise error

        with open_input(container.uri(KEY)) as file, pytest.raises(error):
            replace_tail(file, file.size - 100, Changing(fail))
        assert container.objects() == {KEY: LARGE}

    def test_a_file_of_the_disk_goes_up(self, container: Container, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(LARGE * 2)
        with open_input(str(tmp_path / "x")) as file:
            replace_tail(file, file.size - 100, TAIL, output=container.uri("up/x"))
        assert container.objects() == {"up/x": new(LARGE * 2)}

    def test_filters_are_added_and_answer(self, container: Container, tmp_path: Path) -> None:
        table = customers(300, 0)
        path = write(tmp_path / "x.parquet", table, Mode.ENCRYPTED, row_group_size=100)
        container.put(KEY, path.read_bytes())
        assert find_files(container.uri("lake")) == [container.uri(KEY)]
        for status in ("added", "unchanged"):
            report = sb.add_bloom_filters(container.uri("lake"), columns=["email"], keys=KEYRING)
            assert [file.status for file in report.files] == [status]
        (tmp_path / "y.parquet").write_bytes(container.objects()[KEY])
        assert read(tmp_path / "y.parquet", encrypted=True).equals(table)
        probed = sb.probe(container.uri("lake"), "email", ["nobody"], keys=KEYRING)
        groups = [group.verdicts["nobody"] for group in probed.files[0].row_groups]
        assert {str(verdict) for verdict in groups} == {"absent"}

    def test_an_object_replaced_in_the_middle_of_a_run_is_planned_anew(
        self, container: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = (
            write(tmp_path / f"{seed}.parquet", customers(300, seed), Mode.ENCRYPTED).read_bytes()
            for seed in (0, 1)
        )
        container.put(KEY, first)
        replaced_right_before_a_write(monkeypatch, lambda: container.put(KEY, second))
        report = sb.add_bloom_filters(container.uri(KEY), columns=["email"], keys=KEYRING)
        assert [file.status for file in report.files] == ["added"]
        (tmp_path / "y.parquet").write_bytes(container.objects()[KEY])
        assert read(tmp_path / "y.parquet", encrypted=True).equals(customers(300, 1))
        email = customers(300, 1)["email"][0].as_py()
        probed = sb.probe(container.uri(KEY), "email", [email], keys=KEYRING)
        assert "maybe" in {str(it.verdicts[email]) for it in probed.files[0].row_groups}

    def test_a_run_that_is_paused_at_any_request_loses_no_key(
        self, container: Container, tmp_path: Path
    ) -> None:
        mix = ("outside", "reencrypt anew", "reencrypt outside anew")
        assert_no_key_is_lost(container, container.put, container.remove, tmp_path, mix, every=5)
        assert "lake/_KEY_MATERIAL_FOR_x.parquet.json" not in container.objects()

    @pytest.mark.parametrize("status", [403, 412])
    def test_a_write_that_is_refused_while_it_is_under_way_keeps_its_keys(
        self, container: Container, tmp_path: Path, status: int
    ) -> None:
        """A layer below has asked twice: the first request comes after the answer to the second."""
        with store_proxy(container.port) as proxy:
            behind: Container = type(container)(proxy.port)  # type: ignore[call-arg]
            failure = {"status": status, "code": "ConditionNotMet", "only": self.late}
            failure |= {"number": self.late_number}
            assert_a_late_write_has_its_keys(behind, behind.put, proxy, tmp_path, failure)

    def test_folders_are_listed_and_a_managed_table_is_refused(self, container: Container) -> None:
        for key in ("lake/a/x.parquet", "lake/a/b/y.parquet", "other/z.parquet"):
            container.put(key, SMALL)
        wanted = [container.uri(f"lake/a/{name}") for name in ("b/y.parquet", "x.parquet")]
        assert sorted(find_files(container.uri("lake"))) == wanted
        container.put("lake/a/_delta_log/00000000000000000000.json", b"{}")
        for path in ("lake", "lake/a", "lake/a/b/y.parquet"):
            with pytest.raises(UnsupportedFeatureError, match="Delta"):
                refuse_managed(container.uri(path))
        refuse_managed(container.uri("other"))

    def test_a_container_that_is_not_there_is_named(self, container: Container) -> None:
        container.put(KEY, SMALL)
        gone = container.uri("x").replace(container.name, "nowhere")
        with pytest.raises(PolicyError) as caught:
            replaced(container, output=gone)
        assert caught.value.path == gone
