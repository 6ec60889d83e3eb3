"""One file, or several alike: what is found behind its footer, and what is read of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.auditing import file_audit
from secure_bloom.auditing.audit_request import AuditRequest
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.encryption.policy import ColumnRule, KeyPolicy
from secure_bloom.parquet.structures.metadata import ColumnCryptoMetaData
from secure_bloom.parquet.structures.views import Empty
from secure_bloom.storage import open_input
from secure_bloom.storage.counted_file import CountedFile
from tests.auditing.datasets import batch, ids
from tests.auditing.examples import (
    EXAMPLES,
    POLICY,
    SIGNED,
    Example,
    bloom,
    chunk_of,
    filtered,
    put_filter,
    set_key_metadata,
    some_filter,
    sound,
    with_rules,
)
from tests.surgery import edit_footer, opened
from tests.tables import KEYRING, Mode, customers, write


class TestFiles:
    def test_one_file_in_clear_among_many_is_found(self, tmp_path: Path) -> None:
        batch(tmp_path, 4)
        write(tmp_path / "part-2.parquet", customers(30), Mode.PLAIN)
        report = Example(path=tmp_path).audit()
        assert {f.path for f in report.findings} == {str(tmp_path / "part-2.parquet")}
        assert report.files == 4
        # What breaks the policy need not be told to differ as well.
        assert "mixed-rules" not in ids(report)

    def test_progress_is_reported_for_every_file(self, tmp_path: Path) -> None:
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
    def test_the_length_of_a_key_is_known_without_the_key(
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
