""" "I have a filter; why is nothing faster?", as the explanation answers it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli import main
from secure_bloom.encryption.kms import KeyMisfitError, Keyring
from testing.command_line import run
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, keyring_json, write

ROWS = 4000
EMAIL = "email = 'user77@example.com'"
BESIDE = "(there are filters of email, id)"
ADD = "secure-bloom add PATH --column"
IBAN = f"iban = 'DE{77:020d}'"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files of four row groups; e-mails and numbers have filters."""
    folder = tmp_path_factory.mktemp("lake")
    rows = customers(ROWS)
    lengths = pa.array([timedelta(seconds=i) for i in range(ROWS)], pa.duration("us"))
    flags = pa.array([i % 2 == 0 for i in range(ROWS)])
    rows = rows.append_column("length", lengths).append_column("flag", flags)
    for number in range(4):
        part = rows.slice(number * ROWS // 4, ROWS // 4)
        write(folder / f"{number}.parquet", part, row_group_size=250, use_dictionary=["city"])
    assert not sb.add_bloom_filters(folder, columns=["email", "id"]).failed
    return folder


def advice(path: Path, where: str | None, **options: Any) -> str:
    return "\n".join(sb.explain(path, where=where, **options).advice)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        (None, ["there is no condition (--where)"]),
        (EMAIL, []),
        (
            IBAN,
            [
                # In the sixteenth row group the row is found, and no filter would skip it.
                f"iban has no filter in 15 row groups that had to be read {BESIDE}: {ADD} iban",
            ],
        ),
        (
            f"{EMAIL} or {IBAN}",
            [
                "iban has no filter in 15 row groups",
                "under `or` every part must be ruled out; the filter of email alone cannot",
            ],
        ),
        ("id < 3", ["a filter answers = and in, and the condition on id is neither"]),
        (
            "id != 77",
            [
                "a filter answers = and in, and the condition on id is neither",
                "16 of 16 row groups hold rows that match: no filter can skip them",
            ],
        ),
        ("city = 'rome'", ["16 of 16 row groups hold rows that match: no filter can skip them"]),
        ("length = PT77S", ["no filter can be asked for the value of length"]),
        ("flag = true", ["16 of 16 row groups hold rows that match: no filter can skip them"]),
        # The filter found its row group; another filter would have nothing to add.
        (f"{EMAIL} and {IBAN}", []),
    ],
    ids=str,
)
def test_what_a_newcomer_is_told(lake: Path, where: str | None, told: list[str]) -> None:
    found = sb.explain(lake, where=where).advice
    # True of all files of tests, and told of below.
    found = [sentence for sentence in found if "the files are small" not in sentence]
    assert len(found) == len(told), found
    for sentence, start in zip(found, told, strict=True):
        assert sentence.startswith(start)


def test_a_filter_that_is_too_full(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(1000), row_group_size=500, use_dictionary=False)
    little = sb.BloomFilterOptions(fpp=0.01, max_bytes=64)
    assert not sb.add_bloom_filters(path, columns={"email": little}).failed
    told = advice(path, EMAIL)
    assert told.startswith("the filter of email is too full: ")
    assert "--column email:fpp=0.01 --replace-filters" in told
    shown = explained(path, EMAIL)
    assert "e+" not in shown
    assert "has no filter" not in shown


def test_a_long_list_is_no_fault_of_a_full_filter(lake: Path) -> None:
    values = [f"user{i}@nowhere.com" for i in range(2000)]
    report = sb.explain(lake, where=[("email", "in", [*values, "user77@example.com"])])
    assert report.rows == 1
    told = [sentence for sentence in report.advice if "email" in sentence]
    assert [sentence.partition(":")[0] for sentence in told] == [
        "the condition has many values of email"
    ]


def test_what_rows_were_found_for_no_filter_can_skip(tmp_path: Path) -> None:
    """Of three values all over the table, each row group has each: whatever is asked of them."""
    table = pa.table({"c": [("it", "no", "fr")[i % 3] for i in range(2000)], "n": range(2000)})
    path, with_filters = tmp_path / "a.parquet", tmp_path / "b.parquet"
    options = {"row_group_size": 100, "use_dictionary": False, "write_statistics": False}
    for target in (path, with_filters):
        pq.write_table(table, target, **options)
    assert not sb.add_bloom_filters(with_filters, columns=["c", "n"]).failed
    told = "20 of 20 row groups hold rows that match: no filter can skip them"
    spread = [("n", "in", list(range(0, 2000, 2)))]
    for file in (path, with_filters):
        for where in ([("c", "=", "it")], [("c", "in", ["it", "no"])], spread):
            report = sb.explain(file, where=where)
            (found,) = [s for s in report.advice if "the files are small" not in s]
            assert found.startswith(told), (file, where)


