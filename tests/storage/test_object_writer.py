"""How an object is written: whole, in parts, or in parts of which the store copies some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.inputs import Extent
from secure_bloom.storage.object_writer import (
    LEAST_PART,
    CannotCopyError,
    ObjectWriter,
    Origin,
    Part,
    RangeAnswer,
    StoredObject,
    sent_in_order,
)
from secure_bloom.storage.rewritten_file import OldRange

HERE = StoredObject(path="p", bucket="b", key="k", store="s", client=None)
ORIGIN = Origin(object=HERE, mark="1")


class Recorder(ObjectWriter):
    """Notes what it was to write; it copies only where that is asked of it."""

    def __init__(self, origin: Origin | None, *, can_copy: bool) -> None:
        super().__init__(HERE, origin, lambda: None, must_be_new=False)
        self.can_copy = can_copy
        self.written: list[Part] = []

    def _put(self, content: bytes) -> None:
        self.written = [content]

    def _upload(self, parts: Iterator[Part]) -> int:
        self.written, size = sent_in_order(self._note, parts)
        return size

    def _note(self, number: int, part: Part) -> Part:
        if isinstance(part, OldRange) and not self.can_copy:
            raise CannotCopyError
        return part

    def _range(self, extent: Extent) -> RangeAnswer:
        raise AssertionError(extent)

    def _require_absent(self) -> None: ...

    def _require_same(self, origin: Origin) -> None: ...


@pytest.fixture
def source(tmp_path: Path) -> InputFile:
    (tmp_path / "x").write_bytes(b"x" * (LEAST_PART + 10))
    return open_input(str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("keep", "origin", "can_copy", "written"),
    [
        (LEAST_PART, ORIGIN, True, [OldRange(0, LEAST_PART), b"tail"]),
        (LEAST_PART, ORIGIN, False, [b"x" * LEAST_PART + b"tail"]),
        (LEAST_PART, None, True, [b"x" * LEAST_PART + b"tail"]),
        (100, ORIGIN, True, [b"x" * 100 + b"tail"]),
    ],
)
def test_what_the_store_can_copy_does_not_go_up(
    source: InputFile, keep: int, origin: Origin | None, can_copy: bool, written: list[Part]
) -> None:
    writer = Recorder(origin, can_copy=can_copy)
    assert writer.replace(source, keep, [b"tail"]) == keep + 4
    assert writer.written == written


def test_answers_come_in_the_order_of_the_parts() -> None:
    parts = [b"a", OldRange(5, 7), b"bb"]
    done, size = sent_in_order(lambda number, part: (number, part), parts)
    assert done == [(1, b"a"), (2, OldRange(5, 7)), (3, b"bb")]
    assert size == 10
