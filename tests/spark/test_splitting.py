"""A plan becomes tasks of about as many bytes, with every row group in one of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.reading import PlannedFile
from secure_bloom.reading.pruning.plan import RowGroupPlan

pytest.importorskip("pyspark", reason="needs the extra spark")
from secure_bloom.spark.source import split

MIB = 1024 * 1024
sizes = st.tuples(st.integers(1, 2000 * MIB), st.sets(st.integers(0, 40), min_size=1))


def file(name: str, size: int, *row_groups: int, share: float = 1.0) -> PlannedFile:
    groups = tuple(
        RowGroupPlan(row_group=i, rows=100, ranges=None if share == 1 else ((0, int(100 * share)),))
        for i in row_groups
    )
    return PlannedFile(
        path=name,
        size=size,
        written=(size,),
        digest=b"",
        row_groups=groups,
        partition={},
        unchecked=frozenset(),
    )


def places(files: tuple[PlannedFile, ...]) -> list[tuple[str, int]]:
    return [(file.path, group.row_group) for file in files for group in file.row_groups]


@given(st.lists(sizes, max_size=8))
def test_every_row_group_is_in_one_task(drawn: list[tuple[int, set[int]]]) -> None:
    files = tuple(file(str(i), size, *sorted(groups)) for i, (size, groups) in enumerate(drawn))
    tasks = split(files)
    assert [place for task in tasks for place in places(task)] == places(files)
    for task in tasks:
        assert task
        assert len({file.path for file in task}) == len(task)


def test_small_files_share_a_task() -> None:
    assert len(split([file(str(i), 1000, 0, 1) for i in range(3)])) == 1


def test_a_large_file_is_read_by_several_tasks() -> None:
    tasks = split([file("large", 1024 * MIB, *range(16))])
    assert len(tasks) == 16
    assert [places(task) for task in tasks[:2]] == [[("large", 0)], [("large", 1)]]


def test_no_task_gets_more_than_128_mib_of_row_groups_that_are_smaller() -> None:
    tasks = split([file(str(i), 1024 * MIB, *range(32)) for i in range(40)])
    assert max(len(places(task)) for task in tasks) == 3
    assert len(tasks) < 450


def test_a_few_rows_of_a_row_group_weigh_little() -> None:
    whole = split([file(str(i), 64 * MIB, 0) for i in range(8)])
    few = split([file(str(i), 64 * MIB, 0, share=0.01) for i in range(8)])
    assert len(few) < len(whole) == 8


def test_nothing_is_no_task() -> None:
    assert split([]) == []
