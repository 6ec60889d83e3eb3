"""Whether compiled code is worth its loading."""

from __future__ import annotations

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import secure_bloom.kernels.loading as module
from secure_bloom.kernels.loading import CompiledCode

#: The method itself: for the tests of other modules it is replaced.
_IS_WORTH = CompiledCode.is_worth


@pytest.fixture(autouse=True)
def _real(monkeypatch: pytest.MonkeyPatch, _compiled_code: None) -> None:
    monkeypatch.setattr(CompiledCode, "is_worth", _IS_WORTH)


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)


def test_it_is_where_it_is_loaded_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", importlib)
    assert CompiledCode().is_worth(0)


@pytest.mark.usefixtures("unloaded")
def test_small_savings_add_up() -> None:
    compiled_code = CompiledCode()
    assert [compiled_code.is_worth(0.125) for _ in range(6)] == [False] * 2 + [True] * 4
    assert not CompiledCode().is_worth(0.125)


@pytest.mark.usefixtures("unloaded")
def test_a_large_saving_is_worth_it_at_once() -> None:
    assert CompiledCode().is_worth(10)
    assert not CompiledCode().is_worth(0)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize(("times", "is_worth"), [(1000, True), (1, False)])
def test_what_is_to_come_counts(times: int, is_worth: bool) -> None:
    compiled_code = CompiledCode()
    compiled_code.is_worth(0.001)
    compiled_code.foresee(times)
    assert compiled_code.is_worth(0.001) is is_worth


@pytest.mark.usefixtures("unloaded")
def test_work_that_is_expected_counts_from_its_first_value_on() -> None:
    compiled_code = CompiledCode()
    compiled_code.expect(0.2)
    assert not compiled_code.is_worth(0.2)
    compiled_code.expect(0.2)
    assert compiled_code.is_worth(0)
    # Less work behind it takes nothing back.
    compiled_code.expect(0)
    assert compiled_code.is_worth(0)


@pytest.mark.usefixtures("unloaded")
def test_asking_loads_nothing() -> None:
    assert CompiledCode().is_worth(10)
    assert "numba" not in sys.modules


@pytest.mark.usefixtures("unloaded")
def test_threads_add_to_one_count() -> None:
    compiled_code = CompiledCode()
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(compiled_code.is_worth, [0.001] * 2000))
    # What is lost between threads only makes it come later.
    assert found.count(False) >= 290
    assert compiled_code.is_worth(0.5)


def test_a_process_has_one() -> None:
    assert isinstance(module.compiled_code, CompiledCode)
