"""XXH64 in bulk against the ``xxhash`` library, and against arrays that lie about themselves."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.bloom import xxh64
from secure_bloom.errors import FormatError, PolicyError


def oracle(values: list[bytes]) -> list[int]:
    return [xxhash.xxh64_intdigest(value) for value in values]


def arrow_layout(values: list[bytes], offset_type: type = np.int32) -> tuple[np.ndarray, ...]:
    offsets = np.cumsum([0, *map(len, values)]).astype(offset_type)
    return offsets, np.frombuffer(b"".join(values), np.uint8)


def test_single_values_have_the_known_hashes() -> None:
    assert xxh64.hash_value(b"") == 0xEF46DB3751D8E999
    assert xxh64.hash_value(b"abc") == 0x44BC2CF5AD770999


def test_binary_values_of_every_length_up_to_300() -> None:
    values = [random.Random(length).randbytes(length) for length in range(301)]
    assert xxh64.hash_binary(*arrow_layout(values)).tolist() == oracle(values)


@given(st.lists(st.binary(max_size=200)), st.sampled_from([np.int32, np.int64]))
def test_any_binary_values(values: list[bytes], offset_type: type) -> None:
    assert xxh64.hash_binary(*arrow_layout(values, offset_type)).tolist() == oracle(values)


def test_binary_values_of_a_sliced_arrow_array() -> None:
    strings = pa.array(["left out", "grüße", "", "bloom"]).slice(1)
    offsets = np.frombuffer(strings.buffers()[1], np.int32)[strings.offset :][: len(strings) + 1]
    data = np.frombuffer(strings.buffers()[2], np.uint8)
    wanted = oracle(["grüße".encode(), b"", b"bloom"])
    assert offsets[0] > 0
    assert xxh64.hash_binary(offsets, data).tolist() == wanted


@pytest.mark.parametrize("dtype", ["i4", "u4", "f4", "i8", "u8", "f8", "u2", "f2", "V12", "V16"])
def test_fixed_values_of_every_type(dtype: str) -> None:
    values = np.frombuffer(random.Random(dtype).randbytes(480), dtype)
    assert xxh64.hash_fixed(values).tolist() == oracle([value.tobytes() for value in values])


@pytest.mark.parametrize("width", range(1, 70))
def test_fixed_values_of_every_width(width: int) -> None:
    rows = np.frombuffer(random.Random(width).randbytes(5 * width), np.uint8).reshape(5, width)
    assert xxh64.hash_fixed(rows).tolist() == oracle([row.tobytes() for row in rows])


def test_signs_of_zero_and_payloads_of_nan_are_different_bytes() -> None:
    values = np.array([0.0, -0.0, np.nan, -np.nan])
    assert xxh64.hash_fixed(values).tolist() == oracle([value.tobytes() for value in values])
    assert len(set(xxh64.hash_fixed(values).tolist())) == 4


@pytest.mark.parametrize(
    "values",
    [
        np.arange(40, dtype=np.int64)[::2],
        np.arange(40, dtype=">i8"),
        np.frombuffer(bytes(1) + np.arange(40).tobytes(), np.int64, offset=1),
        np.asfortranarray(np.arange(80, dtype=np.uint8).reshape(10, 8)),
        np.arange(80, dtype=np.uint8).reshape(10, 8)[:, 1:5],
    ],
    ids=["strided", "big-endian", "unaligned", "fortran", "columns"],
)
def test_fixed_values_however_they_lie_in_memory(values: np.ndarray) -> None:
    little = values.astype(values.dtype.newbyteorder("<"))
    assert xxh64.hash_fixed(values).tolist() == oracle([value.tobytes() for value in little])


def test_the_callers_arrays_stay_writable() -> None:
    offsets, data = np.array([0, 3]), np.zeros(3, np.uint8)
    xxh64.hash_fixed(data)
    xxh64.hash_binary(offsets, data)
    assert offsets.flags.writeable
    assert data.flags.writeable


def test_no_values_have_no_hashes() -> None:
    assert xxh64.hash_fixed(np.empty(0, np.int64)).shape == (0,)
    assert xxh64.hash_fixed(np.empty((0, 5), np.uint8)).shape == (0,)
    assert xxh64.hash_binary(np.array([7], np.int32), np.zeros(9, np.uint8)).shape == (0,)


def test_chunks_are_the_whole_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xxh64, "CHUNK", 3)
    values = [b"%d" % n for n in range(8)]
    pieces = list(xxh64.binary_chunks(*arrow_layout(values)))
    assert [len(piece) for piece in pieces] == [3, 3, 2]
    assert np.concatenate(pieces).tolist() == oracle(values)
    fixed = list(xxh64.fixed_chunks(np.arange(8)))
    assert np.concatenate(fixed).tolist() == xxh64.hash_fixed(np.arange(8)).tolist()


@pytest.mark.parametrize(
    ("offsets", "complaint"),
    [
        ([], "empty"),
        ([0, 5, 4, 9], "descend"),
        ([-1, 5], "run from -1 to 5"),
        ([0, 11], "run from 0 to 11"),
        ([11, 11], "the data has 10 bytes"),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_hostile_offsets_are_refused(offsets: list[int], complaint: str, dtype: type) -> None:
    with pytest.raises(FormatError, match=complaint):
        xxh64.hash_binary(np.array(offsets, dtype), np.zeros(10, np.uint8))


def test_offsets_that_overflow_when_subtracted_are_refused() -> None:
    limits = np.iinfo(np.int64)
    offsets = np.array([0, limits.max, limits.min, -1, 5])
    with pytest.raises(FormatError, match="descend"):
        xxh64.hash_binary(offsets, np.zeros(10, np.uint8))


@pytest.mark.parametrize(
    "values",
    [
        np.array(["a"], object),
        np.array(["a"]),
        np.array([True]),
        np.zeros((2, 2), np.int32),
        np.array(3),
        np.array([(object(),)], dtype=[("x", object)]),
    ],
    ids=["objects", "strings", "booleans", "matrix", "scalar", "struct of objects"],
)
def test_arrays_without_plain_bytes_are_refused(values: np.ndarray) -> None:
    with pytest.raises(PolicyError, match="cannot hash"):
        xxh64.hash_fixed(values)


def test_binary_arrays_of_other_types_are_refused() -> None:
    with pytest.raises(PolicyError, match="offsets"):
        xxh64.hash_binary(np.zeros(2, np.uint64), np.zeros(1, np.uint8))
    with pytest.raises(PolicyError, match="data"):
        xxh64.hash_binary(np.zeros(2, np.int32), np.zeros(1, np.int8))


def test_hashing_one_value_imports_nothing_heavy() -> None:
    program = """
import sys
from secure_bloom.bloom.xxh64 import hash_value
hash_value(b"bloom")
print({"numpy", "pyarrow"} & set(sys.modules))
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (answer.stdout.strip(), answer.stderr) == ("set()", "")


def test_a_value_shorter_than_its_prefix_is_refused() -> None:
    with pytest.raises(FormatError, match="shorter than its length field of 4 bytes"):
        list(xxh64.binary_chunks(np.array([0, 7, 10]), np.zeros(10, np.uint8), prefix=4))
