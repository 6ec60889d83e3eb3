"""BloomFilter64: bits and answers are those of Paimon's Java code, in bulk as one at a time."""

from __future__ import annotations

import base64
import hashlib
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.paimon import BloomFilter64, DataType, hash_value, sizing
from tests.paimon.vectors import load, value_of

HASHES = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=50)
SIZES = st.tuples(st.integers(1, 100), st.sampled_from([0.5, 0.1, 0.01, 1e-12, 1e-45]))


@pytest.mark.parametrize("case", load("params")["cases"], ids=str)
def test_sizing_is_that_of_java(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(PolicyError, match="bits"):
            sizing(case["items"], case["fpp"])
        return
    assert sizing(case["items"], case["fpp"]) == (case["bits"], case["hashes"])


@pytest.mark.parametrize("fpp", [0.0, -1.0, 1.1, float("nan")])
def test_an_fpp_that_is_no_probability_is_refused(fpp: float) -> None:
    with pytest.raises(PolicyError, match="fpp"):
        sizing(10, fpp)


@pytest.mark.parametrize("in_bulk", [False, True], ids=["one by one", "in bulk"])
@pytest.mark.parametrize("case", load("bits")["cases"], ids=lambda case: str(case["items"]))
def test_bits_and_answers_are_those_of_java(case: dict[str, Any], in_bulk: bool) -> None:
    filled = BloomFilter64.sized(case["items"], case["fpp"])
    assert (filled.bit_count, filled.hash_functions) == (case["bits"], case["num_hashes"])
    if in_bulk:
        filled.insert_hashes(np.array(case["added"], np.int64))
        answers = filled.check_hashes(np.array(case["probes"], np.int64)).tolist()
    else:
        for h in case["added"]:
            filled.insert_hash(h)
        answers = [filled.check_hash(h) for h in case["probes"]]
    assert filled.bitset == base64.b64decode(case["bitset"])
    assert "".join(str(int(answer)) for answer in answers) == case["answers"]


@pytest.mark.parametrize(
    "case", load("bloom")["cases"], ids=lambda case: f"{case['type']} {case['options']}"
)
def test_a_body_is_that_of_java_and_is_read_as_java_reads_it(case: dict[str, Any]) -> None:
    data_type, options = DataType.parse(case["type"]), case["options"]
    filled = BloomFilter64.sized(
        int(options.get("items", 1_000_000)), float(options.get("fpp", 0.1))
    )
    hashes = [hash_value(data_type, value_of(data_type, value)) for value in case["values"]]
    filled.insert_hashes(np.array([h for h in hashes if h is not None], np.int64))
    body = filled.to_bytes()
    assert (len(body), hashlib.sha256(body).hexdigest()) == (case["len"], case["sha256"])
    if "serialized" in case:
        assert body == base64.b64decode(case["serialized"])
    read = BloomFilter64.from_bytes(body)
    probes = (hash_value(data_type, value_of(data_type, value)) for value in case["probes"])
    answers = ["1" if h is None else str(int(read.check_hash(h))) for h in probes]
    assert "".join(answers) == case["answers"]


@given(HASHES, HASHES, SIZES)
def test_bulk_does_what_one_at_a_time_does(
    inserted: list[int], probed: list[int], size: tuple[int, float]
) -> None:
    single, bulk = BloomFilter64.sized(*size), BloomFilter64.sized(*size)
    for h in inserted:
        single.insert_hash(h)
    bulk.insert_hashes(np.array(inserted, np.int64))
    assert single == bulk
    answers = bulk.check_hashes(np.array(probed, np.int64)).tolist()
    assert answers == [single.check_hash(h) for h in probed]
    assert all(single.check_hash(h) for h in inserted)


@given(HASHES, SIZES)
def test_from_bytes_mirrors_to_bytes(inserted: list[int], size: tuple[int, float]) -> None:
    written = BloomFilter64.sized(*size)
    written.insert_hashes(np.array(inserted, np.int64))
    read = BloomFilter64.from_bytes(written.to_bytes())
    assert read == written
    assert read.to_bytes() == written.to_bytes()


@given(st.binary(max_size=40))
def test_any_bytes_are_a_filter_or_a_format_error(body: bytes) -> None:
    try:
        read = BloomFilter64.from_bytes(body)
    except FormatError:
        return
    read.check_hash(-1)
    assert read.to_bytes() == body


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "-4 bytes"),
        (b"\0\0\0\3", "0 bytes"),
        (b"\x7f\xff\xff\xff\0", "2147483647 hash functions"),
    ],
)
def test_a_hostile_body_is_refused(body: bytes, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        BloomFilter64.from_bytes(body)


def test_a_number_of_hashes_that_java_reads_as_negative_answers_maybe() -> None:
    empty = BloomFilter64.sized(10, 1e-45)
    assert (empty.hash_functions, empty.checked_functions) == (150, 0)
    assert empty.check_hash(5)
    assert empty.check_hashes(np.array([5])).all()


def test_the_bits_tell_fpp_and_number_of_values() -> None:
    rng = np.random.default_rng(1)
    filled = BloomFilter64.sized(10_000, 0.01)
    filled.insert_hashes(rng.integers(-(1 << 63), 1 << 63, 10_000, np.int64))
    others = rng.integers(-(1 << 63), 1 << 63, 200_000, np.int64)
    measured = filled.check_hashes(others).mean()
    assert filled.fpp() == pytest.approx(measured, rel=0.15)
    assert filled.estimated_values() == pytest.approx(10_000, rel=0.03)


@pytest.mark.parametrize(("values", "wanted"), [(1, 0.01), (2, 0.01), (5, 0.001), (30, 0.001)])
def test_the_false_positives_of_few_values_are_those_that_are_measured(
    values: int, wanted: float
) -> None:
    """In few bits positions coincide: the formula for independent ones shows a fifth of them."""
    rng = np.random.default_rng(values)
    shown, measured = [], []
    for _ in range(20):
        filled = BloomFilter64.sized(values, wanted)
        filled.insert_hashes(rng.integers(-(1 << 63), 1 << 63, values, np.int64))
        others = rng.integers(-(1 << 63), 1 << 63, 20_000, np.int64)
        shown.append(filled.fpp())
        measured.append(filled.check_hashes(others).mean())
    assert np.mean(shown) == pytest.approx(np.mean(measured), rel=0.1)


def test_a_full_filter_has_no_estimate_of_its_values() -> None:
    assert BloomFilter64.from_bytes(b"\0\0\0\1\xff").estimated_values() is None


@pytest.mark.parametrize(
    "hashes", [np.zeros(3), np.zeros((2, 2), np.int64), np.zeros(2, np.uint64)]
)
def test_an_array_that_holds_no_hashes_is_refused(hashes: np.ndarray[Any, Any]) -> None:
    with pytest.raises(PolicyError, match="wanted 1-D int64"):
        BloomFilter64(8, 1).insert_hashes(hashes)


@pytest.mark.parametrize(("bits", "functions"), [(0, 1), (9, 1), (1 << 31, 1), (8, 0), (8, 2000)])
def test_a_filter_that_cannot_be_is_refused(bits: int, functions: int) -> None:
    with pytest.raises(PolicyError, match="wanted"):
        BloomFilter64(bits, functions)


def test_one_check_copied_the_whole_body() -> None:
    made = BloomFilter64(1 << 27, 5)
    made.insert_hash(7)
    body = made.to_bytes()
    tracemalloc.start()
    try:
        read = BloomFilter64.from_bytes(body)
        assert (read.check_hash(7), read.check_hash(8)) == (True, False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(body) // 100


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_filter_does_not_share_bytes_with_its_source(kind: type) -> None:
    made = BloomFilter64.sized(10, 0.01)
    made.insert_hash(7)
    body = kind(made.to_bytes())
    read = BloomFilter64.from_bytes(body)
    read.insert_hash(8)
    assert read.check_hash(7)
    assert body == made.to_bytes()
    again = BloomFilter64.from_bytes(body)
    assert again.check_hashes(np.array([7, 8])).tolist() == [True, False]
    if kind is bytearray:
        body[4:] = bytes(len(body) - 4)
    assert again.check_hash(7)
    assert again == made


@pytest.mark.parametrize("wrong", [(2.5, 0.1), (True, 0.1), ("5", 0.1), (5, "x"), (5, None)])
def test_sizes_of_a_wrong_type_are_refused(wrong: tuple[Any, Any]) -> None:
    with pytest.raises(PolicyError, match="is of type"):
        sizing(*wrong)
    with pytest.raises(PolicyError, match="is of type"):
        BloomFilter64.sized(*wrong)
    with pytest.raises(PolicyError, match="is of type"):
        BloomFilter64(8, wrong[1])


def test_one_value_in_the_smallest_filter_is_about_one() -> None:
    # Seven looks at one bit: double hashing of a multiple of the number of bits.
    assert BloomFilter64.from_bytes(b"\0\0\0\7\1").estimated_values() == 1
    assert BloomFilter64.from_bytes(b"\0\0\0\7\0").estimated_values() == 0
