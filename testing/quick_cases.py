"""Choose the cases of each test that `make test` runs; `make test-all` runs all.

A test that runs in two ways, for example with the C extension and without it, runs half of its
cases in each.  Tests with a single case take the ways in turns.  Tests of the four encryption modes
take two of them, in turns.  Of the cases of three parameters or more, so many are kept that each
pair of values is in one: a mistake seldom needs three values.  Hypothesis makes fewer examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest
from hypothesis import settings

from testing.tables import Mode

#: In the profile of hypothesis that `make test` loads; a test that needs more time has fewer.
EXAMPLES = 10

#: Fixtures by which every test of a file tries the same two ways: with the C extension or without
#: it (the tests of kernels compare both for each kernel), on Spark's driver or its executors.
_ALTERNATE = frozenset({"both_ways", "either_way", "has_extension", "way"})
#: All fixtures by which a test runs in two ways.
_WAYS = _ALTERNATE | {"any_bucket", "proxy"}
#: Every other test of a file takes these modes, and the next one those.
_MODES = (frozenset({Mode.PLAIN, Mode.ENCRYPTED}), frozenset({Mode.SIGNED, Mode.UNIFORM}))


def examples(most: int, **more: Any) -> settings:
    """Return the settings of a test with at most so many examples; in `make test` a third."""
    is_quick = settings.default.max_examples <= EXAMPLES
    return settings(max_examples=-(-most // 3) if is_quick else most, **more)


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the items that `make test` leaves out; slow ones are not looked at."""
    tests: dict[str, list[Any]] = {}
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("slow") is None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found: set[pytest.Item] = set()
    turns: Counter[str] = Counter()
    for test, functions in tests.items():
        turn = f"{test.partition('::')[0]} "
        if {mode for item in functions for mode in _modes(item)} == set(Mode):
            taken = _MODES[turns[turn + "modes"] % 2]
            turns[turn + "modes"] += 1
            found.update(item for item in functions if not taken.issuperset(_modes(item)))
        kept = [item for item in functions if item not in found]
        cases: dict[tuple[tuple[str, int], ...], list[Any]] = {}
        for item in kept:
            given = item.callspec.params.items()
            case = tuple((name, id(value)) for name, value in given if name not in _WAYS)
            cases.setdefault(case, []).append(item)
        if len(cases) > 1:
            found |= _other_ways(list(cases.values()))
        elif len(kept) == 2 and _ALTERNATE.intersection(kept[0].callspec.params):
            found.add(kept[turns[turn + "ways"] % 2])
            turns[turn + "ways"] += 1
        found |= _same_pairs([item for item in kept if item not in found])
    return found


def _modes(item: Any) -> list[Mode]:
    return [value for value in item.callspec.params.values() if isinstance(value, Mode)]


def _other_ways(cases: list[list[Any]]) -> set[Any]:
    """Return one of both ways of each case.

    They change by the sum of the turn's binary digits: neither way has every second case alone.
    """
    turns = enumerate(both for both in cases if len(both) == 2)
    return {both[turn.bit_count() % 2] for turn, both in turns}


def _same_pairs(functions: list[Any]) -> set[Any]:
    """Return the cases whose pairs of values the other cases have."""
    axes = _axes(functions[0]) if functions else []
    if len(axes) < 3:
        return set()
    pairs = {
        item: set(
            combinations(
                (tuple((name, id(item.callspec.params[name])) for name in axis) for axis in axes), 2
            )
        )
        for item in functions
    }
    missing = set().union(*pairs.values())
    others = dict(pairs)
    while missing:
        kept = max(others, key=lambda item: len(others[item] & missing))
        missing -= others.pop(kept)
    return set(others)


def _axes(item: Any) -> list[tuple[str, ...]]:
    """Return the sets of parameters that vary independently: a mark may set several together."""
    marks = [
        mark.kwargs.get("argnames", mark.args[0] if mark.args else ())
        for mark in item.iter_markers("parametrize")
    ]
    split = [mark.split(",") if isinstance(mark, str) else mark for mark in marks]
    together = [tuple(name.strip() for name in names) for names in split]
    marked = {name for names in together for name in names}
    return together + [(name,) for name in item.callspec.params if name not in marked]
