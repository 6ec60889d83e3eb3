"""One file of a run: what is written where, and that another writer's file is never lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.adding.request import filter_request
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.encryption.access import Access
from secure_bloom.storage import InputFile
from testing.surgery import filter_of
from testing.tables import KEYRING, Mode, customers, write

pytestmark = pytest.mark.usefixtures("both_ways")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", customers(50), Mode.PLAIN)


def rewriter(kind: type[Rewriter] = Rewriter, **mode: bool) -> Rewriter:
    request = filter_request(["email"], None)
    resolver = Access(keys=KEYRING).checked_resolver()
    return kind(request=request, resolver=resolver, mode=WriteMode(**mode))


def meanwhile(path: Path, *times: Callable[[Path], object]) -> type[Rewriter]:
    """A rewriter that is interrupted after each plan by another program."""
    left = list(times)

    class Interrupted(Rewriter):
        def plan(self, file: InputFile, *args: object):
            plan = super().plan(file, *args)
            if left:
                left.pop(0)(path)
            return plan

    return Interrupted


def replaced(path: Path) -> None:
    other = write(path.parent / "other", customers(60), Mode.PLAIN)
    other.replace(path)


def test_a_file_that_another_program_replaced_is_read_anew(path: Path) -> None:
    report = rewriter(meanwhile(path, replaced)).rewrite(str(path))
    assert report.status == "added"
    assert sb.read_table(path).equals(customers(60))
    assert filter_of(path, 0, "email") is not None


def test_a_writer_that_never_stops_is_told_and_keeps_its_file(path: Path) -> None:
    report = rewriter(meanwhile(path, replaced, replaced, replaced)).rewrite(str(path))
    assert (report.status, report.path) == ("failed", str(path))
    assert sb.read_table(path).equals(customers(60))


@pytest.mark.parametrize("mode", [{"dry_run": True}, {"only_changes": True}])
def test_nothing_is_written_where_nothing_is_to_be(path: Path, mode: dict[str, bool]) -> None:
    if "only_changes" in mode:
        assert rewriter().rewrite(str(path)).status == "added"
    before, target = path.read_bytes(), path.parent / "new.parquet"
    report = rewriter(**mode).rewrite(str(path), target=str(target))
    assert report.error is None
    assert path.read_bytes() == before
    assert [it.name for it in path.parent.iterdir()] == [path.name]


def test_a_target_with_another_file_is_left_as_it_is(path: Path) -> None:
    target = write(path.parent / "new.parquet", customers(70), Mode.PLAIN)
    report = rewriter(only_changes=True).rewrite(str(path), target=str(target))
    assert report.status == "failed"
    assert sb.read_table(target).equals(customers(70))
