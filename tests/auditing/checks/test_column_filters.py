"""Filters of columns: bounded, missing, saturated."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.encryption.policy import KeyPolicy
from testing.surgery import filter_of, opened
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    Example,
    bloom,
    put_filter,
    rules,
    sound,
    with_rules,
)


def test_a_sample_knows_not_all_columns(tmp_path: Path) -> None:
    sound(tmp_path)
    table = customers(30).append_column("phone", pa.array(["1"] * 30))
    keys = {"k_pii": ["email", "phone"], "k_finance": ["iban"]}
    write(tmp_path / "y.parquet", table, Mode.ENCRYPTED, column_keys=keys)
    example = Example(path=tmp_path, policy=with_rules(phone="k_pii"))
    assert ids(example.audit()) == []
    assert ids(example.audit(sample=1)) == ["unchecked-sample"]


def test_a_filter_that_the_policy_bounds_is_not_saturated(tmp_path: Path) -> None:
    path = sound(tmp_path, table=customers(3000))
    policy = with_rules(email=bloom("email", "k_pii", fpp=0.01, max_bytes=256))
    assert not sb.add_bloom_filters(path, policy=policy, keys=KEYRING).failed
    assert ids(Example(path=path, policy=policy).audit()) == ["filter-saturated"] * 3
    policy = with_rules(email=bloom("email", "k_pii", fpp=0.01, max_bytes=512))
    options = {"policy": policy, "keys": KEYRING, "replace_filters": True}
    assert not sb.add_bloom_filters(path, **options).failed
    fpp = sb.inspect(path, keys=KEYRING).files[0].row_groups[0].columns[0].bloom.fpp
    assert 0.04 < fpp < 0.5
    assert ids(Example(path=path, policy=policy).audit()) == []
    wider = with_rules(email=bloom("email", "k_pii", fpp=0.01))
    assert set(ids(Example(path=path, policy=wider).audit())) == {"filter-saturated"}


@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
def test_filters_of_all_types_have_no_more_bits_than_their_values(
    tmp_path: Path, dictionary: bool
) -> None:
    """Each value sets eight bits in each of its forms, and no filter of ours is crowded."""
    count = 500
    table = pa.table(
        {
            "email": [f"user{i}@example.com" for i in range(count)],
            "city": [f"c{i % 7}" for i in range(count)],
            "rate": [float("nan") if i % 9 == 0 else (i % 5) - 2.0 for i in range(count)],
            "half": pa.array(range(count), pa.float64()).cast(pa.float16()),
            "price": pa.array([Decimal(i) for i in range(count)], pa.decimal128(9, 2)),
            "wide": pa.array([Decimal(-i) for i in range(count)], pa.decimal128(30, 2)),
            "raw": pa.array([bytes([i % 256, 255]) for i in range(count)], pa.binary()),
            "fixed": pa.array([bytes([i % 256, 200]) for i in range(count)], pa.binary(2)),
        }
    )
    names = table.column_names
    path = tmp_path / "x.parquet"
    keys = {"k_pii": ["email"]}
    write(path, table, Mode.ENCRYPTED, column_keys=keys, use_dictionary=dictionary)
    for fpp in (0.3, 0.0001):
        options = dict.fromkeys(names, sb.BloomFilterOptions(fpp=fpp))
        run = sb.add_bloom_filters(path, columns=options, keys=KEYRING, replace_filters=True)
        assert not run.failed
        policy = KeyPolicy(footer_key="k_footer", columns=rules(email="k_pii"))
        report = Example(path=path, policy=policy).audit(check_values=True)
        assert "filter-crowded" not in {it.id for it in report.findings}


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["dictionary", "plain"])
@pytest.mark.parametrize("check_values", [False, True], ids=["default", "check_values"])
def test_one_foreign_value_in_a_filter_in_clear_is_found(
    tmp_path: Path, options: dict[str, Any], check_values: bool
) -> None:
    """Of 8 bits of the value, all but those that cities set too are explained by no city."""
    table = customers(1000)
    path = write(tmp_path / "x.parquet", table, Mode.ENCRYPTED, **options)
    names = ["email", "city"]
    assert not sb.add_bloom_filters(path, columns=names, keys=KEYRING).failed
    example = Example(path=path)
    assert ids(example.audit(check_values=check_values)) == []
    crowded = filter_of(path, 0, "city")
    crowded.insert(table["email"][7].as_py().encode())
    put_filter(path, "city", encode_bloom_filter(crowded, None))
    assert ids(example.audit(check_values=check_values)) == ["filter-crowded"]


def test_large_plain_columns_are_read_on_request_alone(tmp_path: Path) -> None:
    """Without `check_values` the values of a large column are counted, and not read."""
    count = 150_000
    table = pa.table({"email": ["x"] * count, "id": pa.array(range(count), pa.int64())})
    keys = {"k_pii": ["email"]}
    path = write(
        tmp_path / "x.parquet",
        table,
        Mode.ENCRYPTED,
        column_keys=keys,
        use_dictionary=["email"],
        row_group_size=count,
    )
    assert not sb.add_bloom_filters(path, columns=["id"], keys=KEYRING).failed
    crowded = filter_of(path, 0, "id")
    crowded.insert((10**12).to_bytes(8, "little"))
    put_filter(path, "id", encode_bloom_filter(crowded, None))
    policy = KeyPolicy(footer_key="k_footer", columns=rules(email="k_pii", id=None))
    example = Example(path=path, policy=policy)
    assert ids(example.audit()) == []
    assert ids(example.audit(check_values=True)) == ["filter-crowded"]


def test_an_encrypted_filter_with_values_of_another_key_is_found(tmp_path: Path) -> None:
    """Whoever has the key of `iban` could ask its filter for e-mails."""
    path = sound(tmp_path)
    assert not sb.add_bloom_filters(path, columns=["iban"], keys=KEYRING).failed
    crowded = filter_of(path, 0, "iban")
    crowded.insert(b"user1@example.com")
    with opened(path) as it:
        stored = encode_bloom_filter(crowded, it.chunk(0, "iban").cipher)
    put_filter(path, "iban", stored)
    assert "filter-crowded" in ids(Example(path=path).audit(check_values=True))
