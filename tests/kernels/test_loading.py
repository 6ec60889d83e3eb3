"""Whether compiled code is worth its loading."""

from __future__ import annotations

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from secure_bloom.kernels.loading import CompiledCode, compiled_code

#: The method itself: for the tests of other modules it is replaced.
_IS_WORTH = CompiledCode.is_worth


@pytest.fixture(autouse=True)
def _real(monkeypatch: pytest.MonkeyPatch, _compiled_code: None) -> None:
    monkeypatch.setattr(CompiledCode, "is_worth", _IS_WORTH)


def new(*, is_loaded: bool = False, least: float = 0.3, loading: float = 0.3) -> CompiledCode:
    return CompiledCode(lambda: is_loaded, least, lambda: loading)


def test_it_is_where_it_is_loaded_already() -> None:
    assert new(is_loaded=True).is_worth(0)


def test_numba_is_loaded_if_anything_has_imported_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", importlib)
    assert compiled_code.is_worth(0)


def test_small_savings_add_up() -> None:
    code = new()
    assert [code.is_worth(0.125) for _ in range(6)] == [False] * 2 + [True] * 4
    assert not new().is_worth(0.125)


def test_a_large_saving_is_worth_it_at_once() -> None:
    assert new().is_worth(10)
    assert not new().is_worth(0)


def test_what_loading_takes_is_looked_up_once_the_least_is_missed() -> None:
    asked = []

    def loading_takes() -> float:
        asked.append(1)
        return 0.3

    code = CompiledCode(lambda: False, 0.1, loading_takes)
    assert not code.is_worth(0.05)
    assert not asked
    assert not code.is_worth(0.1)
    assert not code.is_worth(0.1)
    assert code.is_worth(0.1)
    assert asked == [1]


@pytest.mark.parametrize(("times", "is_worth"), [(1000, True), (1, False)])
def test_what_is_to_come_counts(times: int, is_worth: bool) -> None:
    code = new()
    code.is_worth(0.001)
    code.foresee(times)
    assert code.is_worth(0.001) is is_worth


def test_work_that_is_expected_counts_from_its_first_value_on() -> None:
    code = new()
    code.expect(0.2)
    assert not code.is_worth(0.2)
    code.expect(0.2)
    assert code.is_worth(0)
    # Less work behind it takes nothing back.
    code.expect(0)
    assert code.is_worth(0)


def test_threads_add_to_one_count() -> None:
    code = new()
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(code.is_worth, [0.001] * 2000))
    # What is lost between threads only makes it come later.
    assert found.count(False) >= 290
    assert code.is_worth(0.5)
