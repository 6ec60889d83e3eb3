"""Filters added to base files: Hudi's own bytes, every footer mode, and who is told what."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom import hudi
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.hudi import RecordKeyFilterOptions
from secure_bloom.hudi.record_keys.packed_keys import java_order
from secure_bloom.running.memory_budget import VARIABLE
from testing.hudi_files import KEY_COLUMN, base_file, base_table
from testing.project import NO_VECTORS
from testing.surgery import assert_tells_no_secret, filter_place, opened
from testing.tables import KEYRING, Mode, read, write
from tests.hudi.vectors import SHARED, cases

FOOTERS = [case for case in cases("more.json") if case["op"] == "footer"]
MODES = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
KEYS = [f"key-{i:05d}" for i in range(2500)]


def footer_pairs(path: Path) -> dict[str, str]:
    with opened(path) as it:
        pairs = it.footer.metadata.key_value_metadata or []
    return {pair.key: pair.value or "" for pair in pairs}


def hudi_pairs(path: Path) -> dict[str, str]:
    return {k: v for k, v in footer_pairs(path).items() if "hoodie" in k or "hudi" in k}


def options_of(case: dict[str, Any]) -> RecordKeyFilterOptions:
    return RecordKeyFilterOptions(
        type_code=case["type"],
        num_entries=case["num_entries"],
        fpp=case["fpp"],
        max_entries=case["max_entries"],
    )


@pytest.mark.parametrize("case", FOOTERS, ids=lambda case: case["name"])
@pytest.mark.parametrize("dictionary", [False, True], ids=["plain", "dictionary"])
def test_the_footer_gets_the_entries_that_hudi_writes(
    tmp_path: Path, case: dict[str, Any], dictionary: bool
) -> None:
    path = base_file(tmp_path / "x.parquet", case["keys"], use_dictionary=dictionary)
    report = hudi.add_record_key_filter(path, options=options_of(case))
    assert report.files[0].status == "added"
    assert hudi_pairs(path) == case["footer"]


def test_a_filter_of_hudi_is_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    real = next(iter((SHARED / "hudi_parquet").glob("*.parquet")), None)
    if real is None:
        pytest.skip(NO_VECTORS)
    path = Path(shutil.copy(real, tmp_path / "x.parquet"))
    path.chmod(0o644)
    before = footer_pairs(path)
    options = RecordKeyFilterOptions(num_entries=60_000)
    (file,) = hudi.add_record_key_filter(path, options=options, replace=True).files
    assert (file.status, file.filters[0].action) == ("added", "replaced")
    assert footer_pairs(path) == before
    assert pq.read_table(path).equals(pq.read_table(real))


@MODES
@pytest.mark.parametrize("in_place", [False, True], ids=["replace", "in place"])
def test_every_footer_mode_gets_a_filter_and_keeps_its_data(
    tmp_path: Path, mode: Mode, in_place: bool
) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS, mode)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    before, place = path.read_bytes(), filter_place(path, 1, "email")
    (file,) = hudi.add_record_key_filter(
        path, keys=KEYRING, in_place=in_place, allow_clear_entry=mode is Mode.SIGNED
    ).files
    assert (file.status, file.error, file.filters[0].values) == ("added", None, len(KEYS))
    assert file.bytes_after == path.stat().st_size
    assert path.read_bytes()[: place.stop] == before[: place.stop]
    assert read(path, encrypted=mode is not Mode.PLAIN).equals(base_table(KEYS))
    stored = hudi.read_record_key_filter(path, keys=KEYRING)
    assert stored is not None
    assert stored.filter is not None
    assert (stored.type_code, stored.min_key, stored.max_key) == ("DYNAMIC_V0", KEYS[0], KEYS[-1])
    assert all(stored.filter.check_many(KEYS))
    assert stored.filter.fpp() == file.filters[0].fpp == pytest.approx(1e-9, rel=0.2)
    probed = sb.probe(path, "email", ["user7@example.com"], keys=KEYRING)
    assert probed.verdicts == {sb.Verdict.ABSENT, sb.Verdict.MAYBE}


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (Mode.PLAIN, "a plaintext footer shows anyone"),
        (Mode.SIGNED, "may be there; the key column is encrypted"),
        (Mode.ENCRYPTED, "whoever has the footer key alone"),
        (Mode.UNIFORM, None),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_user_is_told_who_can_read_the_filter(
    tmp_path: Path, mode: Mode, told: str | None
) -> None:
    for name in ("a", "b"):
        base_file(tmp_path / f"{name}.parquet", KEYS[:10], mode)
    report = hudi.add_record_key_filter(tmp_path, keys=KEYRING, allow_clear_entry=True)
    if told is None:
        assert report.notes == ()
    else:
        (note,) = report.notes
        assert note.startswith(f"{tmp_path / 'a.parquet'} and 1 more file: ")
        assert told in note
    hidden = mode in (Mode.ENCRYPTED, Mode.UNIFORM)
    assert [file.filters[0].encrypted for file in report.files] == [hidden] * 2
    assert [file.filters[0].key for file in report.files] == ["k_footer" if hidden else None] * 2
    stored = (tmp_path / "a.parquet").read_bytes()
    assert (b"org.apache.hudi.bloomfilter" in stored) is not hidden
    assert_tells_no_secret(str(report.to_dict()))
    assert KEYS[0] not in str(report.to_dict())


def test_keys_of_an_encrypted_column_are_not_written_in_clear(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS, Mode.SIGNED)
    before = path.read_bytes()
    columns = {KEY_COLUMN: ColumnRule(path=KEY_COLUMN, key="k_pii")}
    policy = sb.KeyPolicy(footer_key="k_footer", footer_mode="signed", columns=columns)
    for access in ({}, {"policy": policy}):
        (file,) = hudi.add_record_key_filter(path, keys=KEYRING, **access).files
        assert file.error is not None
        assert "the key column is encrypted, and the footer is not" in file.error
        assert "--allow-clear-entry" in str(file.hint)
        assert path.read_bytes() == before
    (file,) = hudi.add_record_key_filter(path, keys=KEYRING, allow_clear_entry=True).files
    assert file.status == "added"


@pytest.mark.parametrize("keys", [[None] * 5, ["a", None, "b"]])
def test_rows_without_a_record_key_are_refused(tmp_path: Path, keys: list[str | None]) -> None:
    path = base_file(tmp_path / "x.parquet", keys)
    before = path.read_bytes()
    (file,) = hudi.add_record_key_filter(path).files
    assert "rows have no record key" in str(file.error)
    assert "--column" in str(file.hint)
    assert path.read_bytes() == before
    assert hudi.add_record_key_filter(path, column="email").files[0].status == "added"


def test_an_encrypted_footer_needs_its_key(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS, Mode.ENCRYPTED)
    before = path.read_bytes()
    (file,) = hudi.add_record_key_filter(path).files
    assert file.status == "failed"
    assert "k_footer" in str(file.error)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_filter_is_kept_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS)
    hudi.add_record_key_filter(path)
    before = path.read_bytes()
    (kept,) = hudi.add_record_key_filter(path).files
    assert (kept.status, kept.filters[0].action) == ("unchanged", "kept")
    assert path.read_bytes() == before
    options = RecordKeyFilterOptions(type_code="SIMPLE", fpp=0.01)
    (replaced,) = hudi.add_record_key_filter(path, options=options, replace=True).files
    assert replaced.filters[0].action == "replaced"
    assert set(hudi_pairs(path)) == {
        "org.apache.hudi.bloomfilter",
        "hoodie_min_record_key",
        "hoodie_max_record_key",
    }
    assert path.stat().st_size < len(before)


def test_a_filter_that_misses_keys_is_found_when_it_is_replaced(tmp_path: Path) -> None:
    table = base_table(KEYS)
    wrong = hudi.SimpleBloomFilter(5000, 1e-6)
    wrong.insert_many(KEYS[:-3])
    pairs = {"com.uber.hoodie.bloomfilter": wrong.serialize(), "mine": "kept"}
    path = write(tmp_path / "x.parquet", table.replace_schema_metadata(pairs))
    (file,) = hudi.add_record_key_filter(path, replace=True).files
    missed = int((~wrong.check_many(KEYS)).sum())
    assert missed == 3
    assert f"the old filter missed {missed} keys" in str(file.filters[0].reason)
    assert "com.uber.hoodie.bloomfilter" not in footer_pairs(path)
    assert footer_pairs(path)["mine"] == "kept"


def test_pairs_of_others_are_carried_as_they_are(tmp_path: Path) -> None:
    pairs = {b"\xff not UTF-8": b"a", b"theirs": b"\xfe"}
    path = write(tmp_path / "x.parquet", base_table(KEYS).replace_schema_metadata(pairs))
    (before,) = sb.inspect(path).files
    assert before.hudi is None
    hudi.add_record_key_filter(path)
    found = pq.read_metadata(path).metadata
    assert {name: found[name] for name in pairs} == pairs
    assert hudi.read_record_key_filter(path) is not None


def test_a_damaged_filter_is_an_error_until_it_is_replaced(tmp_path: Path) -> None:
    pairs = {"org.apache.hudi.bloomfilter": "AAAA", "hoodie_bloom_filter_type_code": "DYNAMIC_V0"}
    path = write(tmp_path / "x.parquet", base_table(KEYS).replace_schema_metadata(pairs))
    (failed,) = hudi.add_record_key_filter(path).files
    assert failed.status == "failed"
    assert "--replace-filters" in str(failed.hint)
    (file,) = hudi.add_record_key_filter(path, replace=True).files
    assert file.status == "added"
    assert hudi.read_record_key_filter(path) is not None


def test_a_dry_run_writes_nothing_and_tells_the_same(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS)
    before = path.read_bytes()
    dry = hudi.add_record_key_filter(path, dry_run=True)
    assert path.read_bytes() == before
    wet = hudi.add_record_key_filter(path)
    assert dry.files[0].bytes_after == wet.files[0].bytes_after == path.stat().st_size
    assert dry.notes == wet.notes
    assert dry.dry_run


def test_output_leaves_the_old_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = base_file(tmp_path / "in" / "x.parquet", KEYS)
    before = path.read_bytes()
    hudi.add_record_key_filter(tmp_path / "in", output=tmp_path / "out")
    assert path.read_bytes() == before
    assert hudi.read_record_key_filter(path) is None
    assert hudi.read_record_key_filter(tmp_path / "out" / "x.parquet") is not None


def test_files_of_a_live_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    path = base_file(tmp_path / "x.parquet", KEYS)
    with pytest.raises(UnsupportedFeatureError, match="Hudi table"):
        hudi.add_record_key_filter(path)


def test_the_range_is_in_java_order_over_all_row_groups(tmp_path: Path) -> None:
    keys = [
        "b",
        "a\U0001f600",
        "a\uffee",
        "a\ue000",
        "aé",
        "a\ud7ff",
        "B",
        "z\U00010000",
        "z\uff00",
    ]
    path = base_file(tmp_path / "x.parquet", keys, row_group_size=2)
    hudi.add_record_key_filter(path)
    stored = hudi.read_record_key_filter(path)
    assert stored is not None
    by_units = sorted(keys, key=lambda key: key.encode("utf-16-be"))
    assert sorted(keys, key=lambda key: java_order(key.encode())) == by_units
    assert (stored.min_key, stored.max_key) == (by_units[0], by_units[-1]) == ("B", "z\uff00")


def test_nulls_are_no_keys_and_a_file_without_keys_has_no_range(tmp_path: Path) -> None:
    for keys in ([None, None], []):
        path = write(tmp_path / "x.parquet", pa.table({"key": pa.array(keys, pa.string())}))
        (file,) = hudi.add_record_key_filter(path, column="key").files
        assert (file.status, file.filters[0].values) == ("added", 0)
        stored = hudi.read_record_key_filter(path)
        assert stored is not None
        assert (stored.min_key, stored.max_key) == (None, None)
        assert stored.filter is not None
        assert not stored.filter.check("a")


def test_a_filter_beyond_its_bound_has_a_note(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS)
    options = RecordKeyFilterOptions(num_entries=100, fpp=0.01, max_entries=200)
    (file,) = hudi.add_record_key_filter(path, options=options).files
    assert "for 200 keys" in str(file.filters[0].reason)
    assert file.filters[0].fpp is not None
    assert file.filters[0].fpp > 0.5


@pytest.mark.parametrize("column", [["a", ""], [b"\xff"], [1], [["a"]]], ids=str)
def test_a_column_that_holds_no_record_keys_fails(tmp_path: Path, column: list[Any]) -> None:
    path = write(tmp_path / "x.parquet", pa.table({KEY_COLUMN: column}))
    before = path.read_bytes()
    (file,) = hudi.add_record_key_filter(path).files
    assert file.status == "failed"
    assert path.read_bytes() == before


def test_another_key_column_can_be_named(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS)
    with pytest.raises(PolicyError, match="no column _hoodie_key") as caught:
        hudi.add_record_key_filter(path, column="_hoodie_key")
    assert f"did you mean {KEY_COLUMN}" in str(caught.value.hint)
    hudi.add_record_key_filter(path, column="email")
    stored = hudi.read_record_key_filter(path)
    assert stored is not None
    assert (stored.column, stored.min_key) == ("email", "user0@example.com")
    (again,) = hudi.add_record_key_filter(path, column="email").files
    assert again.filters[0].action == "kept"


@pytest.mark.parametrize(
    "options", [{"type_code": "DYNAMIC"}, {"num_entries": 0}, {"fpp": 1.5}], ids=str
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        RecordKeyFilterOptions(**options)


def test_in_place_and_output_exclude_each_other(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS)
    with pytest.raises(PolicyError, match="exclude each other"):
        hudi.add_record_key_filter(path, in_place=True, output=tmp_path / "out")


def test_a_struct_of_one_field_is_no_key_column(tmp_path: Path) -> None:
    nested = pa.array([{"a": "k1"}, None], pa.struct([("a", pa.string())]))
    path = write(tmp_path / "x.parquet", pa.table({KEY_COLUMN: nested}))
    (file,) = hudi.add_record_key_filter(path).failed
    assert "wanted one text in each row" in str(file.error)
    (looked,) = hudi.lookup(path, ["k1"]).failed
    assert "wanted one text in each row" in str(looked.error)


def test_a_file_without_keys_has_no_note_about_who_sees_them(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", [])
    report = hudi.add_record_key_filter(path)
    assert (report.files[0].status, report.notes) == ("added", ())


def test_the_filter_of_another_column_is_not_kept_for_this_one(tmp_path: Path) -> None:
    path = base_file(tmp_path / "x.parquet", KEYS)
    hudi.add_record_key_filter(path)
    before = path.read_bytes()
    (failed,) = hudi.add_record_key_filter(path, column="email").files
    assert f"the filter there is of column {KEY_COLUMN}" in str(failed.error)
    assert "--replace-filters" in str(failed.hint)
    assert path.read_bytes() == before
    report = hudi.add_record_key_filter(path, column="email", replace=True)
    # Its keys were never in the old filter, so it missed none.
    assert "missed" not in str(report.notes)
    assert f"Hudi takes it for one of {KEY_COLUMN}" in str(report.notes)
    assert footer_pairs(path)["secure_bloom.hudi.record_key_column"] == "email"
    (failed,) = hudi.add_record_key_filter(path).files
    assert "the filter there is of column email" in str(failed.error)
    hudi.add_record_key_filter(path, replace=True)
    assert "secure_bloom.hudi.record_key_column" not in footer_pairs(path)


def test_a_filter_of_an_unnamed_column_is_not_kept(tmp_path: Path) -> None:
    made = hudi.SimpleBloomFilter(10, 1e-9)
    pairs = {"org.apache.hudi.bloomfilter": made.serialize()}
    table = base_table(KEYS).drop_columns([KEY_COLUMN]).replace_schema_metadata(pairs)
    path = write(tmp_path / "x.parquet", table)
    (failed,) = hudi.add_record_key_filter(path, column="email").files
    assert "does not say which column" in str(failed.error)
    (file,) = hudi.add_record_key_filter(path, column="email", replace=True).files
    assert (file.filters[0].action, file.filters[0].values) == ("replaced", len(KEYS))
    (kept,) = hudi.add_record_key_filter(path, column="email").files
    assert kept.filters[0].action == "kept"


def test_files_are_shared_by_processes(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    folder.mkdir()
    first = base_file(folder / "0.parquet", KEYS[:50], Mode.ENCRYPTED)
    for i in range(1, 5):
        shutil.copyfile(first, folder / f"{i}.parquet")
    report = hudi.add_record_key_filter(folder, keys=KEYRING, jobs=2)
    assert [file.path for file in report.files] == sorted(str(p) for p in folder.iterdir())
    assert {file.status for file in report.files} == {"added"}
    assert len({hudi_pairs(path)["org.apache.hudi.bloomfilter"] for path in folder.iterdir()}) == 1


#: Ways in which a policy gives a column a key.
POLICIES = {
    "above the sections": '[columns.email]\nkey = "k_pii"',
    "inherited by a section": (
        '[columns.email]\nkey = "k_pii"\n[tables."orders/*".columns.email]\nbloom = true'
    ),
    "a section": '[tables."orders/*".columns.email]\nkey = "k_pii"',
    "a section in a line": '[tables."**/ord?rs/**"]\ncolumns = { email = { key = "k_pii" } }',
    "a wider section": (
        '[tables."lake/orders/*".columns.email]\nbloom = true\n'
        '[tables."lake/*".columns.email]\nkey = "k_pii"'
    ),
    "another spelling": '[columns.EMAIL]\nkey = "k_pii"',
}


@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.parametrize("form", POLICIES)
def test_each_form_of_a_policy_keeps_keys_out_of_a_footer_in_clear(
    tmp_path: Path, form: str, is_encrypted: bool
) -> None:
    folder = tmp_path / "lake" / "orders"
    folder.mkdir(parents=True)
    column_keys = {"k_pii": ["email"] if is_encrypted else ["iban"]}
    path = write(folder / "x.parquet", base_table(KEYS), Mode.SIGNED, column_keys=column_keys)
    policy = tmp_path / "policy.toml"
    policy.write_text(f'[footer]\nkey = "k_footer"\nmode = "plaintext"\n{POLICIES[form]}\n')
    before = path.read_bytes()
    for paths in (path, folder, tmp_path / "lake"):
        (file,) = hudi.add_record_key_filter(
            paths, column="email", policy=policy, keys=KEYRING
        ).files
        assert file.status == "failed"
    with pytest.raises(PolicyError):
        sb.paimon.build_index(path, "email", policy=policy, keys=KEYRING)
    assert path.read_bytes() == before
    assert [it.name for it in folder.iterdir()] == ["x.parquet"]


def test_keys_that_take_more_than_the_budget_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = pa.DictionaryArray.from_arrays(pa.nulls(100_000, pa.int32()).fill_null(0), ["k" * 1_000])
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({KEY_COLUMN: keys}), path)
    before = path.read_bytes()
    assert len(before) < 20_000
    monkeypatch.setenv(VARIABLE, "32MiB")
    report = hudi.add_record_key_filter(path)
    assert "record keys" in str(report.files[0].error)
    assert VARIABLE in str(report.files[0].hint)
    assert path.read_bytes() == before
