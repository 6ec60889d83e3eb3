"""Filters in clear where nothing refers to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.encryption.policy import KeyPolicy
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    EXAMPLES,
    Example,
    chunk_of,
    some_filter,
    sound,
)
from tests.surgery import Opened, edit_footer
from tests.tables import Mode


@pytest.mark.parametrize("claim", ["row group", "offset index"])
def test_a_stray_filter_hides_in_no_region_that_is_only_claimed(tmp_path: Path, claim: str) -> None:
    path, stray = sound(tmp_path), some_filter(b"user1@example.com")

    def change(it: Opened) -> bytes:
        if claim == "row group":
            it.footer.row_groups[0].total_compressed_size = 10**6
        else:
            chunk_of(it, "city").offset_index_offset = it.footer.tail.offset
            chunk_of(it, "city").offset_index_length = len(stray)
        return stray

    edit_footer(path, change)
    found = set(ids(Example(path=path).audit()))
    assert found - {"impossible-page-index"} == {"filter-stray-in-clear"}


def test_a_stray_filter_is_found_behind_a_footer_that_nobody_can_read(tmp_path: Path) -> None:
    found = EXAMPLES["filter-stray-in-clear"](tmp_path)
    report = found.audit(keys=None, without_keys=True)
    assert set(ids(report)) == {"filter-stray-in-clear", "unchecked-footer"}


def test_the_pages_of_a_column_without_a_key_are_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secure_bloom.auditing.checks.gaps._MOST_SEARCHED", 0)
    report = EXAMPLES["unchecked-column"](tmp_path).audit()
    assert ids(report) == ["unchecked-column"]


def test_the_header_of_a_stray_filter_may_lie_across_two_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sound(tmp_path)
    edit_footer(path, lambda _: bytes(50) + some_filter(b"a") + bytes(30) + some_filter(b"b"))
    for step in (16, 55, 64):
        monkeypatch.setattr("secure_bloom.auditing.checks.gaps._STEP", step)
        assert ids(Example(path=path).audit()) == ["filter-stray-in-clear"] * 2


def test_a_plain_table_has_no_stray_filters(tmp_path: Path) -> None:
    path = sound(tmp_path, Mode.PLAIN)
    edit_footer(path, lambda _: some_filter(b"rome"))
    assert ids(Example(path=path, policy=KeyPolicy()).audit()) == []
