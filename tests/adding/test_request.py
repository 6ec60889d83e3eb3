"""What filters a run asks for, and under which key a sensitive column must stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.adding.request import WantedFilters, filter_request
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import PolicyError
from testing.project import ROOT
from testing.surgery import assert_tells_no_secret, opened
from testing.tables import Mode, customers, write

SMALL = BloomFilterOptions(fpp=0.5)
TIGHT = BloomFilterOptions(fpp=0.001)


def _policy(**keys: str | None) -> KeyPolicy:
    rules = {
        path: ColumnRule(path=path, key=key, bloom=BloomFilterOptions())
        for path, key in ((name.replace("__", "."), key) for name, key in keys.items())
    }
    return KeyPolicy(footer_key="k_footer", columns=rules)


def test_columns_may_be_listed_or_mapped_to_options() -> None:
    assert filter_request(["a", "b"], None).wanted.columns == dict.fromkeys(
        "ab", BloomFilterOptions()
    )
    assert filter_request({"a": SMALL}, None).wanted.columns == {"a": SMALL}


def test_without_columns_those_of_the_policy_are_taken() -> None:
    policy = _policy(email="k_pii", city=None)
    assert set(filter_request(None, policy).wanted.columns) == {"email", "city"}
    assert set(filter_request(["id"], policy).wanted.columns) == {"id"}
    assert filter_request(["id"], policy).guard.policy is policy


def test_a_policy_may_be_given_as_its_path() -> None:
    path = ROOT / "keys" / "policy.toml"
    assert filter_request(None, path) == filter_request(None, KeyPolicy.load(str(path)))


@pytest.mark.parametrize(
    ("columns", "policy"),
    [(None, None), ([], None), ({}, None), (None, KeyPolicy())],
    ids=["nothing", "no list", "no map", "policy without filters"],
)
def test_a_request_for_nothing_is_refused(columns: object, policy: KeyPolicy | None) -> None:
    with pytest.raises(PolicyError, match="no column"):
        filter_request(columns, policy)


def test_a_structure_is_named_with_all_its_columns_or_by_one_of_them(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    nested = pa.array([{"email": "a", "phone": "1"}] * 3)
    table = pa.table({"customer": nested, "tags": pa.array([["x"]] * 3)})
    pq.write_table(table, path)
    with pytest.raises(PolicyError, match=r"customer\.email, customer\.phone") as caught:
        sb.add_bloom_filters([path, write(tmp_path / "y.parquet", table)], columns=["customer"])
    assert "--column 'customer.*'" in str(caught.value.hint)
    assert not sb.add_bloom_filters(path, columns=["customer.email"]).failed
    report = sb.add_bloom_filters(path, columns={"customer.*": 0.02, "tags": None})
    assert sorted(it.column for it in report.files[0].filters if it.action == "added") == [
        "customer.phone",
        "tags.list.element",
    ]
    # A policy that names a structure means all of it.
    with opened(path) as it:
        assert (
            len(filter_request(None, _policy(customer=None)).wanted.resolve(it.footer.leaves)) == 2
        )


def test_a_leafs_own_options_win_over_its_parents(tmp_path: Path) -> None:
    table = pa.table({"id": [1], "address": [{"zip": "1", "city": "oslo"}]})
    with opened(write(tmp_path / "x.parquet", table)) as it:
        leaves = it.footer.leaves
    for columns in (
        {"address": SMALL, "address.zip": TIGHT},
        {"address.zip": TIGHT, "address": SMALL},
    ):
        wanted = WantedFilters(columns=columns)
        assert wanted.resolve(leaves) == {1: TIGHT, 2: SMALL}
        assert wanted.missing(leaves) == []
    assert WantedFilters(columns={"zip": SMALL, "id": SMALL}).missing(leaves) == ["zip"]


def _check(path: Path, policy: KeyPolicy | None, name: str) -> None:
    with opened(path) as it:
        filter_request([name], policy).guard.check(it.chunk(0, name))


def test_a_column_under_the_policys_key_passes(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5), Mode.ENCRYPTED)
    _check(path, _policy(email="k_pii"), "email")
    _check(path, _policy(id=None), "id")
    _check(path, _policy(iban="k_finance"), "email")
    _check(path, None, "email")


@pytest.mark.parametrize(
    ("mode", "got"),
    [
        (Mode.PLAIN, "is stored in clear"),
        (Mode.UNIFORM, "is encrypted under k_footer"),
        (Mode.ENCRYPTED, "is encrypted under k_pii"),
        (Mode.SIGNED, "is encrypted under k_pii"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_column_under_another_key_or_in_clear_is_refused(
    tmp_path: Path, mode: Mode, got: str
) -> None:
    path = write(tmp_path / "x.parquet", customers(5), mode)
    with pytest.raises(PolicyError, match=f"the policy says key k_finance, the column {got}") as e:
        _check(path, _policy(email="k_finance"), "email")
    assert (e.value.row_group, e.value.column) == (0, "email")
    assert_tells_no_secret(str(e.value))


def test_a_parents_key_holds_for_its_leaves(tmp_path: Path) -> None:
    table = pa.table({"address": [{"zip": "1"}]})
    path = write(tmp_path / "x.parquet", table)
    # That the leaf gets a filter does not make it less sensitive than the column it stands in.
    for policy in (_policy(address="k_pii"), _policy(address="k_pii", address__zip=None)):
        with pytest.raises(PolicyError, match="k_pii"):
            _check(path, policy, "address.zip")
    _check(path, _policy(address__street="k_pii"), "address.zip")


def test_a_number_is_an_fpp_and_a_single_text_one_column() -> None:
    assert filter_request("email", None).wanted.columns == {"email": BloomFilterOptions()}
    given = {"email": 0.05, "iban": None, "id": BloomFilterOptions(max_bytes=64)}
    assert filter_request(given, None).wanted.columns == {
        "email": BloomFilterOptions(fpp=0.05),
        "iban": BloomFilterOptions(),
        "id": BloomFilterOptions(max_bytes=64),
    }


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (7, "columns is of type int, wanted a name or a list"),
        ([7], "columns holds a int, wanted names of columns"),
        ({"email": "0.01"}, "column email: its options are of type str"),
        ({"email": False}, "column email: its options are of type bool"),
        ({"email": 2}, "fpp is 2.0, it must lie between 0 and 1"),
    ],
)
def test_what_is_no_column_is_told(columns: Any, told: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(told)):
        filter_request(columns, None)
