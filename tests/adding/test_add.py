"""Filters are added to real files; nothing else changes, and nothing is left behind."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.adding import rewrite as rewriting
from secure_bloom.adding.report import AddReport, FileAddReport
from secure_bloom.encryption.kms import ExplicitKeys, Keyring
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.errors import (
    FileChangedError,
    PolicyError,
    UnsupportedFeatureError,
)
from testing.project import CORPUS, ENCRYPTED_CORPUS, NO_CORPUS
from testing.storage import end_before
from testing.surgery import assert_tells_no_secret, filter_of, opened
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, read, write

MODES = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
WAYS = pytest.mark.parametrize("in_place", [False, True], ids=["replace", "in place"])
COLUMNS = ["email", "iban", "id", "city", "score"]


def _add(paths: Any, columns: Any = ("email", "id"), **options: Any) -> AddReport:
    return sb.add_bloom_filters(paths, columns=columns, **{"keys": KEYRING, **options})


def _rows(path: Path, mode: Mode = Mode.ENCRYPTED) -> pa.Table:
    return read(path, encrypted=mode is not Mode.PLAIN)


def _contents(folder: Path) -> dict[str, bytes]:
    files = [p for p in folder.rglob("*") if p.is_file()]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def _emails(table: pa.Table) -> list[str]:
    return table.column("email").to_pylist()


def _policy(**keys: str | None) -> KeyPolicy:
    options = sb.BloomFilterOptions()
    rules = {name: ColumnRule(path=name, key=key, bloom=options) for name, key in keys.items()}
    return KeyPolicy(footer_key="k_footer", columns=rules)


@pytest.fixture
def table_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    for day in (1, 2):
        (folder / f"day={day}").mkdir(parents=True)
        rows = customers(60, seed=day)
        write(folder / f"day={day}" / "part.parquet", rows, Mode.ENCRYPTED, row_group_size=30)
    return folder


@MODES
@WAYS
def test_rows_stay_and_so_does_every_byte_before_the_old_footer(
    tmp_path: Path, mode: Mode, in_place: bool
) -> None:
    path = write(tmp_path / "x.parquet", customers(300), mode, row_group_size=100)
    with opened(path) as it:
        data_end = it.footer.tail.offset
    before, rows = path.read_bytes(), _rows(path, mode)
    (report,) = _add(path, COLUMNS, in_place=in_place).files
    after = path.read_bytes()
    assert _rows(path, mode).equals(rows)
    assert after[:data_end] == before[:data_end]
    if in_place:
        assert after.startswith(before)
    assert (report.status, report.error) == ("added", None)
    assert (report.bytes_before, report.bytes_after) == (len(before), len(after))
    assert len(report.filters) == 15
    assert list(tmp_path.iterdir()) == [path]
    for row_group in range(3):
        found = filter_of(path, row_group, "email")
        part = _emails(rows.slice(100 * row_group, 100))
        assert all(found.check(email.encode()) for email in part)


@MODES
@WAYS
def test_a_second_run_finds_nothing_to_do(tmp_path: Path, mode: Mode, in_place: bool) -> None:
    path = write(tmp_path / "x.parquet", customers(100), mode)
    _add(path, in_place=in_place)
    before, identity = path.read_bytes(), path.stat()
    (report,) = _add(path, in_place=in_place).files
    assert report.status == "unchanged"
    assert {f.action for f in report.filters} == {"kept"}
    assert report.bytes_after == report.bytes_before == len(before)
    assert path.read_bytes() == before
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (identity.st_ino, identity.st_mtime_ns)


@WAYS
def test_a_later_run_adds_to_what_is_there(tmp_path: Path, in_place: bool) -> None:
    path = write(tmp_path / "x.parquet", customers(100), Mode.ENCRYPTED)
    _add(path, ["email"], in_place=in_place)
    kept = filter_of(path, 0, "email")
    (report,) = _add(path, ["email", "iban"], in_place=in_place).files
    assert [(f.column, f.action) for f in report.filters] == [("email", "kept"), ("iban", "added")]
    assert filter_of(path, 0, "email") == kept
    assert filter_of(path, 0, "iban").fill() > 0


@MODES
def test_replacing_filters_does_not_let_a_file_grow(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(300), mode, row_group_size=100)
    rows = _rows(path, mode)
    _add(path)
    size = path.stat().st_size
    for _ in range(2):
        (report,) = _add(path, replace_filters=True).files
        assert {f.action for f in report.filters} == {"replaced"}
        assert path.stat().st_size == size
    tighter = dict.fromkeys(["email", "id"], sb.BloomFilterOptions(fpp=1e-6))
    (report,) = _add(path, tighter, replace_filters=True).files
    assert all(f.fpp is not None and f.fpp <= 1e-6 for f in report.filters)
    assert _rows(path, mode).equals(rows)


def test_output_goes_to_another_folder(table_folder: Path, tmp_path: Path) -> None:
    before = _contents(table_folder)
    report = _add(table_folder, output=tmp_path / "new" / "copy")
    assert report.failed == ()
    assert _contents(table_folder) == before
    copy = tmp_path / "new" / "copy"
    assert set(_contents(copy)) == set(before)
    for name in before:
        assert _rows(copy / name).equals(_rows(table_folder / name))
        assert filter_of(copy / name, 0, "email").fill() > 0


def test_hard_links_that_a_replace_leaves_behind_are_told(tmp_path: Path) -> None:
    path, other = write(tmp_path / "x.parquet", customers(5)), tmp_path / "other"
    other.hardlink_to(path)
    old = path.read_bytes()
    assert _add(path, dry_run=True).notes == ()
    report = _add(path)
    assert report.notes == (f"{path}: the old content stays under 1 other name (hard link)",)
    assert report.files[0].notes == ("the old content stays under 1 other name (hard link)",)
    assert other.read_bytes() == old


def test_output_copies_a_file_that_needs_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(10))
    _add(path)
    (report,) = _add(path, output=tmp_path / "copy").files
    assert report.status == "unchanged"
    assert (tmp_path / "copy" / "x.parquet").read_bytes() == path.read_bytes()


def test_what_stands_beside_a_file_as_its_key_material_is_copied(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(10))
    name = "_KEY_MATERIAL_FOR_x.parquet.json"
    (tmp_path / name).write_text('{"a":"b"}')
    assert _add(path, output=tmp_path / "copy").failed == ()
    assert set(_contents(tmp_path / "copy")) == {"x.parquet", name}
    assert (tmp_path / "copy" / name).read_text() == '{"a":"b"}'


def test_a_crash_on_the_way_over_another_file_leaves_it_with_its_key_material(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.parquet", customers(10))
    policy = KeyPolicy(
        footer_key="k_footer",
        columns={"email": ColumnRule(path="email", key="k_pii")},
        encryption=EncryptionOptions(internal_storage=False),
    )
    out = tmp_path / "out"
    sb.reencrypt(path, policy=policy, keys=KEYRING, output=out)
    before = (out / "x.parquet").read_bytes()
    sb.reencrypt(path, policy=policy, keys=KEYRING)

    end_before(monkeypatch, "x.parquet")
    with pytest.raises(KeyboardInterrupt):
        _add(path, keys=KEYRING, output=out)
    monkeypatch.undo()
    assert (out / "x.parquet").read_bytes() == before
    assert sb.read_table(out, keys=KEYRING).num_rows == 10
    assert _add(path, keys=KEYRING, output=out).failed == ()
    assert sb.read_table(out, keys=KEYRING).num_rows == 10
    name = "_KEY_MATERIAL_FOR_x.parquet.json"
    assert (out / name).read_text() == (tmp_path / name).read_text()


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
def test_key_material_stored_beside_a_file_follows_it_to_the_output(tmp_path: Path) -> None:
    name = "external_key_material_java.parquet.encrypted"
    keys = Keyring(
        master_keys={
            "kf": b"0123456789012345",
            "kc1": b"1234567890123450",
            "kc2": b"1234567890123451",
        }
    )
    with opened(CORPUS / name, keys) as it:
        column = next(leaf.name for leaf in it.footer.leaves if leaf.type.name != "BOOLEAN")
    (report,) = _add(CORPUS / name, [column], keys=keys, output=tmp_path).files
    assert report.error is None
    assert filter_of(tmp_path / name, 0, column, keys).fill() > 0


def test_a_stale_checksum_is_removed_when_the_file_changes(tmp_path: Path) -> None:
    for in_place in (True, False):
        path = write(tmp_path / "x.parquet", customers(10))
        sidecar = tmp_path / ".x.parquet.crc"
        sidecar.write_bytes(b"crc")
        _add(path, in_place=in_place, dry_run=True)
        assert sidecar.exists()
        _add(path, in_place=in_place)
        assert not sidecar.exists()
        sidecar.write_bytes(b"fresh")
        _add(path, in_place=in_place)
        assert sidecar.exists(), "the file did not change, and its checksum is good"


@WAYS
def test_a_dry_run_reports_and_writes_nothing(table_folder: Path, in_place: bool) -> None:
    before = _contents(table_folder)
    dry = _add(table_folder, in_place=in_place, dry_run=True)
    assert _contents(table_folder) == before
    real = _add(table_folder, in_place=in_place)
    assert dry.dry_run
    for would, did in zip(dry.files, real.files, strict=True):
        assert (would.status, would.bytes_after, would.filters) == (
            did.status,
            did.bytes_after,
            did.filters,
        )


@WAYS
@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda b: b"", "empty"),
        (lambda b: b[: len(b) // 2], "cut short"),
        (lambda b: b"email,iban\n1,2\n" * 50, "not a Parquet file"),
        (lambda b: b[:-20] + bytes([b[-20] ^ 1]) + b[-19:], "authenticate"),
    ],
    ids=["empty", "half", "text", "flipped"],
)
def test_a_broken_file_stops_no_other_and_stays_as_it_is(
    table_folder: Path, damage, text: str, in_place: bool
) -> None:
    broken, whole = sorted(table_folder.rglob("*.parquet"))
    broken.write_bytes(damage(broken.read_bytes()))
    before = _contents(table_folder)
    report = _add(table_folder, in_place=in_place)
    assert [f.status for f in report.files] == ["failed", "added"]
    (failed,) = report.failed
    assert failed.path == str(broken)
    assert str(broken) in str(failed.error)
    assert text in str(failed.error)
    assert_tells_no_secret(json.dumps(report.to_dict()))
    after = _contents(table_folder)
    assert set(after) == set(before)
    assert broken.read_bytes() == before[str(broken.relative_to(table_folder))]
    assert filter_of(whole, 0, "email").fill() > 0


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"columns": ["email", "emial"]}, PolicyError, "no column emial"),
        ({"columns": ["email", "flag"]}, UnsupportedFeatureError, "flag is BOOLEAN"),
        ({"columns": []}, PolicyError, "no column is named"),
        ({"columns": None}, PolicyError, "no column is named"),
        (
            {"columns": None, "policy": _policy(email="k_unknown")},
            PolicyError,
            "k_unknown",
        ),
        ({"in_place": True, "output": "elsewhere"}, PolicyError, "exclude each other"),
    ],
    ids=["unknown column", "boolean", "no column", "nothing", "unknown key", "two ways"],
)
def test_what_cannot_be_is_told_before_a_file_is_written(
    tmp_path: Path, options: dict[str, Any], error: type[sb.SecureBloomError], text: str
) -> None:
    for name in ("a", "b"):
        table = customers(5).append_column("flag", [[True] * 5])
        write(tmp_path / f"{name}.parquet", table, Mode.ENCRYPTED)
    before = _contents(tmp_path)
    with pytest.raises(error, match=text) as caught:
        _add(tmp_path, **options)
    assert _contents(tmp_path) == before
    assert_tells_no_secret(f"{caught.value} {caught.value.hint}")


def test_a_managed_table_is_refused(table_folder: Path) -> None:
    (table_folder / ".hoodie").mkdir()
    (table_folder / ".hoodie" / "hoodie.properties").write_text("")
    before = _contents(table_folder)
    with pytest.raises(sb.SecureBloomError, match="Hudi"):
        _add(table_folder)
    assert _contents(table_folder) == before


@pytest.mark.parametrize(
    ("mode", "policy", "got"),
    [
        (Mode.PLAIN, _policy(email="k_pii"), "a plaintext footer without a signature"),
        (Mode.UNIFORM, _policy(email="k_pii"), "encrypted under k_footer"),
        (Mode.ENCRYPTED, _policy(email="k_finance"), "encrypted under k_pii"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_sensitive_column_that_breaks_the_policy_gets_no_filter(
    tmp_path: Path, mode: Mode, policy: KeyPolicy, got: str
) -> None:
    path = write(tmp_path / "x.parquet", customers(20), mode)
    before = _contents(tmp_path)
    for columns in (None, ["email"]):
        (report,) = _add(path, columns, policy=policy).files
        assert report.status == "failed"
        assert got in str(report.error)
        assert _contents(tmp_path) == before


def test_a_policy_that_the_file_follows_decides_on_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(20), Mode.ENCRYPTED)
    policy = _policy(email="k_pii", iban="k_finance", city=None)
    (report,) = _add(path, None, policy=policy).files
    assert [(f.column, f.key) for f in report.filters] == [
        ("email", "k_pii"),
        ("iban", "k_finance"),
        ("city", None),
    ]


@pytest.mark.parametrize(
    "keys",
    [
        None,
        Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]}),
        Keyring(master_keys={**MASTER_KEYS, "k_pii": b"not the right one, but 32 bytes."}),
        Keyring(master_keys={**MASTER_KEYS, "k_footer": b"another-16-bytes"}),
        ExplicitKeys(footer=b"another-16-bytes"),
    ],
    ids=["none", "no column key", "wrong column key", "wrong footer key", "explicit"],
)
def test_without_the_right_keys_nothing_is_written(
    tmp_path: Path, keys: Keyring | ExplicitKeys | None
) -> None:
    path = write(tmp_path / "x.parquet", customers(20), Mode.ENCRYPTED)
    before = _contents(tmp_path)
    (report,) = _add(path, keys=keys).files
    assert report.status == "failed"
    assert str(report.error).startswith(str(path))
    assert_tells_no_secret(f"{report.error} {report.hint}")
    assert _contents(tmp_path) == before


def _torn(folder: Path, mode: Mode) -> tuple[Path, bytes, bytes]:
    path = write(folder / "x.parquet", customers(40), mode, row_group_size=20)
    old = path.read_bytes()
    _add(path, in_place=True)
    return path, old, path.read_bytes()


@MODES
def test_a_torn_append_is_repaired_by_the_next_one(tmp_path: Path, mode: Mode) -> None:
    path, old, new = _torn(tmp_path, mode)
    wanted = _rows(path, mode)
    for end in range(len(old) + 1, len(new), 197):
        path.write_bytes(new[:end])
        (report,) = _add(path, in_place=True).files
        assert (report.status, report.bytes_before) == ("added", len(old)), end
        assert path.read_bytes().startswith(old)
        assert filter_of(path, 1, "email").fill() > 0
    assert _rows(path, mode).equals(wanted)


@pytest.mark.parametrize(
    "options", [{"in_place": True, "dry_run": True}, {}, {"output": "out"}], ids=str
)
def test_a_torn_append_is_cut_back_by_no_other_run(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, old, new = _torn(tmp_path, Mode.ENCRYPTED)
    torn = new[: (len(old) + len(new)) // 2]
    path.write_bytes(torn)
    (report,) = _add(path, **options).files
    assert report.status == "failed"
    assert "--in-place" in str(report.hint)
    assert _contents(tmp_path) == {"x.parquet": torn}


@WAYS
def test_two_runs_at_once_leave_one_good_file(tmp_path: Path, in_place: bool) -> None:
    path = write(tmp_path / "x.parquet", customers(400), Mode.ENCRYPTED, row_group_size=100)
    rows, statuses = _rows(path), []
    start = threading.Barrier(4)

    def run() -> None:
        start.wait()
        statuses.extend(file.status for file in _add(path, in_place=in_place).files)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == ["added", "unchanged", "unchanged", "unchanged"]
    assert list(tmp_path.iterdir()) == [path]
    assert _rows(path).equals(rows)
    assert _add(path).files[0].status == "unchanged"


def test_a_file_that_keeps_changing_is_given_up_with_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.parquet", customers(10))
    tries = []

    def changed(*_: object, **__: object) -> int:
        tries.append(1)
        raise FileChangedError("the file was changed after it was read")

    monkeypatch.setattr(rewriting, "replace_tail", changed)
    (report,) = _add(path).files
    assert report.status == "failed"
    assert "changed" in str(report.error)
    assert len(tries) == 3


def test_progress_goes_from_nothing_to_all(table_folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = _add(table_folder, progress=lambda done, total: seen.append((done, total)))
    chunks = sum(len(file.filters) for file in report.files)
    assert {total for _, total in seen} == {chunks}
    assert sorted({done for done, _ in seen}) == list(range(chunks + 1))
    assert seen == sorted(seen)


def test_files_are_at_work_side_by_side(
    table_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)
    rewrite = rewriting.Rewriter.rewrite

    def meet(self: rewriting.Rewriter, path: str, **options: Any) -> FileAddReport:
        both.wait(30)
        return rewrite(self, path, **options)

    monkeypatch.setattr(rewriting.Rewriter, "rewrite", meet)
    files = _add(table_folder, jobs=2).files
    assert len(files) % 2 == 0
    assert [file.path for file in files] == sorted(file.path for file in files)
    assert {file.status for file in files} == {"added"}


def test_an_interrupt_leaves_the_files_that_wait_as_they_were(tmp_path: Path) -> None:
    for i in range(40):
        write(tmp_path / f"{i:02}.parquet", customers(5))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def interrupt(done: int, _: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _add(tmp_path, progress=interrupt)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()}.keys() == before.keys()
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    assert len(changed) < 20
    for path in changed:
        assert filter_of(path, 0, "id").byte_count > 0


def test_a_column_that_only_some_files_have(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", customers(5))
    write(tmp_path / "b.parquet", customers(5).drop_columns(["email"]))
    first, second = _add(tmp_path).files
    assert [f.action for f in first.filters] == ["added", "added"]
    assert [(f.column, f.action) for f in second.filters] == [("id", "added"), ("email", "skipped")]


def test_two_files_of_one_name_cannot_share_an_output(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "x.parquet", customers(5))
    files = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(PolicyError, match="two input files"):
        _add(files, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_report_is_the_document_of_the_design(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5), Mode.ENCRYPTED)
    document = json.loads(json.dumps(_add(path, ["email"]).to_dict()))
    (file,) = document["files"]
    assert {"path", "status", "bytes_before", "bytes_after", "seconds", "filters", "error"} <= set(
        file
    )
    (found,) = file["filters"]
    wanted = {"row_group", "column", "bytes", "values", "fpp_requested", "fpp", "encrypted", "key"}
    assert wanted | {"source", "action", "reason"} == set(found)
    assert (found["key"], found["source"], found["action"]) == ("k_pii", "dictionary", "added")


@pytest.mark.parametrize("rows", [0, 1])
@MODES
def test_files_with_next_to_nothing_in_them(tmp_path: Path, mode: Mode, rows: int) -> None:
    path = write(tmp_path / "x.parquet", customers(1).slice(0, rows), mode)
    (report,) = _add(path, COLUMNS).files
    assert report.error is None
    assert _rows(path, mode).num_rows == rows
    assert _add(path, COLUMNS).files[0].status == "unchanged"


CORPUS_KEYS = ExplicitKeys(
    data_keys={
        "kf": b"0123456789012345",
        "kc1": b"1234567890123450",
        "kc2": b"1234567890123451",
    }
)


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
@pytest.mark.parametrize("name", ENCRYPTED_CORPUS)
@WAYS
def test_files_of_the_public_corpus_take_filters(tmp_path: Path, name: str, in_place: bool) -> None:
    keys: Keyring | ExplicitKeys = CORPUS_KEYS
    for file in CORPUS.glob(f"*{name}*"):
        shutil.copyfile(file, tmp_path / file.name)
    if name.startswith("external"):
        keys = Keyring(master_keys=CORPUS_KEYS.data_keys)
    if "disable_aad" in name:
        keys = ExplicitKeys(data_keys=CORPUS_KEYS.data_keys, aad_prefix=b"tester")
    path = tmp_path / name
    before = path.read_bytes()
    with opened(path, keys) as it:
        columns = [leaf.name for leaf in it.footer.leaves if leaf.type.name != "BOOLEAN"]
        data_end = it.footer.tail.offset
    (report,) = _add(path, columns, keys=keys, in_place=in_place).files
    assert (report.status, report.error) == ("added", None)
    assert path.read_bytes()[:data_end] == before[:data_end]
    for column in columns:
        assert filter_of(path, 0, column, keys).fill() > 0


def test_a_format_error_of_a_whole_file_is_told_in_place_too(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(20), compression="none", use_dictionary=False)
    content = path.read_bytes()
    place = content.index(b"user1@example.com") - 4
    path.write_bytes(content[:place] + b"\xff\xff\xff\x7f" + content[place + 4 :])
    before = _contents(tmp_path)
    (report,) = _add(path, ["email"], in_place=True).files
    assert "row group 0, column email" in str(report.error)
    assert_tells_no_secret(str(report.error))
    assert _contents(tmp_path) == before


def test_files_that_have_their_filters_cost_no_numpy_and_no_pyarrow(tmp_path: Path) -> None:
    """To load both takes longer than to look at hundreds of such files."""
    path = write(tmp_path / "x.parquet", customers(20), Mode.PLAIN)
    _add(path)
    code = (
        "import sys, secure_bloom as sb\n"
        f"(file,) = sb.add_bloom_filters({str(path)!r}, columns=('email', 'id')).files\n"
        "print(file.status, {'numpy', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["unchanged", "set()"]