def test_rows_found_are_told_of_each_row_group(lake: Path) -> None:
    report = sb.explain(lake, where=f"{EMAIL} or id = 77")
    groups = [group for file in report.files for group in file.row_groups]
    found = [group.rows_found for group in groups if group.skipped_by is None]
    assert [count for count in found if count] == [1]
    assert all(group.rows_found is None for group in groups if group.skipped_by is not None)
    document = json.loads(explained(lake, "city = 'rome' and score > 0", "--json"))["explain"]
    told = [group["rows_found"] for file in document["files"] for group in file["row_groups"]]
    assert sum(told) == document["rows"] > 0
    for where in (EMAIL, "id = -1"):
        document = json.loads(explained(lake, where, "--json"))["explain"]
        groups = [group for file in document["files"] for group in file["row_groups"]]
        assert {g["rows_found"] for g in groups if g["skipped_by"]} == {None}
    every = sb.explain(lake, where=None).files[0].row_groups
    assert [group.rows_found for group in every] == [250] * 4


def test_a_missing_key_takes_the_filter_with_it(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(100), Mode.ENCRYPTED)
    assert not sb.add_bloom_filters(path, columns=["email"], keys=KEYRING).failed
    keys = Keyring(master_keys={name: k for name, k in MASTER_KEYS.items() if name != "k_pii"})
    where = f"{EMAIL} and id >= 0" if isinstance(EMAIL, str) else [*EMAIL, ("id", ">=", 0)]
    told = advice(path, where, columns=["id"], keys=keys, without_filter_keys=True)
    assert told.startswith("the key of email is missing: its condition was left out")


def test_a_key_that_does_not_fit_is_no_missing_key(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(100), Mode.ENCRYPTED)
    assert not sb.add_bloom_filters(path, columns=["email"], keys=KEYRING).failed
    other = Keyring(master_keys={**MASTER_KEYS, "k_pii": b"another-key-24-bytes-xxx"})
    for anyway in (False, True):
        with pytest.raises(KeyMisfitError, match="'k_pii' does not fit") as caught:
            sb.read_table(path, where=EMAIL, columns=["id"], keys=other, without_filter_keys=anyway)
        assert caught.value.column == "email"
        assert "without_filter_keys" not in (caught.value.hint or "")


def test_one_row_group_is_read_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(500), use_dictionary=False)
    assert not sb.add_bloom_filters(path, columns=["email"]).failed
    assert "there is one row group, which is read or skipped whole" in advice(path, EMAIL)
    assert sb.explain(path, where="email = 'nobody'").row_groups_read == 0
    assert "one row group" not in advice(path, "email = 'nobody'")
    for where in ("email != 'nobody'", "id >= 0", "city = 'rome'"):
        assert "one row group" not in advice(path, where)


def test_more_than_a_full_scan_is_said_so(tmp_path: Path) -> None:
    rows = customers(6000)
    size = 2000
    for number in range(3):
        part = rows.slice(number * size, size)
        write(tmp_path / f"{number}.parquet", part, Mode.ENCRYPTED, use_dictionary=False)
    large = {"email": sb.BloomFilterOptions(fpp=1e-9)}
    assert not sb.add_bloom_filters(tmp_path, columns=large, keys=KEYRING).failed
    one_each = [rows.column("email")[number * size].as_py() for number in range(3)]
    where = f"email in ({', '.join(map(repr, one_each))})"
    report = sb.explain(tmp_path, where=where, keys=KEYRING, columns=["email"])
    assert report.bytes_read > report.bytes_full_scan
    (told,) = [s for s in report.advice if "small" in s]
    assert told.startswith("the files are small: their footers and filters are most of what is")
    for file in report.files:
        assert file.bytes_read == file.bytes_footer + file.bytes_judged_by + file.bytes_pages
        assert file.bytes_read <= Path(file.path).stat().st_size
        assert file.filters == ("email",)
    keyring = tmp_path / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)
    shown = explained(tmp_path, where, "--keyring", keyring, "--columns", "email")
    assert "% more than a full scan (" in shown
    assert "that a full scan reads" not in shown


