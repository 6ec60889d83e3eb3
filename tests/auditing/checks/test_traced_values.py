"""Values of sensitive columns elsewhere in clear: all of them are searched for, everywhere."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing import file_audit
from secure_bloom.auditing.checks import traced_values
from secure_bloom.auditing.formats.mistakes import group_report, verdict
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import FormatError
from secure_bloom.running.memory_budget import VARIABLE
from secure_bloom.tracing import search
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import POLICY, Example, put_index, sound, with_rules


def emails(rows: int) -> list[str]:
    return [str(it) for it in customers(rows)["email"].to_pylist()]


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def with_column(folder: Path, values: list[str]) -> Example:
    table = customers(len(values))
    return Example(path=sound(folder, table=table.append_column("x", pa.array(values))))


def test_they_are_searched_for_only_on_request(tmp_path: Path) -> None:
    found = with_column(tmp_path, emails(30))
    assert ids(found.audit()) == []
    report = found.audit(check_values=True)
    assert ids(report) == ["values-in-clear"]
    assert report.findings[0].column == "x"


def test_a_value_by_chance_is_a_note(tmp_path: Path) -> None:
    found = with_column(tmp_path, [emails(1)[0], *(f"town {i}" for i in range(29))])
    report = found.audit(check_values=True)
    assert (ids(report), [it.id for it in report.notes]) == ([], ["values-mentioned"])


def test_a_column_with_a_rule_without_a_key_may_repeat_them(tmp_path: Path) -> None:
    found = with_column(tmp_path, emails(30))
    found.policy = with_rules(POLICY, x=None)
    assert ids(found.audit(check_values=True)) == []


def test_a_sensitive_column_of_booleans_has_no_values_to_look_for(tmp_path: Path) -> None:
    values = pa.array([True, False] * 15)
    found = Example(path=sound(tmp_path, table=customers(30).append_column("is_ill", values)))
    found.policy = with_rules(POLICY, is_ill="k_pii")
    before = ids(found.audit())
    assert ids(found.audit(check_values=True)) == before


def test_every_value_of_every_file_is_searched_for(tmp_path: Path) -> None:
    """Not a sample: the last rows of the fifth file, in the last bytes of a large file."""
    folder = tmp_path / "lake"
    folder.mkdir()
    every = customers(3_000)
    for n in range(6):
        (folder / str(n)).mkdir()
        sound(folder / str(n), table=every.slice(500 * n, 500))
    last = [str(it) for it in every["email"].to_pylist()[2_490:2_500]]
    copy = "\n".join(f"{n},other text" for n in range(500_000)) + "\n" + "\n".join(last)
    (folder / "notes.txt").write_text(copy)
    assert len(copy) > 8 << 20
    report = Example(path=folder).audit(check_values=True)
    assert [(it.id, it.column) for it in report.findings] == [("values-in-clear", "email")]
    (found,) = (report.leak_search or {})["found"]
    assert (found["passed"], found["confirmed"]) == (10, 10)


def test_values_that_do_not_fit_into_memory_are_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sound(tmp_path, table=customers(9_000)).parent
    last = emails(9_000)[-20:]
    (folder / "dump.csv.gz").write_bytes(gzip.compress("\n".join(last).upper().encode()))
    monkeypatch.setenv(VARIABLE, "250KiB")
    report = Example(path=folder).audit(check_values=True)
    assert [(it.id, it.column) for it in report.findings] == [("values-in-clear", "email")]
    search = report.leak_search or {}
    assert [it["confirmed"] for it in search["found"]] == [20]
    wide = {it["column"]: it["is_estimated"] for it in search["columns"]}
    assert wide["email"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("dump.csv.gz", gzip.compress("\n".join(emails(20)).encode(), mtime=0)),
        (
            "hashes.txt",
            "\n".join(hashlib.md5(it.encode()).hexdigest() for it in emails(20)).encode(),
        ),
        ("notes.json", json.dumps(emails(20)).encode("utf-16")),
    ],
)
def test_files_beside_the_table_are_searched(tmp_path: Path, name: str, content: bytes) -> None:
    folder = sound(tmp_path).parent
    (folder / name).write_bytes(content)
    report = Example(path=folder).audit(check_values=True)
    assert [(it.id, it.column) for it in report.findings] == [("values-in-clear", "email")]
    assert not any(it in report.to_json() for it in emails(20))


def test_local_parts_count_where_the_policy_says_so(tmp_path: Path) -> None:
    table = customers(30)
    values = pa.array([f"anna.smith{n}@post.fi" for n in range(30)])
    table = table.set_column(table.schema.get_field_index("email"), "email", values)
    folder = sound(tmp_path, table=table).parent
    (folder / "users.txt").write_text("\n".join(f"anna.smith{n}" for n in range(10)))
    found = Example(path=folder)
    assert ids(found.audit(check_values=True)) == []
    rule = ColumnRule(path="email", key="k_pii", parts=("local",))
    found.policy = with_rules(POLICY, email=rule)
    assert ids(found.audit(check_values=True)) == ["values-in-clear"]


def test_a_file_that_is_not_read_whole_is_a_finding(tmp_path: Path) -> None:
    folder = sound(tmp_path).parent
    (folder / "x.bin").write_bytes(b"Salted__" + b"\0" * 30)
    report = Example(path=folder).audit(check_values=True)
    assert ids(report) == ["unchecked-copy"]
    assert "openssl" in report.findings[0].message
    # Nothing shows that it is a copy: it may be a model, or a policy.
    assert "`rm" not in str(report.findings[0].to_dict()["fix"])


def test_a_column_of_which_no_value_is_searched_for_is_a_note(tmp_path: Path) -> None:
    table = customers(30)
    days = pa.array(range(30), pa.date32())
    place = table.schema.get_field_index("email")
    path = sound(tmp_path, table=table.set_column(place, "email", days))
    report = Example(path=path).audit(check_values=True)
    assert [(it.id, it.column) for it in report.notes] == [("values-not-searched", "email")]
    assert "so dense" in report.notes[0].message


def test_a_value_in_a_name_is_found_and_masked(tmp_path: Path) -> None:
    folder = sound(tmp_path).parent
    value = emails(5)[3]
    (folder / f"{value}.bin").write_bytes(b"Salted__" + b"\0" * 30)
    report = Example(path=folder).audit(check_values=True)
    assert set(ids(report)) == {"unchecked-copy", "values-in-clear"}
    assert value not in report.to_json()
    (found,) = [it for it in report.findings if it.id == "values-in-clear"]
    assert found.what.endswith(f"hold values of the column: {folder}/***1")
    for number in range(4):
        (folder / f"{emails(5)[number]}.{{0}}").mkdir()
        (folder / f"{emails(5)[number]}.{{0}}" / "x.csv").write_text("1")
    report = Example(path=folder).audit(check_values=True)
    (found,) = [it for it in report.findings if it.id == "values-in-clear"]
    assert found.what.endswith("/***3 and 2 more")
    assert "@" not in report.to_json()


def test_a_name_that_could_be_a_digest_is_shown_unless_it_is_one(tmp_path: Path) -> None:
    value = emails(5)[3].encode()
    digest = hashlib.sha1(value).hexdigest()
    others = ["lake-of-tests-abc4_7zyx", "aKEY_MATERIAL_FOR_gone", hashlib.sha256(b"").hexdigest()]
    for name in (digest, *others):
        (tmp_path / name).mkdir()
        sound(tmp_path / name, Mode.PLAIN)
    report = Example(path=tmp_path).audit(check_values=True)
    assert "values-in-clear" in ids(report)
    shown = {PurePath(path).parent.name for path in report.paths}
    assert shown == {"***1", *others}
    assert digest not in report.to_json()
    assert all(f"{tmp_path}/{name}/x.parquet" in report.to_json() for name in others)


def test_columns_of_other_tables_are_searched(tmp_path: Path) -> None:
    folder = sound(tmp_path).parent
    pq.write_table(pa.table({"mail": emails(20)}), folder / "other.data")
    report = Example(path=folder).audit(check_values=True)
    assert "values-in-clear" in ids(report)


def damaged() -> bytes:
    """A Parquet file whose footer is none, with its values in pages that are not compressed."""
    file = io.BytesIO()
    table = pa.table({"mail": emails(20)})
    pq.write_table(table, file, compression="none", use_dictionary=False)
    content = bytearray(file.getvalue())
    content[-200:-8] = bytes(192)
    return bytes(content)


def in_clear() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"mail": emails(20)}), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.parquet", in_clear()),
        ("b.parquet", "\n".join(emails(20)).encode()),
        ("b.parquet", gzip.compress("\n".join(emails(20)).encode(), mtime=0)),
        ("b.parquet", damaged()),
    ],
    ids=["Parquet", "text", "gzip", "damaged footer"],
)
@pytest.mark.parametrize("tables", [False, True], ids=["one policy", "no table's"])
def test_files_whose_footer_is_not_audited_are_searched(
    tmp_path: Path, name: str, content: bytes, tables: bool
) -> None:
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    (tmp_path / "lake" / "other").mkdir()
    sound(tmp_path / "lake" / "orders")
    (tmp_path / "lake" / "other" / name).write_bytes(content)
    found = Example(path=tmp_path / "lake")
    if tables:
        found.policy = KeyPolicy(tables={"orders/*": POLICY})
    report = found.audit(check_values=True)
    leaked = [(it.path, it.column) for it in report.findings if it.id == "values-in-clear"]
    column = "mail" if name == "b.parquet" and content == in_clear() and not tables else "email"
    assert leaked == [(str(tmp_path / "lake" / "other" / name), column)]


def test_values_that_are_not_searched_for_are_a_note_with_counts(tmp_path: Path) -> None:
    """Addresses of one network are as dense as numbers, so a log of them is not found."""
    addresses = [f"192.168.{n // 256}.{n % 256}" for n in range(2_000)]
    table = customers(2_000).set_column(0, "email", pa.array(addresses))
    path = sound(tmp_path, table=table)
    (path.parent / "access.log").write_text("".join(f"{it} GET /\n" for it in addresses[:500]))
    example = Example(path=path.parent)
    report = example.audit(check_values=True)
    (note,) = (it for it in report.notes if it.column == "email")
    assert (note.id, "800 of 2,000 values were not searched for" in note.what) == (
        "values-not-searched",
        True,
    )
    assert verdict(report, group_report(report)).headline == (
        "clean, but not all values were searched for"
    )
    counted = example.audit(check_values=True, severity="note")
    assert (counted.verdict, verdict(counted, group_report(counted)).headline) == (
        "findings",
        "nothing but notes, and --severity note counts them",
    )


def test_short_values_of_a_column_are_counted(tmp_path: Path) -> None:
    table = customers(30)
    names = pa.array([*(f"Person{n}" for n in range(10)), *("Li", "Bo", "Wu", "") * 5])
    report = Example(path=sound(tmp_path, table=table.set_column(0, "email", names))).audit(
        check_values=True
    )
    (note,) = (it for it in report.notes if it.column == "email")
    assert note.what.startswith("3 values were not searched for: words of fewer than 4 letters")
    (column,) = (it for it in (report.leak_search or {})["columns"] if it["column"] == "email")
    assert (column["short_or_long"], column["left_out"]) == (3, 0)


@pytest.mark.parametrize(
    "policy",
    [replace(POLICY, clear=("sc*", "id", "city")), with_rules(score=None, id=None, city=None)],
    ids=["clear", "rules"],
)
def test_columns_that_may_be_in_clear_are_not_searched_for_where_a_file_encrypts_them(
    tmp_path: Path, policy: KeyPolicy
) -> None:
    """One file in uniform mode: its numbers are no secret of the lake for that."""
    write(tmp_path / "a.parquet", customers(60), Mode.UNIFORM)
    table = customers(60).rename_columns(["email", "iban", "id", "city", "other"])
    write(tmp_path / "b.parquet", table, Mode.ENCRYPTED)
    report = sb.audit(tmp_path, policy=policy, keys=KEYRING, check_values=True)
    assert [it.column for it in report.findings if it.id == "values-in-clear"] == []
    assert report.leak_search is not None
    assert {it["column"] for it in report.leak_search["columns"]} == {"email", "iban"}


def test_an_archive_that_cannot_be_searched_is_one_finding(tmp_path: Path) -> None:
    folder = sound(tmp_path).parent
    (folder / "old.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(200))
    assert ids(Example(path=folder).audit(check_values=True)) == ["unchecked-copy"]


def test_an_error_of_the_search_in_a_text_of_the_footer_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One text of the footer that cannot be searched hides no other text, and is listed."""

    def failing(text: bytes, digest: Any) -> Any:
        if b"keyMaterialType" in text:
            raise MemoryError
        return iter(())

    monkeypatch.setattr(search, "decoded", failing)
    texts = {"by": "x@post.fi"}
    table = pa.table({"email": ["x@post.fi"]}).replace_schema_metadata(texts)
    path = sound(tmp_path, table=table, column_keys={"k_pii": ["email"]})
    found = ids(Example(path=path).audit(check_values=True))
    assert {"values-in-clear", "unchecked-copy"} <= set(found)


def test_values_that_could_not_be_read_before_the_search_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit of the file may succeed where reading its values failed."""
    monkeypatch.setattr(traced_values, "read_entries", Mock(side_effect=FormatError("cut")))
    found = ids(Example(path=sound(tmp_path)).audit(check_values=True))
    assert "unchecked-values" in found


def test_files_that_could_not_be_read_before_the_search_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sound(tmp_path)
    monkeypatch.setattr(file_audit, "_sensitive_places", Mock(side_effect=OSError))
    assert "unchecked-values" in ids(Example(path=path).audit(check_values=True))


def test_values_in_a_page_index_in_clear_are_not_said_to_be_elsewhere(tmp_path: Path) -> None:
    """Page indexes are searched with the bytes that nothing refers to."""
    path = sound(tmp_path)
    values = [f"user{i}@example.com".encode() for i in range(20)]
    put_index(path, values, values)
    report = Example(path=path, options={"check_values": True}).audit()
    assert {"page-index-in-clear", "values-in-clear"} <= {it.id for it in report.findings}
    (what,) = {it.what for it in report.findings if it.id == "values-in-clear"}
    assert what.startswith("page indexes in clear, or bytes that nothing refers to, hold values")
