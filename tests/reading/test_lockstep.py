"""Work in stages: jobs in step, what becomes of each, and how many go together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, located
from secure_bloom.reading.lockstep import Job, growing_runs, in_lockstep, run

#: No file is read here.
pytestmark = pytest.mark.parametrize("has_compiled_code", [False])


class Bench:
    """Jobs of some stages; ``done`` has what was done, in its order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def job(self, name: str, stages: int, error: BaseException | None = None) -> Job[str]:
        """One that ends with its last stage, by an error if there is one."""
        for stage in range(1, stages):
            self.done.append(f"{name}{stage}")
            yield
        self.done.append(f"{name}{stages}")
        if error is not None:
            raise error
        return name.upper()


# --- A job that is alone ---


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_a_job_is_run_to_its_end(stages: int) -> None:
    bench = Bench()
    assert run(bench.job("a", stages)) == "A"
    assert bench.done == [f"a{stage}" for stage in range(1, stages + 1)]


def test_the_error_of_a_job_is_raised() -> None:
    with pytest.raises(ValueError, match="no more"):
        run(Bench().job("a", 3, ValueError("no more")))


# --- Jobs together ---


def test_every_part_is_run_by_all_jobs_before_the_next() -> None:
    bench = Bench()
    outcomes = in_lockstep(
        bench.job(name, stages) for name, stages in [("a", 3), ("b", 1), ("c", 2)]
    )
    assert bench.done == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert [outcome.result() for outcome in outcomes] == ["A", "B", "C"]


def test_no_jobs_have_no_outcomes() -> None:
    assert in_lockstep(iter(())) == []


def test_none_is_a_result() -> None:
    def job() -> Job[None]:
        yield

    (outcome,) = in_lockstep([job()])
    assert outcome.result() is None


@pytest.mark.parametrize("stage", [1, 2, 3, 4])
def test_a_job_that_fails_does_not_hold_up_the_others(stage: int) -> None:
    bench = Bench()
    failing = bench.job("b", stage, ValueError("the second"))
    first, second, third = in_lockstep([bench.job("a", 3), failing, bench.job("c", 4)])
    assert [first.result(), third.result()] == ["A", "C"]
    assert {"a3", f"b{stage}", "c4"} <= set(bench.done)
    for _ in range(2):
        with pytest.raises(ValueError, match="the second"):
            second.result()


def test_each_error_is_raised_at_the_turn_of_its_job_whichever_came_first() -> None:
    bench = Bench()
    late, early = bench.job("a", 4, ValueError("late")), bench.job("b", 1, KeyError("early"))
    outcomes = iter(in_lockstep([bench.job("c", 2), late, early]))
    assert next(outcomes).result() == "C"
    with pytest.raises(ValueError, match="late"):
        next(outcomes).result()
    with pytest.raises(KeyError, match="early"):
        next(outcomes).result()


def test_an_interruption_is_not_put_off() -> None:
    bench = Bench()
    with pytest.raises(KeyboardInterrupt):
        in_lockstep([bench.job("a", 1, KeyboardInterrupt()), bench.job("b", 3)])
    assert bench.done == ["a1"]


def test_a_path_is_added_to_the_errors_of_its_own_job_alone() -> None:
    def job(path: str) -> Job[str]:
        with located(path=path):
            yield
            return (yield from Bench().job("inner", 2, FormatError("damaged")))

    outcomes = in_lockstep(job(path) for path in ["x", "y", "z"])
    for path, outcome in zip(["x", "y", "z"], outcomes, strict=True):
        with pytest.raises(FormatError) as caught:
            outcome.result()
        assert caught.value.path == path


# --- How many go together ---


def _any_number(_start: int) -> int:
    """There is memory for all."""
    return 1 << 62


#: How many there is memory for, from each ordinal on; any number where there is none more.
bounds = st.lists(st.integers(0, 40), max_size=400)


def _bounded(fitting: list[int]) -> Callable[[int], int]:
    return lambda start: fitting[start] if start < len(fitting) else _any_number(start)


@given(st.integers(0, 5000), bounds)
def test_runs_cover_all_ordinals_once_in_their_order(count: int, fitting: list[int]) -> None:
    runs = list(growing_runs(count, _bounded(fitting)))
    assert [ordinal for one in runs for ordinal in one] == list(range(count))
    assert all(runs)


@given(st.integers(1, 5000))
def test_the_first_goes_alone_and_no_run_but_the_last_is_shorter_than_before(count: int) -> None:
    sizes = [len(one) for one in growing_runs(count, _any_number)]
    assert sizes[0] == 1
    assert sizes[:-1] == sorted(sizes[:-1])


@given(st.integers(0, 400), bounds)
def test_no_run_is_longer_than_fits_but_one_always_goes(count: int, fitting: list[int]) -> None:
    most = _bounded(fitting)
    assert all(len(one) <= max(1, most(one[0])) for one in growing_runs(count, most))


@given(st.integers(0, 400), bounds)
def test_a_run_is_shorter_than_before_only_where_no_more_fit(
    count: int, fitting: list[int]
) -> None:
    most = _bounded(fitting)
    for before, one in pairwise(growing_runs(count, most)):
        assert len(one) >= min(len(before), max(1, most(one[0]))) or one.stop == count


def test_runs_grow_again_behind_one_that_was_short() -> None:
    sizes = [len(one) for one in growing_runs(10_000, lambda start: 1 if start == 9 else 50)]
    assert sizes[2] == 1
    assert max(sizes[:2]) > 1
    assert max(sizes[3:]) == 50


def test_runs_grow_fast_and_not_for_ever() -> None:
    sizes = [len(one) for one in growing_runs(1_000_000, _any_number)]
    # A thousand are few runs, and a million are not held in memory together.
    assert next(n for n in range(len(sizes)) if sum(sizes[:n]) >= 1000) < 10
    assert max(sizes) <= 1000


def test_runs_are_made_lazily() -> None:
    runs: Iterator[range] = growing_runs(10**18, _any_number)
    assert [next(runs)[0], next(runs)[0]] == [0, 1]


def test_the_room_in_memory_is_looked_up_when_a_run_is_due() -> None:
    """What the runs before have shown of the sizes of things then counts."""
    known = [100]
    runs = growing_runs(1000, lambda _: known[-1])
    assert [len(next(runs)), len(next(runs))] == [1, 8]
    known.append(3)
    assert len(next(runs)) == 3
