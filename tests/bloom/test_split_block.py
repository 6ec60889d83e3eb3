"""SplitBlockBloomFilter against the specification, other writers' bits, and its own promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.bloom import split_block, xxh64
from secure_bloom.bloom.sizing import expected_fpp
from secure_bloom.bloom.split_block import Probe, SplitBlockBloomFilter
from secure_bloom.errors import FormatError, PolicyError
from testing.project import CORPUS, NO_CORPUS

HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=300)


def random_hashes(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def filled(block_count: int, hashes: np.ndarray | list[int]) -> SplitBlockBloomFilter:
    bloom = SplitBlockBloomFilter(block_count)
    bloom.insert_hashes(np.array(hashes, np.uint64))
    return bloom


# --- other writers' bits ---------------------------------------------------------------------


def test_the_public_corpus_filter_bit_for_bit() -> None:
    corpus = CORPUS / "bloom_filter.xxhash.bin"
    if not corpus.exists():
        pytest.skip(NO_CORPUS)
    bloom = SplitBlockBloomFilter(32)
    for value in (b"hello", b"parquet", b"bloom", b"filter"):
        bloom.insert(value)
    assert bloom.to_bytes() == corpus.read_bytes()[-1024:]


def pyarrow_file(path: Path, column: pa.Array) -> bytes:
    options = {"column": {"ndv": len(column), "fpp": 0.01}}
    pq.write_table(pa.table({"column": column}), path, bloom_filter_options=options)
    return path.read_bytes()


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_pyarrow_writes_the_same_bits_for_fixed_values(tmp_path: Path, dtype: str) -> None:
    values = np.arange(1, 5001).astype(dtype)
    bloom = SplitBlockBloomFilter(256)
    bloom.insert_fixed(values)
    assert bloom.to_bytes() in pyarrow_file(tmp_path / "file", pa.array(values))


@pytest.mark.parametrize("width", [12, 16, 21])
def test_pyarrow_writes_the_same_bits_for_fixed_length_bytes(tmp_path: Path, width: int) -> None:
    values = [b"%0*d" % (width, n) for n in range(5000)]
    bloom = SplitBlockBloomFilter(256)
    bloom.insert_fixed(np.frombuffer(b"".join(values), np.uint8).reshape(-1, width))
    assert bloom.to_bytes() in pyarrow_file(tmp_path / "file", pa.array(values, pa.binary(width)))


def test_pyarrow_writes_the_same_bits_for_strings(tmp_path: Path) -> None:
    strings = pa.array([f"{n}@example.com" * (n % 5) for n in range(5000)])
    offsets = np.frombuffer(strings.buffers()[1], np.int32)[: len(strings) + 1]
    bloom = SplitBlockBloomFilter(256)
    bloom.insert_binary(offsets, np.frombuffer(strings.buffers()[2], np.uint8))
    assert bloom.to_bytes() in pyarrow_file(tmp_path / "file", strings)


# --- inserting and checking ------------------------------------------------------------------


@given(HASHES, st.integers(1, 40))
def test_one_by_one_and_in_bulk_make_the_same_filter(hashes: list[int], block_count: int) -> None:
    one_by_one = SplitBlockBloomFilter(block_count)
    for h in hashes:
        one_by_one.insert_hash(h)
    assert one_by_one == filled(block_count, hashes)


@given(HASHES, HASHES, st.integers(1, 40))
def test_no_false_negative_and_both_checks_agree(
    inserted: list[int], others: list[int], block_count: int
) -> None:
    bloom = filled(block_count, inserted)
    found = bloom.check_hashes(np.array(inserted + others, np.uint64))
    assert found[: len(inserted)].all()
    assert found.tolist() == [bloom.check_hash(h) for h in inserted + others]


@given(st.lists(st.binary(max_size=50)), st.binary(max_size=50))
def test_values_that_were_inserted_are_found(values: list[bytes], other: bytes) -> None:
    bloom = SplitBlockBloomFilter(64)
    for value in values:
        bloom.insert(value)
    assert all(bloom.check(value) for value in values)
    assert bloom.check(other) == bloom.check_hash(xxh64.hash_value(other))


def test_an_empty_filter_finds_nothing() -> None:
    bloom = SplitBlockBloomFilter(3)
    assert not bloom.check(b"")
    assert not bloom.check_hashes(random_hashes(1000)).any()
    assert bloom.check_hashes(random_hashes(0)).shape == (0,)


def test_one_missing_bit_of_eight_is_an_absence() -> None:
    whole = filled(1, [0x0123456789ABCDEF]).to_bytes()
    for word in range(8):
        torn = bytearray(whole)
        torn[4 * word : 4 * word + 4] = bytes(4)
        bloom = SplitBlockBloomFilter.from_bytes(torn)
        assert not bloom.check_hash(0x0123456789ABCDEF)
        assert not bloom.check_hashes(np.array([0x0123456789ABCDEF], np.uint64))[0]


def test_values_in_chunks_make_the_same_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xxh64, "CHUNK", 7)
    values = np.arange(100, dtype=np.int64)
    fixed, binary = SplitBlockBloomFilter(8), SplitBlockBloomFilter(8)
    fixed.insert_fixed(values)
    binary.insert_binary(np.arange(0, 801, 8, dtype=np.int32), values.view(np.uint8))
    assert fixed == binary == filled(8, xxh64.hash_fixed(values))


def test_hostile_offsets_leave_the_filter_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xxh64, "CHUNK", 2)
    bloom = SplitBlockBloomFilter(1)
    with pytest.raises(FormatError, match="descend"):
        bloom.insert_binary(np.array([0, 1, 2, 3, 2]), np.zeros(9, np.uint8))
    assert bloom == SplitBlockBloomFilter(1)


@pytest.mark.parametrize("h", [-1, 2**64])
def test_what_is_no_hash_is_refused(h: int) -> None:
    bloom = SplitBlockBloomFilter(2)
    for use in (bloom.insert_hash, bloom.check_hash):
        with pytest.raises(
            PolicyError, match=r"^h is not a hash, wanted an unsigned 64-bit integer$"
        ):
            use(h)
    assert bloom.byte_count == 64


@pytest.mark.parametrize("hashes", [np.zeros(2, np.int64), np.zeros((2, 2), np.uint64)])
def test_arrays_that_hold_no_hashes_are_refused(hashes: np.ndarray) -> None:
    bloom = SplitBlockBloomFilter(2)
    for use in (bloom.insert_hashes, bloom.check_hashes):
        with pytest.raises(PolicyError, match="wanted 1-D uint64"):
            use(hashes)


def test_hashes_may_lie_anywhere_in_memory() -> None:
    hashes = random_hashes(200)
    unaligned = np.frombuffer(b"!" + hashes.tobytes(), np.uint8)[1:].view(np.uint64)
    for placed in (hashes[::2], hashes[::-1], unaligned):
        bloom = SplitBlockBloomFilter(8)
        bloom.insert_hashes(placed)
        assert bloom == filled(8, placed.tolist())
        assert bloom.check_hashes(placed).all()


# --- bytes -----------------------------------------------------------------------------------


@given(HASHES, st.integers(1, 40))
def test_bytes_there_and_back(hashes: list[int], block_count: int) -> None:
    bloom = filled(block_count, hashes)
    again = SplitBlockBloomFilter.from_bytes(memoryview(bloom.to_bytes()))
    assert again == bloom
    assert again.to_bytes() == bloom.to_bytes()
    assert again.byte_count == 32 * again.block_count == 32 * block_count


def test_a_filter_keeps_its_own_copy_of_the_bytes() -> None:
    source = bytearray(32)
    bloom = SplitBlockBloomFilter.from_bytes(source)
    bloom.insert(b"bloom")
    assert source == bytes(32)


@pytest.mark.parametrize("bulk", [False, True])
def test_a_filter_over_a_part_of_some_bytes_leaves_them_as_they_are(bulk: bool) -> None:
    stored = bytes(range(256)) * 2
    bloom = SplitBlockBloomFilter.from_bytes(memoryview(stored)[32:96])
    assert bloom.to_bytes() == stored[32:96]
    assert bloom == SplitBlockBloomFilter.from_bytes(stored[32:96])
    if bulk:
        bloom.insert_hashes(np.arange(40, dtype=np.uint64))
    else:
        bloom.insert_hash(0)
    assert bloom.check_hash(0)
    assert bloom.to_bytes() != stored[32:96]
    assert stored == bytes(range(256)) * 2


@given(HASHES, st.integers(0, 2**64 - 1), st.integers(1, 40))
def test_a_probe_asks_any_filter_what_its_hash_does(
    inserted: list[int], other: int, block_count: int
) -> None:
    bloom = SplitBlockBloomFilter.from_bytes(filled(block_count, inserted).to_bytes())
    for h in [*inserted, other]:
        assert bloom.check_probe(Probe.of(h)) == bool(
            bloom.check_hashes(np.array([h], np.uint64))[0]
        )


@pytest.mark.parametrize("block_count", [1, 512, 513])
def test_fill_is_the_share_of_set_bits(block_count: int) -> None:
    bloom = filled(block_count, random_hashes(3 * block_count))
    bits = np.unpackbits(np.frombuffer(bloom.to_bytes(), np.uint8))
    assert bloom.fill() == bits.mean()


@pytest.mark.parametrize("length", [0, 1, 31, 33, 1023])
def test_a_bitset_that_is_not_whole_blocks_is_refused(length: int) -> None:
    with pytest.raises(FormatError, match=f"has {length} bytes, wanted a positive multiple of 32"):
        SplitBlockBloomFilter.from_bytes(bytes(length))


@pytest.mark.parametrize("block_count", [0, -1, 2**31])
def test_a_number_of_blocks_outside_the_specification_is_refused(block_count: int) -> None:
    with pytest.raises(PolicyError, match="between 1 and 2147483647"):
        SplitBlockBloomFilter(block_count)


def test_equality_and_repr() -> None:
    bloom = filled(2, [1, 2])
    assert bloom == filled(2, [2, 1])
    assert bloom != filled(2, [3])
    assert bloom != bloom.to_bytes()
    assert repr(bloom) == "<SplitBlockBloomFilter of 2 blocks, 64 bytes>"
    with pytest.raises(TypeError, match="unhashable"):
        hash(bloom)


# --- false-positive probability --------------------------------------------------------------


def test_no_values_have_no_false_positives() -> None:
    assert SplitBlockBloomFilter(4).fpp() == 0.0
    assert SplitBlockBloomFilter(4).fill() == 0.0


def test_a_full_filter_passes_everything() -> None:
    full = SplitBlockBloomFilter.from_bytes(b"\xff" * 320)
    assert full.fpp() == 1.0
    assert full.fill() == 1.0


def test_exact_fpp_and_fill_of_bits_counted_by_hand() -> None:
    words = [0x1, 0x3, 0x7, 0xF, 0xFF, 0xFFFF, 0xFFFFFFFF, 0x80000000]
    one_block = b"".join(word.to_bytes(4, "little") for word in words)
    bloom = SplitBlockBloomFilter.from_bytes(one_block + bytes(32))
    assert bloom.fpp() == (1 * 2 * 3 * 4 * 8 * 16 * 32 * 1) / 32**8 / 2
    assert bloom.fill() == (1 + 2 + 3 + 4 + 8 + 16 + 32 + 1) / 512


def test_every_block_of_a_large_filter_counts() -> None:
    blocks = 3 * split_block._COUNTED_BLOCKS
    bloom = SplitBlockBloomFilter.from_bytes(b"\xff" * 32 * (blocks // 3) + bytes(64 * blocks // 3))
    assert bloom.fpp() == 1 / 3


@pytest.mark.parametrize("values", [40_000, 100_000, 200_000])
def test_exact_measured_and_expected_fpp_agree(values: int) -> None:
    bloom = filled(4096, random_hashes(values))
    probes = 1_000_000
    measured = bloom.check_hashes(random_hashes(probes, seed=1)).mean()
    exact = bloom.fpp()
    assert abs(measured - exact) < 5 * (exact * (1 - exact) / probes) ** 0.5
    assert exact == pytest.approx(expected_fpp(values, 4096), rel=0.1)


# --- folding ---------------------------------------------------------------------------------


@given(HASHES, st.integers(1, 20))
def test_folding_is_building_with_half_the_blocks(hashes: list[int], half: int) -> None:
    assert filled(2 * half, hashes).folded() == filled(half, hashes)


def test_an_odd_number_of_blocks_does_not_fold() -> None:
    with pytest.raises(PolicyError, match="cannot fold 3 blocks"):
        SplitBlockBloomFilter(3).folded()


@given(HASHES, st.sampled_from([1, 3, 8, 12, 64]), st.floats(1e-9, 0.5))
def test_folding_goes_as_far_as_the_promise_holds(
    hashes: list[int], block_count: int, fpp: float
) -> None:
    bloom = filled(block_count, hashes)
    folded = bloom.folded_to(fpp)
    assert folded == filled(folded.block_count, hashes)
    assert folded.fpp() <= fpp or folded is bloom
    assert folded.block_count % 2 or folded.folded().fpp() > fpp


def test_an_empty_filter_folds_to_one_block() -> None:
    assert SplitBlockBloomFilter(1024).folded_to(0.01).byte_count == 32


def test_the_largest_filter_that_readers_take_works() -> None:
    block_count = (128 << 20) // 32
    bloom = SplitBlockBloomFilter(block_count)
    hashes = random_hashes(100_000)
    bloom.insert_hashes(hashes)
    bloom.insert_hash(2**64 - 1)
    assert bloom.check_hashes(hashes).all()
    assert any(bloom.to_bytes()[-32:])
    assert bloom.folded_to(0.01) == filled(8192, [*hashes, 2**64 - 1])


# --- what is imported ------------------------------------------------------------------------


def run(program: str, **environment: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_single_values_import_nothing_heavy() -> None:
    program = """
import sys
from secure_bloom.bloom.sizing import block_count_for
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
bloom = SplitBlockBloomFilter(block_count_for(100, 0.01, 1024))
bloom.insert(b"bloom")
assert bloom.check(b"bloom") and not bloom.check(b"filter") and bloom.fill() > 0
print({"numpy", "pyarrow"} & set(sys.modules))
"""
    assert run(program) == "set()"
