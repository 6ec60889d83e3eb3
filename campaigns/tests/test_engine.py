"""Runs of fuzzing in slices: each target's share, and a run that was stopped goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from campaigns.fuzzing import engine
from campaigns.fuzzing.engine import Found, Slice
from campaigns.fuzzing.targets import TARGETS


def test_any_part_of_a_run_has_each_target_with_a_seed_of_its_own() -> None:
    found = engine.slices(2_000_000, 3, by_coverage=False)
    assert abs(sum(it.trials for it in found) - 2_000_000) < 1000
    assert len(set(found)) == len(found)
    assert {it.target for it in found[: len(TARGETS)]} == {*TARGETS}
    assert {(it.target, it.seed) for it in found}.isdisjoint(
        (it.target, it.seed) for it in engine.slices(2_000_000, 4, by_coverage=False)
    )


@pytest.mark.parametrize("by_coverage", [False, True])
def test_each_target_gets_a_hundredth_of_the_inputs_at_least(by_coverage: bool) -> None:
    least = dict.fromkeys(TARGETS, 0)
    for it in engine.slices(10_000_000, 0, by_coverage=by_coverage):
        least[it.target] += it.trials
    assert min(least.values()) >= 100_000
    assert sum(least.values()) >= 10_000_000


def test_a_run_that_is_stopped_tells_what_it_did_and_the_next_one_does_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[Slice] = []

    def five(pieces: Sequence[Slice]) -> Iterator[tuple[Slice, Found]]:
        for piece in pieces[:5]:
            done.append(piece)
            failures = ["broke"] if piece.target == "thrift" else []
            yield piece, Found(trials=piece.trials, failures=failures, memory=1 << 20)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_run_all", five)
    journal = str(tmp_path / "journal")
    first = engine.fuzz(1000, 0, journal=journal)
    assert first.trials == sum(it.trials for it in done)
    assert first.tried.endswith(f"stopped with {len(TARGETS) - 5} slices left")
    second = engine.fuzz(1000, 0, journal=journal)
    assert len(set(done)) == 10
    assert second.trials == sum(it.trials for it in done)
    assert second.failures == ("broke",)
    assert engine.fuzz(1000, 0, by_coverage=True, journal=journal).trials < second.trials
