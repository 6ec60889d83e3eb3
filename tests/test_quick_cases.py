"""`make test` leaves out cases, and no value, no way and no pair of values with them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest

from testing.quick_cases import left_out
from testing.tables import Mode


class Item:
    """What is looked at of a test that pytest has collected."""

    def __init__(self, name: str, params: dict[str, object], marks: Iterable[Any] = ()) -> None:
        self.nodeid = f"{name}[{'-'.join(map(str, params.values()))}]"
        self.callspec = SimpleNamespace(params=params)
        self.marks = [mark.mark for mark in marks]

    def get_closest_marker(self, name: str) -> object:
        return next(iter(self.iter_markers(name)), None)

    def iter_markers(self, name: str) -> list[Any]:
        return [mark for mark in self.marks if mark.name == name]


def cases(marks: Iterable[Any] = (), **values: Iterable[object]) -> list[Item]:
    marks = [*marks, *(pytest.mark.parametrize(name, list(of)) for name, of in values.items())]
    return [
        Item("f.py::test", dict(zip(values, chosen, strict=True)), marks)
        for chosen in product(*values.values())
    ]


def kept(items: list[Item]) -> list[dict[str, object]]:
    others = left_out(items)
    return [item.callspec.params for item in items if item not in others]


def test_each_pair_of_values_stays() -> None:
    items = cases(a="abc", b="defg", c="hi")
    found = kept(items)
    assert len(found) == 12
    pairs = [
        {pair for case in each for pair in combinations(case.items(), 2)}
        for each in (found, [item.callspec.params for item in items])
    ]
    assert pairs[0] == pairs[1]


def test_two_parameters_have_all_pairs_anyway() -> None:
    assert len(kept(cases(a="abc", b="defg"))) == 12


def test_parameters_that_are_set_together_are_one() -> None:
    marks = [
        pytest.mark.parametrize(("a", "b"), [(1, 2), (3, 4)]),
        pytest.mark.parametrize(("c", "d"), [(5, 6)]),
    ]
    items = [Item("f.py::test", {"a": a, "b": a + 1, "c": 5, "d": 6}, marks) for a in (1, 3)]
    assert len(kept(items)) == 2


def test_sets_that_share_their_first_value_differ() -> None:
    both = ("status", "code"), [(1, "a"), (1, "b")]
    marks = [pytest.mark.parametrize(*both), pytest.mark.parametrize("c", "de")]
    items = [
        Item("f.py::test", {"status": status, "code": code, "c": c, "e": at}, marks)
        for (status, code), c, at in product(both[1], "de", "fg")
    ]
    assert {case["code"] for case in kept(items)} == {"a", "b"}


def test_each_case_runs_one_way_and_each_way_some_cases() -> None:
    found = kept(cases(a="abcd", has_extension=[False, True]))
    assert [case["a"] for case in found] == list("abcd")
    assert {case["has_extension"] for case in found} == {False, True}


def test_tests_with_one_case_take_turns() -> None:
    items = [Item(f"f.py::{name}", {"both_ways": way}) for name in "ab" for way in (0, 1)]
    assert sorted(str(case["both_ways"]) for case in kept(items)) == ["0", "1"]


def test_tests_of_all_modes_take_two_in_turns() -> None:
    items = [Item(f"f.py::{name}", {"mode": mode}) for name in "ab" for mode in Mode]
    assert {case["mode"] for case in kept(items)} == set(Mode)
    assert len(kept(items)) == 4
    some = [Item("f.py::c", {"mode": mode}) for mode in (Mode.PLAIN, Mode.SIGNED, Mode.UNIFORM)]
    assert len(kept(some)) == 3


def test_a_slow_case_stands_for_no_other() -> None:
    slow = cases([pytest.mark.slow], a="abc", b="defg", c="h")
    quick = cases(a="abc", b="defg", c="i")
    found = kept([*slow, *quick])
    assert all(item.callspec.params in found for item in quick)


def test_stores_take_turns_only_where_there_are_several_cases() -> None:
    assert len(kept(cases(proxy=["moto", "ministack"]))) == 2
    assert len(kept(cases(old=["small", "large"], proxy=["moto", "ministack"]))) == 2