@pytest.mark.parametrize("rows", [200, 3000])
@pytest.mark.parametrize("where", [None, EMAIL, "city = 'rome'", "id in (5, 6)"])
def test_no_byte_of_a_file_counts_twice(tmp_path: Path, rows: int, where: str | None) -> None:
    """The first look at a file is at its end, and what is wanted later may stand there too."""
    path = write(tmp_path / "x.parquet", customers(rows), row_group_size=500)
    assert not sb.add_bloom_filters(path, columns=["email", "id"]).failed
    size = path.stat().st_size
    (file,) = sb.explain(path, where=where).files
    assert file.bytes_footer == min(size, 64 * 1024)
    assert file.bytes_read == file.bytes_footer + file.bytes_judged_by + file.bytes_pages <= size
    assert file.bytes_full_scan <= size
    if where is None:
        assert file.bytes_read == file.bytes_full_scan


def test_every_file_is_in_the_report(lake: Path) -> None:
    for where in (None, "id < 3000", EMAIL, "id = -1"):
        report = sb.explain(lake, where=where)
        assert [Path(file.path).name for file in report.files] == [f"{i}.parquet" for i in range(4)]
        assert (report.row_groups, report.files_left) == (16, 0)
        assert report.row_groups_read + sum(report.skipped.values()) == 16


def test_files_behind_the_limit_are_told_of(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Tiny files are read by one thread; several begin more files than one.
    report = sb.explain(lake, limit=1)
    assert (len(report.files), report.files_left) == (1, 3)
    assert report.to_dict()["files_left"] == 3
    with pytest.raises(SystemExit):
        main(["read", str(lake), "--limit", "1", "--explain"])
    assert "not looked at: there were rows enough" in capsys.readouterr().out


def test_the_page_index_speaks_of_its_own_column(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"a": range(1000), "b": [i % 10 for i in range(1000)]})
    options: dict[str, Any] = {
        "write_batch_size": 100,
        "data_page_size": 1,
        "use_dictionary": False,
    }
    pq.write_table(table, path, write_page_index=True, **options)
    for where, left in (("a = 5 or b = 5", 1000), ("a = 5 and b = 5", 100)):
        (group,) = sb.explain(path, where=where).files[0].row_groups
        told = {note.column: note.rows for note in group.notes if note.step == "page index"}
        assert told == {"a": 100, "b": 1000}, where
        assert "leaves 1,000 of 1,000 rows" in {note.text for note in group.notes}
        ranges = group.ranges or ((0, group.rows),)
        assert sum(end - start for start, end in ranges) == left
    shown = explained(path, "a >= 5 and a < 250 and b = 5")
    assert "not skipped: a, page index: leaves 300 of 1,000 rows (1 row group)" in shown


def test_row_groups_are_counted_once_a_column(lake: Path) -> None:
    shown = explained(lake, "email >= 'user77@' and email < 'user77A'")
    assert "not skipped: email, statistics: do not exclude it (16 row groups)" in shown
    assert "(32 row groups)" not in shown
    assert "email, statistics: do not exclude it (1 row group)\n" in explained(lake, EMAIL)


# A program of its own has the extension.
@pytest.mark.parametrize("has_extension", [True])
def test_a_program_is_told_the_same(lake: Path) -> None:
    told = json.loads(explained(lake, IBAN, "--json"))["explain"]
    assert told["advice"] == sb.explain(lake, where=IBAN).advice
    assert told["row_groups"] == 16
    file = told["files"][0]
    assert file["filters"] == ["email", "id"]
    reasons = {note["reason"] for group in file["row_groups"] for note in group["notes"]}
    assert reasons == {None, "no filter"}
    (group,) = [
        group
        for file in json.loads(explained(lake, EMAIL, "--json"))["explain"]["files"]
        for group in file["row_groups"]
        if group["skipped_by"] is None
    ]
    (maybe,) = [note for note in group["notes"] if note["reason"] == "filter: maybe"]
    assert 0 < maybe["fpp"] < 0.01
    assert maybe["chance"] == pytest.approx(maybe["fpp"])


def test_each_row_group_says_why(lake: Path) -> None:
    shown = explained(lake, EMAIL, "-v")
    assert shown.count(", 250 rows: skipped by Bloom filter\n") == 15
    assert shown.count(", 250 rows: read\n") == 1
    assert "    email, Bloom filter: maybe: the filter's false-positive probability is " in shown


def explained(path: Path, where: str | None, *arguments: object) -> str:
    condition = () if where is None else ("--where", where)
    done = run("read", path, *condition, "--explain", *arguments, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_report_as_text_is_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": range(10)}), path)
    report = sb.explain(path, "a = 3")
    assert str(report).splitlines() == report.lines
    assert report.lines[0] == "rows:       1"
    assert report.lines[1].startswith("not skipped: a, ")
