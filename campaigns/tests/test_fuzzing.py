"""Short fuzzing of every target, and every input that broke something once."""

from __future__ import annotations

import contextlib
import itertools
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns.fuzzing import child, kernels, targets
from campaigns.fuzzing.mutator import Mutator
from secure_bloom.errors import SecureBloomError
from secure_bloom.kernels import extension

INPUTS = 30
CRASHES = sorted(child.CRASHES.iterdir()) if child.CRASHES.is_dir() else []


@pytest.fixture(autouse=True)
def _no_scratch_file() -> Iterator[None]:
    yield
    targets.SCRATCH.unlink(missing_ok=True)


@pytest.mark.parametrize("name", targets.TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_mutated_inputs_raise_named_errors_alone(name: str) -> None:
    run = targets.TARGETS[name].run
    for data in itertools.islice(child.inputs(name, seed=7), INPUTS):
        with contextlib.suppress(SecureBloomError):
            run(data)


@pytest.mark.parametrize("path", CRASHES, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore")
def test_what_broke_once_is_a_named_error(path: Path) -> None:
    run = targets.TARGETS[path.name.partition("-")[0]].run
    with contextlib.suppress(SecureBloomError):
        run(path.read_bytes())


def test_a_seed_gives_the_same_inputs_again() -> None:
    one, other = (Mutator([b"abcdefgh", b"12345678"], 3) for _ in range(2))
    assert [one.input() for _ in range(50)] == [other.input() for _ in range(50)]


def test_what_is_no_error_of_ours_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(child, "CRASHES", tmp_path / "crashes")
    failures: dict[str, str] = {}

    def broken(_data: bytes) -> None:
        raise IndexError("out of range")

    child.attempt("thrift", broken, b"input", failures)
    (failure,) = failures.values()
    assert "IndexError" in failure
    (kept,) = (tmp_path / "crashes").iterdir()
    assert kept.read_bytes() == b"input"


def test_an_input_that_hangs_is_kept_and_the_next_ones_are_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(child, "CRASHES", tmp_path / "crashes")
    failures: dict[str, str] = {}
    armed = []

    def run(data: bytes) -> None:
        armed.append(signal.getitimer(signal.ITIMER_PROF)[0] > 0)
        if data == b"slow":
            signal.raise_signal(signal.SIGPROF)

    before = signal.signal(signal.SIGPROF, child._hangs)
    try:
        for data in (b"fast", b"slow", b"fast"):
            child.in_time("thrift", run, data, failures)
    finally:
        signal.signal(signal.SIGPROF, before)
    assert armed == [True, True, True]
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0
    (failure,) = failures.values()
    assert "HangError" in failure
    (kept,) = (tmp_path / "crashes").iterdir()
    assert kept.read_bytes() == b"slow"


@pytest.mark.skipif(extension.native is None, reason="needs the C extension")
def test_each_kernel_is_called() -> None:
    names = kernels.kernels()
    called = {names[call[0]] for call in kernels.seeds()}
    # Read only for columns whose dictionary is used by their rows again and again.
    assert called >= {*names} - {"copy_entries"}
