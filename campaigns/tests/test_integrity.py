"""A short run of the campaign, and that it would see what nothing protects."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import integrity
from campaigns.integrity import CASES, answers, authenticated, tried, written
from campaigns.outcome import Effort


def test_no_flip_and_no_swap_gives_another_answer() -> None:
    outcome = integrity.run(Effort(quick=True, seed=3))
    assert outcome.failures == ()
    assert outcome.trials > 300


@pytest.mark.parametrize("name", ["signed footer", "encrypted footer, CTR"])
def test_a_change_where_no_tag_is_would_be_seen(tmp_path: Path, name: str) -> None:
    (case,) = (case for case in CASES if case.name == name)
    path = written(tmp_path, case, "x")
    sound, known = path.read_bytes(), answers(path, case)
    free = set(range(len(sound))) - set(authenticated(path, case))

    def told(place: int) -> set[str | None]:
        changed = bytearray(sound)
        changed[place] ^= 0x01
        return {told for _, told in tried(tmp_path, bytes(changed), case, known)}

    assert any("another answer" in told(place) for place in sorted(free))


def test_modules_of_an_earlier_version_are_tried(tmp_path: Path) -> None:
    path = written(tmp_path, CASES[0], "x")
    told = [told for told, _ in integrity._replayed(path, CASES[0])]
    assert told[:2] == ["filter a0 of an earlier version", "filter b0 of an earlier version"]
    assert len(set(told)) == len(told) == 5
