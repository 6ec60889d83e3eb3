"""Sizes against the specification, random blocks and exact sums; the promise is kept by all."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import comb

import numpy as np
import pytest

from secure_bloom.bloom import sizing
from secure_bloom.bloom.sizing import block_count_for, expected_fpp
from secure_bloom.errors import PolicyError
from tests.bloom.test_split_block import filled, random_hashes


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Sizes are worked out anew: one that an earlier test asked for must not hide a mistake."""
    sizing._limits.cache_clear()


@pytest.mark.parametrize(
    ("bits_per_value", "fpp"),
    [(6.0, 0.10), (10.5, 0.01), (16.9, 0.001), (26.4, 0.0001), (41, 0.00001)],
)
def test_the_specifications_table(bits_per_value: float, fpp: float) -> None:
    values = 1_000_000
    block_count = round(values * bits_per_value / 256)
    assert expected_fpp(values, block_count) == pytest.approx(fpp, rel=0.02)


@pytest.mark.parametrize(("values", "fpp"), [(26_214, 0.0126), (52_428, 0.18), (13_107, 0.0004)])
def test_the_specifications_examples_of_1024_blocks(values: int, fpp: float) -> None:
    assert expected_fpp(values, 1024) == pytest.approx(fpp, rel=0.06)


def inclusion_exclusion_fpp(values: int, block_count: int) -> float:
    """The same expectation, without a sum over Poisson terms: E[a^i] = exp(-load * (1 - a))."""
    with localcontext(prec=80):
        load = Decimal(values) / block_count
        share = Decimal(31) / 32
        return float(sum(comb(8, k) * (-1) ** k * (-load * (1 - share**k)).exp() for k in range(9)))


@pytest.mark.parametrize("block_count", [1, 1024])
@pytest.mark.parametrize(
    "load", [1 / 1024, 1, 2, 7, 30, 64, 100, 300, 700, 1000, 4095, 4096, 4097, 100_000, 10**9]
)
def test_the_expected_fpp_is_exact_at_every_load(load: float, block_count: int) -> None:
    values = max(1, round(load * block_count))
    exact = inclusion_exclusion_fpp(values, block_count)
    assert expected_fpp(values, block_count) == pytest.approx(exact, rel=1e-9, abs=0)


def test_no_values_have_no_false_positives() -> None:
    assert expected_fpp(0, 1) == 0.0


@pytest.mark.parametrize("fpp", [0.1, 0.01, 0.001, 0.00001])
@pytest.mark.parametrize("values", [0, 1, 2, 17, 40, 300, 5000, 100_000])
def test_the_size_keeps_the_promise_and_is_not_wasteful(values: int, fpp: float) -> None:
    block_count = block_count_for(values, fpp, 1 << 27)
    for seed in range(10):
        assert filled(block_count, random_hashes(values, seed)).folded_to(fpp).fpp() <= fpp
    assert block_count & (block_count - 1) == 0
    assert block_count <= 2 or expected_fpp(values, block_count // 4) > fpp


@pytest.mark.parametrize(
    ("max_bytes", "block_count"), [(32, 1), (63, 1), (64, 2), (1000, 16), (1 << 20, 1 << 15)]
)
def test_max_bytes_bounds_the_size(max_bytes: int, block_count: int) -> None:
    assert block_count_for(10**12, 0.01, max_bytes) == block_count


def test_no_values_take_one_block() -> None:
    assert block_count_for(0, 0.01, 1 << 20) == 1


@pytest.mark.parametrize(("values", "max_bytes"), [(-1, 1024), (5, 31)])
def test_sizes_that_cannot_be_are_refused(values: int, max_bytes: int) -> None:
    with pytest.raises(PolicyError) as refused:
        block_count_for(values, 0.01, max_bytes)
    assert refused.value.message == (
        f"cannot size a Bloom filter for {values} values in {max_bytes} bytes, "
        "wanted at least 0 and 32"
    )


@pytest.mark.parametrize(("load", "block_count"), [(5, 1), (15, 4), (30, 1000)])
def test_six_standard_deviations_are_allowed_for(load: int, block_count: int) -> None:
    """Against 20,000 random blocks, counted word by word."""
    rng = np.random.default_rng(1)
    where = np.repeat(np.arange(20_000), rng.poisson(load, 20_000))
    blocks = np.zeros((20_000, 8), np.uint32)
    for word in range(8):
        bits = np.uint32(1) << rng.integers(0, 32, len(where), np.uint32)
        np.bitwise_or.at(blocks[:, word], where, bits)
    shares = (np.bitwise_count(blocks) / 32).prod(axis=1)
    wanted = shares.mean() + 6 * shares.std() / block_count**0.5
    found = sizing._unlucky_fpp(load * block_count, block_count)
    assert found == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize(
    ("values", "fpp", "block_count"),
    [(1, 0.01, 1), (20, 0.01, 2), (1000, 0.01, 64), (1000, 0.0001, 128), (10**6, 0.01, 1 << 16)],
)
def test_known_sizes(values: int, fpp: float, block_count: int) -> None:
    assert block_count_for(values, fpp, 1 << 27) == block_count


@pytest.mark.parametrize("fpp", [0.9, 0.1, 0.01, 0.00001])
@pytest.mark.parametrize("block_count", [1, 64])
def test_answers_that_are_remembered_are_those_of_the_formula(fpp: float, block_count: int) -> None:
    limits = sizing._Limits(fpp, block_count)
    values = np.random.default_rng(block_count).integers(0, 40 * block_count, 40).tolist()
    for number in [*values, *sorted(values)]:
        is_enough = number == 0 or sizing._unlucky_fpp(number, block_count) <= fpp
        assert limits.is_enough_for(number) == is_enough
