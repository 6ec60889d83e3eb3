"""What holds for every test: none may depend on the machine's speed.

Tests of foreign readers record what they saw; it is held against the page on compatibility, or
written there with `--compatibility`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from secure_bloom.kernels.loading import Warmth
from tests.compatibility import PAGE, Compatibility, parse, render

settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("unhurried")


@pytest.fixture(scope="module")
def is_warm() -> bool:
    """Whether compiled code counts as loaded; a module that is about it has its own fixture."""
    return False


@pytest.fixture(autouse=True)
def _warmth(monkeypatch: pytest.MonkeyPatch, is_warm: bool) -> None:
    """What is read, and why, must not depend on the tests that ran before."""
    monkeypatch.setattr(Warmth, "is_worth", lambda _self, _saved: is_warm)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--compatibility",
        metavar="FILE",
        help="write what readers were seen to do into FILE, if all tests pass; not with -n",
    )


@pytest.fixture(scope="session")
def compatibility(request: pytest.FixtureRequest) -> Iterator[Compatibility]:
    """Record here what a reader was seen to do; it fails where the committed page differs."""
    target = request.config.getoption("--compatibility")
    if target is None:
        committed = parse(PAGE.read_text()) if PAGE.exists() else frozenset()
        yield Compatibility(claims=set(), committed=committed)
        return
    seen = Compatibility(claims=set())
    yield seen
    if request.session.testsfailed == 0:
        Path(target).write_text(render(seen.claims))
