"""Types by their names in SQL, and the bits of a float."""

from __future__ import annotations

import math

import pytest

from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.paimon.data_types import DataType, TypeRoot, float_bits, hash_value, hashed_form


@pytest.mark.parametrize(
    ("text", "root", "parameter"),
    [
        ("INT", TypeRoot.INT, None),
        ("integer", TypeRoot.INT, None),
        ("VARCHAR(20)", TypeRoot.VARCHAR, 20),
        ("TIMESTAMP(3)", TypeRoot.TIMESTAMP, 3),
    ],
)
def test_a_type_is_read_by_its_name(text: str, root: TypeRoot, parameter: int | None) -> None:
    found = DataType.parse(text)
    assert (found.root, found.parameter) == (root, parameter)


@pytest.mark.parametrize("text", ["TIMESTAMP", "TIMESTAMP_LTZ", "TIME"])
def test_a_time_without_a_precision_has_paimon_s_however_it_is_made(text: str) -> None:
    assert DataType(root=TypeRoot(text)) == DataType.parse(text)


@pytest.mark.parametrize("text", ["", "DECIMAL(9, 2)", "INT(", "ARRAY<INT>", "no such type"])
def test_a_type_without_filters_is_refused(text: str) -> None:
    with pytest.raises(SecureBloomError):
        DataType.parse(text)


def test_every_nan_has_the_bits_of_java_s() -> None:
    assert float_bits(math.nan, width=4) == 0x7FC00000
    assert float_bits(-math.nan, width=8) == 0x7FF8000000000000


def test_zeros_differ_by_their_sign() -> None:
    assert float_bits(0.0, width=8) == 0
    assert float_bits(-0.0, width=8) == -(2**63)


def test_null_has_no_hash() -> None:
    assert hash_value(DataType.parse("INT"), None) is None


def test_a_timestamp_is_counted_in_the_unit_of_its_precision() -> None:
    value = (1_000, 500_999)
    assert hashed_form(DataType.parse("TIMESTAMP(3)"), value).content == 1_000
    assert hashed_form(DataType.parse("TIMESTAMP(6)"), value).content == 1_000_500


def test_the_error_for_a_value_of_another_type_does_not_show_it() -> None:
    with pytest.raises(PolicyError) as caught:
        hash_value(DataType.parse("INT"), "swordfish")
    assert "swordfish" not in str(caught.value)
