"""Whole datasets: what is counted, ignored, sampled and read, and what shows only in all files."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing import file_audit
from secure_bloom.auditing.audit_request import AuditRequest
from secure_bloom.auditing.findings import Severity
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.encryption.policy import ColumnRule, KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.paimon.container import ColumnIndexes, FileIndex, Index
from secure_bloom.parquet.structures.metadata import ColumnCryptoMetaData, KeyValue
from secure_bloom.parquet.structures.views import Empty
from secure_bloom.storage import open_input
from secure_bloom.storage.counted_file import CountedFile
from tests.auditing.examples import (
    EXAMPLES,
    POLICY,
    SIGNED,
    Example,
    bloom,
    chunk_of,
    filtered,
    put_filter,
    rules,
    set_key_metadata,
    set_texts,
    some_filter,
    sound,
    with_rules,
)
from tests.surgery import Opened, edit_footer, opened
from tests.tables import KEYRING, Mode, customers, keyring_json, write


def ids(report: sb.findings.AuditReport) -> list[str]:
    return [finding.id for finding in report.findings]


def batch(folder: Path, count: int, mode: Mode = Mode.ENCRYPTED, **options: object) -> None:
    for i in range(count):
        write(folder / f"part-{i}.parquet", customers(30, i), mode, **options)


class TestWhatCounts:
    def test_a_column_in_clear_is_told_with_file_row_group_and_column(self, tmp_path: Path) -> None:
        path = sound(tmp_path, column_keys={"k_finance": ["iban"]}, row_group_size=30)
        report = Example(path=path).audit()
        assert [(f.path, f.row_group, f.column) for f in report.findings] == [
            (str(path), 0, "email"),
            (str(path), 1, "email"),
        ]
        place = f"{path}: row group 1: column email: "
        assert report.findings[1].message == (
            f"{place}the policy says k_pii, the column is stored in clear"
        )

    def test_ignored_findings_are_kept_apart(self, tmp_path: Path) -> None:
        found = Example(path=sound(tmp_path, Mode.PLAIN))
        every = found.audit()
        assert Counter(ids(every)) == {"column-in-clear": 2, "footer-not-encrypted": 1}
        report = found.audit(ignore=["footer-not-encrypted", "column-in-clear:iban"])
        assert [(f.id, f.column) for f in report.findings] == [("column-in-clear", "email")]
        assert [(f.id, f.column) for f in report.ignored] == [
            ("footer-not-encrypted", None),
            ("column-in-clear", "iban"),
        ]
        assert len(report.to_json()["ignored"]) == 2

    def test_what_is_less_severe_is_ignored_too(self, tmp_path: Path) -> None:
        report = Example(path=sound(tmp_path, Mode.PLAIN)).audit(severity="critical")
        assert set(ids(report)) == {"column-in-clear"}
        assert [f.id for f in report.ignored] == ["footer-not-encrypted"]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"ignore": ["column-in-claer"]}, ["column-in-claer", "column-in-clear"]),
            ({"severity": "hihg"}, ["hihg", "high"]),
            ({"sample": 0}, ["at least one"]),
        ],
    )
    def test_an_option_that_means_nothing_is_an_error(
        self, tmp_path: Path, options: Mapping[str, object], words: list[str]
    ) -> None:
        with pytest.raises(PolicyError) as caught:
            Example(path=sound(tmp_path)).audit(**options)
        for word in words:
            assert word in f"{caught.value} {caught.value.hint}"

    def test_columns_that_could_not_be_looked_at_are_not_counted(self, tmp_path: Path) -> None:
        found = EXAMPLES["unchecked-column"](tmp_path)
        assert found.audit().columns_checked == 4
        assert found.audit(keys=None, without_keys=True).columns_checked == 0

    def test_a_column_of_which_something_is_unchecked_is_not_counted(self, tmp_path: Path) -> None:
        assert EXAMPLES["unchecked-values"](tmp_path).audit(check_values=False).columns_checked == 5
        assert EXAMPLES["unchecked-values"](tmp_path).audit().columns_checked == 4

    def test_a_forged_footer_counts_for_nothing(self, tmp_path: Path) -> None:
        report = EXAMPLES["unchecked-signature"](tmp_path).audit()
        assert report.columns_checked == 0

    def test_one_text_to_ignore_is_one_item(self, tmp_path: Path) -> None:
        path = sound(tmp_path, column_keys={"k_finance": ["iban"]})
        report = Example(path=path).audit(ignore="column-in-clear:email")
        assert (ids(report), len(report.ignored)) == ([], 1)

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({"severity": "hihg"}, "did you mean 'high'"),
            ({"ignore": ["column-in-clear:"]}, "names no column"),
            ({"sample": "3"}, "sample"),
            ({"sample": True}, "sample"),
            ({"policy": {"columns": {}}}, "policy"),
            ({"policy": None}, "policy"),
            ({"paths": None}, "path"),
            ({"paths": [None]}, "path"),
        ],
    )
    def test_an_argument_that_cannot_be_is_an_error_for_people(
        self, tmp_path: Path, options: dict[str, object], told: str
    ) -> None:
        arguments = {"paths": sound(tmp_path), "policy": POLICY, "keys": KEYRING, **options}
        with pytest.raises(PolicyError) as raised:
            sb.audit(arguments.pop("paths"), **arguments)
        assert told in f"{raised.value} {raised.value.hint}"

    def test_a_name_without_end_is_cut(self, tmp_path: Path) -> None:
        path = sound(tmp_path)
        name = json.dumps("A" * 60_000).encode()
        set_key_metadata(path, "email", lambda metadata: metadata.replace(b'"k_pii"', name))
        findings = Example(path=path).audit().findings
        assert "column-wrong-key" in {finding.id for finding in findings}
        assert max(len(finding.what) for finding in findings) < 600


class TestFiles:
    def test_one_file_in_clear_among_many_is_found(self, tmp_path: Path) -> None:
        batch(tmp_path, 4)
        write(tmp_path / "part-2.parquet", customers(30), Mode.PLAIN)
        report = Example(path=tmp_path).audit()
        assert {f.path for f in report.findings} == {str(tmp_path / "part-2.parquet")}
        assert report.files == 4
        # What breaks the policy need not be told to differ as well.
        assert "mixed-rules" not in ids(report)

    def test_progress_is_told_for_every_file(self, tmp_path: Path) -> None:
        batch(tmp_path, 3)
        seen: list[tuple[int, int]] = []
        Example(path=tmp_path).audit(progress=lambda done, total: seen.append((done, total)))
        assert seen == [(1, 3), (2, 3), (3, 3)]

    def test_a_sample_is_spread_and_the_same_each_time(self, tmp_path: Path) -> None:
        batch(tmp_path, 6)
        first, second = (Example(path=tmp_path).audit(sample=3) for _ in range(2))
        assert first == second
        assert [Path(path).name for path in first.paths] == [f"part-{i}.parquet" for i in (0, 2, 4)]
        assert ids(first) == ["unchecked-sample"]
        assert ids(Example(path=tmp_path).audit(sample=6)) == []

    def test_a_broken_file_stops_no_other(self, tmp_path: Path) -> None:
        batch(tmp_path, 2)
        (tmp_path / "broken.parquet").write_bytes(b"PAR1 no footer PAR1")
        report = Example(path=tmp_path).audit()
        assert ids(report) == ["unchecked-file"]
        assert (report.files, report.columns_checked) == (3, 10)

    def test_only_footers_and_filters_are_read(self, tmp_path: Path) -> None:
        path = sound(tmp_path, table=customers(20_000))
        assert not sb.add_bloom_filters(path, columns=["email", "city"], keys=KEYRING).failed
        with opened(path) as it:
            filters = sum(
                it.chunk(group, name).meta_data.bloom_filter_length or 0
                for group in range(len(it.footer.row_groups))
                for name in ("email", "city")
            )
            footer = max(it.file.size - it.footer.tail.offset, 64 * 1024)
        policy = with_rules(city=bloom("city"), email=bloom("email", "k_pii"))
        with open_input(str(path)) as file:
            counted = CountedFile(file)
            audit = file_audit._audit(counted, AuditRequest(policy=policy), KeyResolver(KEYRING))
        assert audit.findings == ()
        assert counted.bytes_read <= footer + filters + 8192
        assert counted.bytes_read < path.stat().st_size / 4

    def test_files_of_two_schemas_are_not_under_different_rules(self, tmp_path: Path) -> None:
        batch(tmp_path, 2)
        more = customers(30).append_column("age", pa.array([7] * 30))
        write(tmp_path / "new.parquet", more, Mode.ENCRYPTED)
        assert ids(Example(path=tmp_path).audit()) == []

    def test_the_minority_differs_from_the_majority(self, tmp_path: Path) -> None:
        report = EXAMPLES["mixed-rules"](tmp_path).audit()
        (finding,) = report.findings
        assert (finding.path, finding.column) == (str(tmp_path / "x.parquet"), "city")
        assert finding.what == "the column is under k_pii, in most files in clear"

    def test_signed_files_are_checked_without_any_key(self, tmp_path: Path) -> None:
        path = sound(tmp_path, Mode.SIGNED, column_keys={"k_finance": ["iban"]})
        put_filter(path, "iban", some_filter(b"DE0"))
        report = Example(path=path, policy=SIGNED).audit(keys=None, without_keys=True)
        assert set(ids(report)) == {
            "unchecked-signature",
            "column-in-clear",
            "filter-in-clear",
            "unchecked-column",
        }

    def test_a_stray_filter_is_found_behind_a_footer_that_nobody_can_read(
        self, tmp_path: Path
    ) -> None:
        found = EXAMPLES["filter-stray-in-clear"](tmp_path)
        report = found.audit(keys=None, without_keys=True)
        assert set(ids(report)) == {"filter-stray-in-clear", "unchecked-footer"}

    def test_the_pages_of_a_column_without_a_key_are_no_gap(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("secure_bloom.auditing.checks.gaps._MOST_SEARCHED", 0)
        report = EXAMPLES["unchecked-column"](tmp_path).audit()
        assert ids(report) == ["unchecked-column"]

    def test_statistics_under_the_footer_key_are_in_clear_in_a_signed_footer(
        self, tmp_path: Path
    ) -> None:
        path = EXAMPLES["statistics-in-clear"](tmp_path).path
        crypto = ColumnCryptoMetaData.of(ENCRYPTION_WITH_FOOTER_KEY=Empty())
        edit_footer(path, lambda it: setattr(chunk_of(it, "email"), "crypto_metadata", crypto))
        policy = with_rules(SIGNED, email="k_footer")
        report = Example(path=path, policy=policy).audit(keys=None, without_keys=True)
        assert "statistics-in-clear" in ids(report)

    def test_the_header_of_a_stray_filter_may_lie_across_two_reads(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = sound(tmp_path)
        edit_footer(path, lambda _: bytes(50) + some_filter(b"a") + bytes(30) + some_filter(b"b"))
        for step in (16, 55, 64):
            monkeypatch.setattr("secure_bloom.auditing.checks.gaps._STEP", step)
            assert ids(Example(path=path).audit()) == ["filter-stray-in-clear"] * 2

    def test_a_plain_table_has_no_stray_filters(self, tmp_path: Path) -> None:
        path = sound(tmp_path, Mode.PLAIN)
        edit_footer(path, lambda _: some_filter(b"rome"))
        assert ids(Example(path=path, policy=KeyPolicy()).audit()) == []

    @pytest.mark.parametrize("fpp", [0.3, 0.01, 0.00001])
    def test_filters_that_an_add_in_place_left_are_no_leak(
        self, tmp_path: Path, fpp: float
    ) -> None:
        """Those of encrypted columns are encrypted, those of others are of columns in clear."""
        path = filtered(tmp_path, "email", "city", "id")
        columns = {name: sb.BloomFilterOptions(fpp=fpp) for name in ("email", "city", "id")}
        options = {"columns": columns, "keys": KEYRING, "replace_filters": True}
        assert not sb.add_bloom_filters(path, in_place=True, **options).failed
        assert ids(Example(path=path).audit(check_values=True)) == []

    @pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED])
    def test_key_material_outside_the_file_is_read(self, tmp_path: Path, mode: Mode) -> None:
        path = sound(tmp_path, mode)
        kept: dict[str, str] = {}

        def move_out(metadata: bytes) -> bytes:
            fields = json.loads(metadata)
            del fields["internalStorage"]
            kept["columnKey0"] = json.dumps(fields)
            return json.dumps(
                {
                    "keyMaterialType": "PKMT1",
                    "internalStorage": False,
                    "keyReference": "columnKey0",
                }
            ).encode()

        set_key_metadata(path, "email", move_out)
        material = tmp_path / "_KEY_MATERIAL_FOR_x.parquet.json"
        material.write_text(json.dumps(kept))
        found = Example(path=path, policy=SIGNED if mode is Mode.SIGNED else POLICY)
        assert ids(found.audit()) == []
        material.write_text("{}")
        assert ids(found.audit()) == ["key-material-missing"]
        material.write_text(json.dumps({"columnKey0": "{}"}))
        assert ids(found.audit()) == ["key-material-damaged"]

    def test_a_wrapped_key_that_is_no_base64_is_damaged(self, tmp_path: Path) -> None:
        path = sound(tmp_path)

        def change(metadata: bytes) -> bytes:
            return json.dumps({**json.loads(metadata), "wrappedDEK": "!"}).encode()

        set_key_metadata(path, "email", change)
        assert ids(Example(path=path).audit()) == ["key-material-damaged"]

    @pytest.mark.parametrize("without_keys", [False, True])
    def test_the_length_of_a_key_is_told_without_it(
        self, tmp_path: Path, without_keys: bool
    ) -> None:
        path = sound(tmp_path, Mode.SIGNED)
        policy = replace(SIGNED, encryption=replace(SIGNED.encryption, data_key_bits=192))
        keys = None if without_keys else KEYRING
        report = Example(path=path, policy=policy).audit(keys=keys, without_keys=without_keys)
        assert ids(report).count("key-too-short") == 3

    def test_a_single_wrapped_key_is_measured_when_it_is_open(self, tmp_path: Path) -> None:
        path = sound(tmp_path, encryption={"double_wrapping": False})
        policy = replace(POLICY, encryption=replace(POLICY.encryption, data_key_bits=256))
        assert set(ids(Example(path=path, policy=policy).audit())) == {"key-too-short"}

    def test_a_key_of_the_same_name_serves_footer_and_column(self, tmp_path: Path) -> None:
        """Uniform encryption obeys a policy that wants the footer's key for the column."""
        policy = KeyPolicy(
            footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_footer")}
        )
        assert ids(Example(path=sound(tmp_path, Mode.UNIFORM), policy=policy).audit()) == []

    def test_a_parents_key_counts_for_its_leaves(self, tmp_path: Path) -> None:
        table = pa.table({"address": [{"zip": "1", "city": "a"}, {"zip": "2", "city": "b"}]})
        path = sound(tmp_path, table=table, column_keys={"k_pii": ["address.zip"]})
        policy = KeyPolicy(
            footer_key="k_footer", columns={"address": ColumnRule(path="address", key="k_pii")}
        )
        (finding,) = Example(path=path, policy=policy).audit().findings
        assert (finding.id, finding.column) == ("column-in-clear", "address.city")


