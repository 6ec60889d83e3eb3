"""Parts of an upload: none too small, none too large, not too many."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_bloom.storage import InputFile, object_writer, open_input
from secure_bloom.storage.object_writer import (
    LEAST_PART,
    can_copy,
    copied_ranges,
    parts_after_copies,
    uploaded_parts,
)

GIB = 1024**3
CONTENT = bytes(range(250)) * 40


@given(st.integers(LEAST_PART, 5 * 1024 * GIB))
def test_copies_cover_the_kept_bytes_and_each_may_be_a_part(keep: int) -> None:
    ranges = copied_ranges(keep)
    assert ranges[0].offset == 0
    for one, other in itertools.pairwise(ranges):
        assert one.offset + one.length == other.offset
    assert 0 <= keep - (ranges[-1].offset + ranges[-1].length) < len(ranges)
    assert {it.length for it in ranges} == {ranges[0].length}
    assert LEAST_PART <= ranges[0].length <= 5 * GIB
    assert len(ranges) < 9000


def test_fewer_bytes_than_a_part_are_not_copied() -> None:
    assert can_copy(LEAST_PART)
    assert not can_copy(LEAST_PART - 1)


@settings(max_examples=8)
@given(st.lists(st.integers(0, 40).map(lambda mib: mib * 700_000), max_size=4))
def test_uploaded_parts_are_the_pieces_and_large_enough(sizes: list[int]) -> None:
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    parts = list(uploaded_parts(pieces, 0))
    assert b"".join(parts) == b"".join(pieces)
    assert all(len(part) >= LEAST_PART for part in parts[:-1])
    assert len(parts) == 1 or parts[-1]


def test_an_object_of_terabytes_has_room_in_its_parts() -> None:
    assert len(next(uploaded_parts([b"x" * 10_000_000], 10_000 * LEAST_PART))) > LEAST_PART


@pytest.mark.parametrize("tail", [[], [b""], [b"tail"]])
def test_without_a_tail_the_last_part_is_a_copy(local: InputFile, tail: list[bytes]) -> None:
    *copies, _ = [*parts_after_copies(local, LEAST_PART, tail), None]
    assert [it for it in copies if isinstance(it, bytes)] == [it for it in tail if it]


def test_what_the_copies_leave_over_goes_up_with_the_tail(
    local: InputFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_writer, "_COPIED", 1000)
    *copies, last = parts_after_copies(local, 9_998, [b"tail"])
    assert [it.length for it in copies] == [999] * 10
    assert last == CONTENT[9_990:9_998] + b"tail"


@pytest.fixture
def local(tmp_path: Path) -> InputFile:
    (tmp_path / "x").write_bytes(CONTENT)
    return open_input(str(tmp_path / "x"))
