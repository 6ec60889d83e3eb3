"""Filters of columns: spelt otherwise, saturated, with one zero, stray, or without their values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.encryption.policy import ColumnRule, KeyPolicy
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    Example,
    bloom,
    chunk_of,
    filtered,
    put_filter,
    rules,
    some_filter,
    sound,
    with_rules,
)
from tests.surgery import Opened, edit_footer
from tests.tables import KEYRING, Mode, customers, write


class TestFilters:
    @pytest.mark.parametrize("name", ["Email", "EMAIL", "e_mail", "emial", "emails"])
    def test_a_column_spelt_in_another_way_in_one_file_is_found(
        self, tmp_path: Path, name: str
    ) -> None:
        sound(tmp_path)
        names = [name, *customers(1).column_names[1:]]
        other = write(
            tmp_path / "y.parquet",
            customers(30).rename_columns(names),
            Mode.ENCRYPTED,
            column_keys={"k_finance": ["iban"]},
        )
        (finding,) = Example(path=tmp_path).audit().findings
        assert (finding.id, finding.path, finding.column) == (
            "column-alike-in-clear",
            str(other),
            name,
        )

    def test_a_list_whose_element_has_another_name_is_found(self, tmp_path: Path) -> None:
        table = pa.table({"tags": [["a", "b"]] * 30, "iban": ["x"] * 30})
        columns = rules(**{"tags.list.element": "k_pii", "iban": "k_finance"})
        policy = KeyPolicy(footer_key="k_footer", columns=columns)
        keys = {"k_pii": ["tags.list.element"], "k_finance": ["iban"]}
        write(tmp_path / "a.parquet", table, Mode.ENCRYPTED, column_keys=keys)
        write(
            tmp_path / "b.parquet",
            table,
            Mode.ENCRYPTED,
            column_keys={"k_finance": ["iban"]},
            use_compliant_nested_type=False,
        )
        (finding,) = Example(path=tmp_path, policy=policy).audit().findings
        assert (finding.id, finding.column) == ("column-alike-in-clear", "tags.list.item")

    def test_a_file_without_a_sensitive_column_is_sound(self, tmp_path: Path) -> None:
        sound(tmp_path)
        table = customers(30).drop_columns("email").append_column("zip", pa.array(["1"] * 30))
        keys = {"k_finance": ["iban"]}
        write(tmp_path / "y.parquet", table, Mode.ENCRYPTED, column_keys=keys)
        assert ids(Example(path=tmp_path).audit()) == []

    def test_a_sample_knows_not_all_columns(self, tmp_path: Path) -> None:
        sound(tmp_path)
        table = customers(30).append_column("phone", pa.array(["1"] * 30))
        keys = {"k_pii": ["email", "phone"], "k_finance": ["iban"]}
        write(tmp_path / "y.parquet", table, Mode.ENCRYPTED, column_keys=keys)
        example = Example(path=tmp_path, policy=with_rules(phone="k_pii"))
        assert ids(example.audit()) == []
        assert ids(example.audit(sample=1)) == ["unchecked-sample"]

    def test_a_filter_that_the_policy_bounds_is_not_saturated(self, tmp_path: Path) -> None:
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

    @pytest.mark.parametrize("dictionary", [True, False])
    @pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
    def test_our_filters_know_both_zeros_or_none(
        self, tmp_path: Path, kind: str, dictionary: bool
    ) -> None:
        types = {"f2": pa.float16(), "f4": pa.float32(), "f8": pa.float64()}
        values = pa.array([-1.5, 0.0, 2.5, float("nan")] * 10, pa.float64()).cast(types[kind])
        path = write(
            tmp_path / "x.parquet",
            pa.table({"rate": values, "other": pa.array([1.0, 2.0] * 20)}),
            use_dictionary=dictionary,
        )
        sb.add_bloom_filters(path, columns=["rate", "other"])
        assert ids(Example(path=path, policy=KeyPolicy()).audit(check_values=True)) == []

    @pytest.mark.parametrize(("has_zero", "found"), [(True, ["filter-one-zero"]), (False, [])])
    def test_values_show_whether_there_is_a_zero(
        self, tmp_path: Path, has_zero: bool, found: list[str]
    ) -> None:
        values = [-1.0, 1.0, 0.0 if has_zero else 2.0] * 20
        path = write(tmp_path / "x.parquet", pa.table({"rate": values}), use_dictionary=False)
        raw = pa.array([*values[:3], 0.0]).buffers()[1].to_pybytes()
        put_filter(path, "rate", some_filter(*(raw[i : i + 8] for i in range(0, 32, 8))))
        example = Example(path=path, policy=KeyPolicy())
        assert ids(example.audit()) == ["unchecked-zeros"]
        assert "filter-wrong" not in ids(example.audit(check_values=True)) or has_zero
        assert [i for i in ids(example.audit(check_values=True)) if i != "filter-wrong"] == found

    def test_an_entry_of_a_dictionary_that_no_row_has_need_not_be_in_the_filter(
        self, tmp_path: Path
    ) -> None:
        words = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 20), ["rome", "oslo", "nowhere"])
        path = write(tmp_path / "x.parquet", pa.table({"city": words}))
        put_filter(path, "city", some_filter(b"rome", b"oslo", blocks=64))
        assert ids(Example(path=path, policy=KeyPolicy()).audit(check_values=True)) == []

    @pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
    def test_filters_of_lists_are_sampled_too(self, tmp_path: Path, mode: Mode) -> None:
        table = pa.table({"tags": [[f"t{i}", f"u{i}"] for i in range(50)]})
        leaf = "tags.list.element"
        path = write(tmp_path / "x.parquet", table, mode, column_keys={"k_pii": [leaf]})
        sb.add_bloom_filters(path, columns=["tags"], keys=KEYRING)
        columns = {} if mode is Mode.PLAIN else {"tags": ColumnRule(path="tags", key="k_pii")}
        policy = KeyPolicy(footer_key=None if mode is Mode.PLAIN else "k_footer", columns=columns)
        assert ids(Example(path=path, policy=policy).audit(check_values=True)) == []

    def test_filters_replaced_in_place_leave_no_finding(self, tmp_path: Path) -> None:
        path = sound(tmp_path, table=customers(20_000), row_group_size=500)
        for fpp in (0.01, 0.001, 0.1):
            columns = {name: sb.BloomFilterOptions(fpp=fpp) for name in ("id", "score", "city")}
            options = {"keys": KEYRING, "in_place": True, "replace_filters": True}
            assert not sb.add_bloom_filters(path, columns=columns, **options).failed
        assert ids(Example(path=path).audit(check_values=True)) == []

    @pytest.mark.parametrize(
        "old",
        [
            some_filter(),
            some_filter(b"rome", b"oslo", blocks=16),
            encode_bloom_filter(SplitBlockBloomFilter.from_bytes(b"\xff" * 64), None),
        ],
        ids=["empty", "of some values", "saturated"],
    )
    def test_a_broken_filter_in_clear_may_be_replaced_in_place(
        self, tmp_path: Path, old: bytes
    ) -> None:
        table = customers(300)
        cities = pa.array(["rome", "oslo", *(f"town {i}" for i in range(298))])
        path = sound(tmp_path, table=table.set_column(3, "city", cities))
        put_filter(path, "city", old)
        options = {"keys": KEYRING, "in_place": True, "replace_filters": True}
        assert not sb.add_bloom_filters(path, columns=["city"], **options).failed
        assert path.read_bytes().count(old) == 1
        assert ids(Example(path=path).audit(check_values=True)) == []

    @pytest.mark.parametrize("count", [1, 5, 200])
    def test_a_stray_filter_of_other_values_is_found(self, tmp_path: Path, count: int) -> None:
        path = filtered(tmp_path, "city", "id", "score")
        values = [f"user{i}@example.com".encode() for i in range(count)]
        edit_footer(path, lambda _: some_filter(*values, blocks=64))
        assert ids(Example(path=path).audit()) == ["filter-stray-in-clear"]

    @pytest.mark.parametrize("claim", ["row group", "offset index"])
    def test_a_stray_filter_hides_in_no_region_that_is_only_claimed(
        self, tmp_path: Path, claim: str
    ) -> None:
        path, stray = sound(tmp_path), some_filter(b"user1@example.com")

        def change(it: Opened) -> bytes:
            if claim == "row group":
                it.footer.row_groups[0].total_compressed_size = 10**6
            else:
                chunk_of(it, "city").offset_index_offset = it.footer.tail.offset
                chunk_of(it, "city").offset_index_length = len(stray)
            return stray

        edit_footer(path, change)
        found = set(ids(Example(path=path).audit()))
        assert found - {"impossible-page-index"} == {"filter-stray-in-clear"}

    def test_a_zero_by_chance_in_our_own_filters_is_no_finding(self, tmp_path: Path) -> None:
        values = np.random.default_rng(1).normal(size=20_000)
        table = pa.table({"rate": values})
        path = write(tmp_path / "x.parquet", table, use_dictionary=False, row_group_size=200)
        options = sb.BloomFilterOptions(fpp=0.05)
        assert not sb.add_bloom_filters(path, columns={"rate": options}).failed
        example = Example(path=path, policy=KeyPolicy())
        assert ids(example.audit()) == []
        assert ids(example.audit(check_values=True)) == []

    def test_many_filters_that_know_one_zero_are_no_chance(self, tmp_path: Path) -> None:
        values = np.random.default_rng(1).normal(size=2_000)
        values[::100] = 0.0
        path = write(
            tmp_path / "x.parquet",
            pa.table({"rate": values}),
            use_dictionary=False,
            row_group_size=100,
            bloom_filter_options={"rate": {"ndv": 100, "fpp": 0.05}},
        )
        example = Example(path=path, policy=KeyPolicy())
        assert set(ids(example.audit())) == {"unchecked-zeros"}
        found = set(ids(example.audit(check_values=True)))
        # All values are there, but for the zero of the other sign.
        assert found == {"filter-one-zero"}