class TestFilters:
    @pytest.mark.parametrize("name", ["Email", "EMAIL", "e_mail", "emial", "emails"])
    def test_a_column_spelt_in_another_way_in_one_file_is_told(
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

    def test_a_list_whose_element_has_another_name_is_told(self, tmp_path: Path) -> None:
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
    def test_values_tell_whether_there_is_a_zero(
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

    def test_filters_replaced_in_place_leave_nothing_to_tell(self, tmp_path: Path) -> None:
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
    def test_a_stray_filter_of_other_values_is_told(self, tmp_path: Path, count: int) -> None:
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

    def test_a_chance_sign_of_zero_in_our_own_filters_is_not_told(self, tmp_path: Path) -> None:
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


class TestFolders:
    def test_statistics_in_a_summary_are_told_once_a_column(self, tmp_path: Path) -> None:
        report = EXAMPLES["summary-in-clear"](tmp_path).audit()
        assert [(f.path, f.column) for f in report.findings] == [
            (str(tmp_path / "_metadata"), "email"),
            (str(tmp_path / "_metadata"), "iban"),
        ]

    def test_summaries_above_the_files_are_read(self, tmp_path: Path) -> None:
        table = customers(30)
        below = tmp_path / "day=1" / "hour=2"
        below.mkdir(parents=True)
        sound(below)
        collected: list[object] = []
        plain = tmp_path.parent / f"{tmp_path.name} plain"
        pq.write_to_dataset(table, plain, metadata_collector=collected)
        pq.write_metadata(table.schema, tmp_path / "_metadata", metadata_collector=collected)
        for path in (tmp_path, below, below / "x.parquet", tmp_path / "*" / "*" / "*.parquet"):
            assert set(ids(Example(path=path).audit())) == {"summary-in-clear"}, path

    def test_texts_of_a_summary_are_looked_at_too(self, tmp_path: Path) -> None:
        schema = customers(1).schema
        email = schema.field("email").with_metadata({"comment": "of the customers of Acme"})
        schema = schema.set(0, email).with_metadata({"hoodie_min_record_key": "DE1"})
        pq.write_metadata(schema, tmp_path / "_common_metadata")
        report = Example(path=sound(tmp_path)).audit()
        assert sorted(ids(report)) == ["hudi-record-keys-in-clear", "schema-in-clear"]
        assert {f.path for f in report.findings} == {str(tmp_path / "_common_metadata")}

    def test_a_summary_without_statistics_tells_nothing(self, tmp_path: Path) -> None:
        pq.write_metadata(customers(1).schema, tmp_path / "_common_metadata")
        assert ids(Example(path=sound(tmp_path)).audit()) == []

    def test_a_damaged_summary_is_unchecked(self, tmp_path: Path) -> None:
        (tmp_path / "_metadata").write_bytes(b"PAR1 damaged PAR1")
        assert ids(Example(path=sound(tmp_path)).audit()) == ["unchecked-file"]

    @pytest.mark.parametrize(
        ("content", "found"),
        [
            (b"", ["unchecked-file"]),
            (b"another tool's index", []),
            ((1493475289347502).to_bytes(8, "big") + b"\x00\x00\x00\x01", ["unchecked-file"]),
        ],
    )
    def test_an_index_that_is_none(self, tmp_path: Path, content: bytes, found: list[str]) -> None:
        (tmp_path / "x.parquet.index").write_bytes(content)
        assert ids(Example(path=sound(tmp_path)).audit()) == found

    def test_an_index_of_other_columns_is_no_leak(self, tmp_path: Path) -> None:
        index = Index(type="bloom-filter", body=(4).to_bytes(4, "big") + bytes(8))
        columns = ColumnIndexes(name="city", indexes=(index,))
        (tmp_path / "x.parquet.index").write_bytes(FileIndex(columns=(columns,)).to_bytes())
        assert ids(Example(path=sound(tmp_path)).audit()) == []

    def test_a_partition_is_told_without_its_values(self, tmp_path: Path) -> None:
        found = EXAMPLES["partition-in-clear"](tmp_path)
        other = tmp_path / "email=user2@example.com"
        shutil.copytree(tmp_path / "email=user1@example.com", other)
        (finding,) = found.audit().findings
        assert (finding.path, finding.column) == (str(tmp_path), "email")
        assert "@example.com" not in finding.message

    @pytest.mark.parametrize("folder", ["Email=user1@example.com", "e%3Amail=user1@example.com"])
    def test_a_partition_is_told_however_its_name_is_written(
        self, tmp_path: Path, folder: str
    ) -> None:
        column = "e:mail" if "%" in folder else "email"
        policy = replace(POLICY, columns={**rules(iban="k_finance"), **rules(**{column: "k_pii"})})
        (tmp_path / folder).mkdir()
        table = customers(30).drop_columns("email")
        sound(tmp_path / folder, table=table, column_keys={"k_finance": ["iban"]})
        (finding,) = Example(path=tmp_path, policy=policy).audit().findings
        assert (finding.id, finding.column) == ("partition-in-clear", column)

    def test_values_of_a_sensitive_partition_are_in_no_path_of_a_report(
        self, tmp_path: Path
    ) -> None:
        for user in ("user1", "user2"):
            below = tmp_path / f"email={user}@example.com" / "day=1"
            below.mkdir(parents=True)
            sound(below, Mode.PLAIN, table=customers(30).drop_columns("email"))
        report = Example(path=tmp_path).audit()
        assert {f.path for f in report.findings if f.id == "column-in-clear"} == {
            f"{tmp_path}/email=***{number}/day=1/x.parquet" for number in (1, 2)
        }
        assert report.paths == (
            f"{tmp_path}/email=***1/day=1/x.parquet",
            f"{tmp_path}/email=***2/day=1/x.parquet",
        )
        assert "@example.com" not in json.dumps(report.to_json())

    @pytest.mark.parametrize(
        "name",
        [
            "x.parquet.bak",
            "x.parquet.tmp",
            ".x.parquet",
            "_x.parquet",
            "_temporary/0/x.parquet",
            ".hidden/x.parquet",
            "000000_0",
        ],
    )
    def test_a_plain_copy_that_readers_skip_is_told(self, tmp_path: Path, name: str) -> None:
        sound(tmp_path)
        (tmp_path / "_SUCCESS").write_text("")
        (tmp_path / "notes.txt").write_text("PAR1")
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        write(copy, customers(30))
        (finding,) = Example(path=tmp_path).audit().findings
        assert (finding.id, finding.path) == ("unchecked-copy", str(copy.parent))
        assert copy.name in finding.message
        assert ids(Example(path=tmp_path, policy=KeyPolicy()).audit()) == []

    def test_a_file_that_another_path_lists_is_no_stray_copy(self, tmp_path: Path) -> None:
        copy = write(tmp_path / "copy.bak", customers(30), Mode.ENCRYPTED)
        sound(tmp_path)
        report = sb.audit([tmp_path, copy], policy=POLICY, keys=KEYRING)
        assert (ids(report), report.files) == ([], 2)
        report = sb.audit([tmp_path, copy], policy=POLICY, keys=KEYRING, sample=1)
        assert ids(report) == ["unchecked-sample"]

    def test_a_path_that_is_not_there_stops_no_other(self, tmp_path: Path) -> None:
        path = sound(tmp_path, column_keys={"k_finance": ["iban"]})
        report = sb.audit([path, tmp_path / "gone"], policy=POLICY, keys=KEYRING)
        assert {(f.id, f.path) for f in report.findings} == {
            ("column-in-clear", str(path)),
            ("unchecked-file", str(tmp_path / "gone")),
        }
        with pytest.raises(PolicyError, match="gone"):
            sb.audit([tmp_path / "gone", tmp_path / "too"], policy=POLICY, keys=KEYRING)

    def test_what_nobody_foresaw_beside_the_files_loses_none_of_their_findings(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> list[object]:
            raise ZeroDivisionError("user1@example.com")

        sound(tmp_path, column_keys={"k_finance": ["iban"]})
        monkeypatch.setattr("secure_bloom.auditing.checks.folders._check_orphans", fail)
        report = Example(path=tmp_path).audit()
        assert sorted(ids(report)) == ["column-in-clear", "unchecked-file"]
        assert "user1" not in json.dumps(report.to_json())

    def test_a_folder_that_cannot_be_looked_into_stops_no_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = sound(tmp_path)
        closed = tmp_path / "closed"
        closed.mkdir()
        scan = os.scandir

        def refuse(place: str) -> object:
            if str(place) == str(closed):
                raise PermissionError(13, "Permission denied", str(closed))
            return scan(place)

        # Whoever runs the tests as root may look everywhere.
        monkeypatch.setattr(os, "scandir", refuse)
        report = sb.audit(tmp_path, policy=POLICY, keys=KEYRING)
        assert [(f.id, f.path) for f in report.findings] == [("unchecked-file", str(closed))]
        assert report.paths == (str(path),)

    def test_hudi_keys_of_a_column_that_is_not_sensitive_are_no_leak(self, tmp_path: Path) -> None:
        table = customers(30).append_column("_hoodie_record_key", pa.array(["k"] * 30))
        table = table.replace_schema_metadata({"org.apache.hudi.bloomfilter": "AAAA"})
        path = sound(tmp_path, Mode.SIGNED, table=table)
        (finding,) = Example(path=path, policy=SIGNED).audit().findings
        # Keys in clear tell no more than the column does; what they are made of nobody knows.
        assert (finding.id, finding.severity) == ("hudi-record-keys-without-rule", Severity.LOW)
        policy = with_rules(SIGNED, _hoodie_record_key=None)
        assert ids(Example(path=path, policy=policy).audit()) == []

    def test_hudi_s_filter_of_a_sensitive_column_is_a_leak(self, tmp_path: Path) -> None:
        table = customers(30).append_column("_hoodie_record_key", pa.array(["k"] * 30))
        policy = with_rules(SIGNED, _hoodie_record_key=None)
        for column, found in (("email", ["hudi-record-keys-in-clear"]), ("city", [])):
            folder = tmp_path / column
            folder.mkdir()
            path = sound(folder, Mode.SIGNED, table=table)
            sb.hudi.add_record_key_filter(path, column=column, keys=KEYRING)
            assert ids(Example(path=path, policy=policy).audit()) == found

    def test_relative_paths_are_audited_alike(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        EXAMPLES["key-material-orphaned"](tmp_path)
        monkeypatch.chdir(tmp_path)
        for path in ("x.parquet", ".", "*.parquet"):
            report = sb.audit(path, policy=POLICY, keys=KEYRING)
            assert ids(report) == ["key-material-orphaned"], path


class TestSchemas:
    def audit(self, folder: Path, name: str, schema: object) -> list[str | None]:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        path = sound(folder, Mode.SIGNED, store_schema=False)
        set_texts(path, {name: text})
        report = Example(path=path, policy=SIGNED).audit()
        assert set(ids(report)) <= {"schema-in-clear"}
        return [finding.column for finding in report.findings]

    def test_sparks_comments_are_found(self, tmp_path: Path) -> None:
        fields = [
            {"name": "email", "type": "string", "metadata": {"comment": "of customers"}},
            {"name": "iban", "type": "string", "metadata": {}},
            {"name": "city", "type": "string", "metadata": {"comment": "not sensitive"}},
        ]
        schema = {"type": "struct", "fields": fields}
        name = "org.apache.spark.sql.parquet.row.metadata"
        assert self.audit(tmp_path, name, schema) == ["email"]

    def test_what_sparks_lists_and_maps_hold_is_found_too(self, tmp_path: Path) -> None:
        told = {"name": "zip", "type": "string", "metadata": {"comment": "of the customers"}}
        struct = {"type": "struct", "fields": [told]}
        types = {
            "homes": {"type": "array", "elementType": struct},
            "offices": {"type": "map", "keyType": "string", "valueType": struct},
        }
        fields = [{"name": name, "type": kind, "metadata": {}} for name, kind in types.items()]
        rows = [{"zip": "1"}] * 3
        table = pa.table(
            {
                "homes": [rows] * 30,
                "offices": pa.array(
                    [[("a", rows[0])]] * 30,
                    pa.map_(pa.string(), pa.struct([pa.field("zip", pa.string())])),
                ),
            }
        )
        leaves = ["homes.list.element.zip", "offices.key_value.value.zip"]
        path = write(
            tmp_path / "x.parquet",
            table,
            Mode.SIGNED,
            column_keys={"k_pii": [*leaves, "offices.key_value.key"]},
            store_schema=False,
        )
        name = "org.apache.spark.sql.parquet.row.metadata"
        set_texts(path, {name: json.dumps({"type": "struct", "fields": fields})})
        policy = replace(SIGNED, columns=rules(homes="k_pii", offices="k_pii"))
        report = Example(path=path, policy=policy).audit(ignore="encoding-data-in-clear")
        assert [(f.id, f.column) for f in report.findings] == [
            ("schema-in-clear", leaf) for leaf in leaves
        ]

    def test_attributes_of_a_pandas_table_are_found(self, tmp_path: Path) -> None:
        schema = {"columns": [], "attributes": {"made of": "customers of Acme"}}
        assert self.audit(tmp_path, "pandas", schema) == [None]

    def test_a_columns_own_texts_are_found(self, tmp_path: Path) -> None:
        path = sound(tmp_path, Mode.SIGNED)

        def change(it: Opened) -> None:
            shown = chunk_of(it, "email").meta_data
            assert shown is not None
            shown.key_value_metadata = [KeyValue.of(key="note", value="user1@example.com")]

        edit_footer(path, change)
        (finding,) = Example(path=path, policy=SIGNED).audit().findings
        assert (finding.id, finding.column) == ("schema-in-clear", "email")
        assert "user1" not in finding.message

    def test_pandas_categories_are_found(self, tmp_path: Path) -> None:
        columns = [
            {"name": "email", "metadata": {"num_categories": 5, "ordered": False}},
            {"name": "iban", "metadata": {"encoding": "UTF-8"}},
            {"name": "city", "metadata": None},
        ]
        assert self.audit(tmp_path, "pandas", {"columns": columns}) == ["email"]

    def test_arrows_field_ids_are_harmless(self, tmp_path: Path) -> None:
        fields = [pa.field("email", pa.string(), metadata={"PARQUET:field_id": "1"})]
        fields += [pa.field("iban", pa.string(), metadata={"note": "secret"})]
        text = base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode()
        assert self.audit(tmp_path, "ARROW:schema", text) == ["iban"]

    def test_an_encrypted_footer_hides_them(self, tmp_path: Path) -> None:
        email = pa.field("email", pa.string(), metadata={"note": "secret"})
        table = customers(30)
        table = table.cast(table.schema.set(0, email))
        assert ids(Example(path=sound(tmp_path, table=table)).audit()) == []


class TestPolicies:
    def policy(self, folder: Path, text: str) -> Path:
        path = folder / "policy.toml"
        path.write_text(text)
        return path

    def test_every_table_tells_its_mistake(self, tmp_path: Path) -> None:
        policy = self.policy(
            tmp_path,
            '[foter]\nkey = "k"\n[columns.email]\nkee = "k"\n[columns.iban]\nkey = 3\n'
            "[columns.city]\nbloom = { fpp = 7.0 }\n",
        )
        report = Example(path=sound(tmp_path), policy=policy).audit()
        assert ids(report) == [
            "policy-unknown-word",
            "policy-unknown-word",
            "policy-invalid",
            "policy-invalid",
        ]
        assert "did you mean 'footer'" in report.findings[0].what
        assert report.findings[3].column == "city"
        assert (report.files, report.columns_checked) == (0, 0)

    def test_a_contradiction_is_a_finding(self, tmp_path: Path) -> None:
        policy = self.policy(tmp_path, '[columns.email]\nkey = "k_pii"\n')
        report = Example(path=sound(tmp_path), policy=policy).audit()
        assert ids(report) == ["policy-invalid"]

    @pytest.mark.parametrize("text", ["[columns", '[columns.email]\nkey="a"\n[columns.email]\n'])
    def test_what_is_not_toml_is_an_error(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(PolicyError, match="not TOML"):
            Example(path=sound(tmp_path), policy=self.policy(tmp_path, text)).audit()

    def test_without_any_keys_the_audit_fails_and_says_why(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyError, match=r"no \[kms\]"):
            Example(path=sound(tmp_path)).audit(keys=None)

    def test_the_policys_own_kms_is_asked(self, tmp_path: Path) -> None:
        keyring = tmp_path / "keyring.json"
        keyring.write_text(keyring_json())
        keyring.chmod(0o600)
        policy = replace(
            POLICY, kms={"client": "keyring", "keyring": "keyring.json"}, base=tmp_path
        )
        assert ids(Example(path=sound(tmp_path), policy=policy).audit(keys=None)) == []

    def test_a_column_that_some_files_have_is_known(self, tmp_path: Path) -> None:
        batch(tmp_path, 2)
        more = customers(30).append_column("age", pa.array([7] * 30))
        write(tmp_path / "new.parquet", more, Mode.ENCRYPTED)
        policy = with_rules(age=None)
        assert ids(Example(path=tmp_path, policy=policy).audit()) == []

    def test_where_a_file_cannot_be_read_no_column_is_said_to_be_nowhere(
        self, tmp_path: Path
    ) -> None:
        batch(tmp_path, 1)
        (tmp_path / "broken.parquet").write_bytes(b"PAR1 no footer PAR1")
        policy = with_rules(emial=None)
        assert ids(Example(path=tmp_path, policy=policy).audit()) == ["unchecked-file"]

    def test_the_same_key_at_a_column_and_inside_it_is_no_contradiction(
        self, tmp_path: Path
    ) -> None:
        found = EXAMPLES["policy-two-keys"](tmp_path)
        inner = ColumnRule(path="address.zip", key="k_pii")
        columns = {"address": ColumnRule(path="address", key="k_pii"), "address.zip": inner}
        found.policy = replace(POLICY, columns=columns)
        assert ids(found.audit()) == ["column-wrong-key"]

    def test_a_misspelt_column_comes_with_the_close_one(self, tmp_path: Path) -> None:
        (finding,) = EXAMPLES["policy-column-unknown"](tmp_path).audit().findings
        assert "did you mean email" in finding.what


def test_the_report_is_json(tmp_path: Path) -> None:
    report = Example(path=sound(tmp_path, Mode.PLAIN)).audit(ignore=["footer-not-encrypted"])
    document = json.loads(json.dumps(report.to_json()))
    assert document.keys() == {"findings", "ignored", "files", "columns_checked"}
    assert document["findings"][0].keys() == {
        "id",
        "severity",
        "path",
        "row_group",
        "column",
        "message",
        "fix",
    }
    assert document["findings"][0]["severity"] == Severity.CRITICAL
