"""The compiled loops do what those of numpy do, called by their addresses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from secure_bloom.kernels import machine_code, uncompiled
from secure_bloom.kernels.machine_code import CompiledLoops, compiled_loops


def both(run: Callable[[Any], Any]) -> Any:
    """What both kinds of loops answer, which is the same."""
    compiled, other = run(compiled_loops), run(uncompiled)
    np.testing.assert_array_equal(compiled, other)
    return compiled


def hashed(rows: NDArray[np.uint8]) -> Callable[[Any], Any]:
    def run(loops: Any) -> Any:
        hashes = np.empty(len(rows), np.uint64)
        loops.hash_rows(rows, hashes)
        return hashes

    return run


def spans(offsets: NDArray[Any], prefix: int, data: NDArray[np.uint8]) -> Callable[[Any], Any]:
    def run(loops: Any) -> Any:
        hashes = np.empty(len(offsets) - 1, np.uint64)
        loops.hash_spans(offsets, prefix, data, hashes)
        return hashes

    return run


@given(st.integers(0, 40), st.integers(1, 70), st.integers(0, 2**32))
def test_rows_of_any_width(count: int, width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)
    both(hashed(rows))


@pytest.mark.parametrize("width", [4, 8, 12, 16])
def test_rows_that_stand_at_odd_addresses(width: int) -> None:
    data = np.random.default_rng(0).integers(0, 256, 9 * width + 1, np.uint8)
    both(hashed(data[1:].reshape(9, width)))


@given(st.lists(st.binary(max_size=70)), st.sampled_from([np.int32, np.int64]), st.integers(0, 4))
def test_spans_of_any_length(values: list[bytes], dtype: type, prefix: int) -> None:
    values = [bytes(prefix) + value for value in values]
    offsets = np.cumsum([0, *map(len, values)], dtype=dtype)
    both(spans(offsets, prefix, np.frombuffer(b"".join(values), np.uint8)))


def test_spans_whose_offsets_are_every_second_number() -> None:
    offsets = np.repeat(np.arange(6, dtype=np.int64) * 3, 2)[::2]
    data = np.arange(15, dtype=np.uint8)
    both(spans(offsets, 0, data))


@given(st.integers(1, 9), st.integers(0, 300), st.integers(0, 2**32))
def test_filters(blocks: int, count: int, seed: int) -> None:
    hashes = np.random.default_rng(seed).integers(0, 2**64, 2 * count, np.uint64)

    def filled(loops: Any) -> Any:
        found = np.zeros((blocks, 8), np.uint32)
        loops.insert_hashes(found, hashes[::2])
        return found

    bitset = both(filled)

    def checked(loops: Any) -> Any:
        found = np.empty(len(hashes), np.bool_)
        loops.check_hashes(bitset, hashes, found)
        return found

    assert both(checked)[::2].all()


@given(st.binary(max_size=60), st.integers(0, 6))
def test_offsets_of_hostile_bytes(content: bytes, count: int) -> None:
    data = np.frombuffer(content, np.uint8)

    def run(loops: Any) -> Any:
        offsets = np.zeros(count + 1, np.int64)
        end = loops.byte_array_offsets(data, offsets)
        return [end, *offsets] if end >= 0 else [end]

    both(run)


@given(st.binary(max_size=12), st.integers(1, 8), st.integers(0, 3), st.integers(0, 60))
def test_levels_of_hostile_bytes(content: bytes, width: int, wanted: int, values: int) -> None:
    data = np.frombuffer(content, np.uint8)
    both(lambda loops: loops.count_level(data, width, wanted, values))


def test_much_data_is_done_while_others_have_the_lock() -> None:
    rows = np.random.default_rng(1).integers(0, 256, (machine_code._BRIEF // 8, 8), np.uint8)
    both(hashed(rows))


def test_threads_that_are_first_together_load_a_function_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded, code = [], machine_code._code

    def counted(name: str) -> Any:
        loaded.append(name)
        return code(name)

    monkeypatch.setattr(machine_code, "_code", counted)
    loops, rows = CompiledLoops(), np.zeros((3, 8), np.uint8)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: hashed(rows)(loops).tolist(), range(32)))
    assert done == [hashed(rows)(uncompiled).tolist()] * 32
    assert loaded == ["hash_8"]
