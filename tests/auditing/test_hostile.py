"""Files that were made to harm an auditor: findings come of them, in bounded time and memory."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.auditing import file_audit
from secure_bloom.auditing.checks import leaks
from secure_bloom.auditing.rules import RULES
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.storage import open_input
from testing.quick_cases import examples
from testing.surgery import Opened, edit_column, edit_footer
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift.metadata import ColumnMetaData
from tests.auditing.examples import (
    POLICY,
    SIGNED,
    Example,
    bloom,
    chunk_of,
    filtered,
    set_key_metadata,
    set_texts,
    sound,
    with_rules,
)

ASKING = with_rules(SIGNED, city=bloom("city"), score=bloom("score"))


def _file(mode: Mode) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "x.parquet", customers(40), mode, write_page_index=True)
        sb.add_bloom_filters(path, columns=["email", "city", "score"], keys=KEYRING)
        return path.read_bytes()


#: An encrypted footer that is altered is no footer: the others let mutations in.
BASES = [_file(mode) for mode in (Mode.PLAIN, Mode.SIGNED, Mode.ENCRYPTED)]
WORDS = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A file with some bytes overwritten, mostly in its footer, or cut."""
    content = bytearray(draw(st.sampled_from(BASES)))
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.sampled_from([0, footer, footer, footer, len(content) - 8]))
        at = draw(st.integers(start, len(content) - 1))
        word = draw(st.one_of(WORDS.map(lambda n: n.to_bytes(4, "little")), st.binary(max_size=3)))
        content[at : at + len(word)] = word
    if draw(st.integers(0, 9)) == 0:
        del content[draw(st.integers(0, len(content))) :]
    return bytes(content)


@examples(25)
@given(mutated(), st.booleans())
def test_any_mutation_gives_findings_and_nothing_else(content: bytes, check_values: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        path.write_bytes(content)
        report = sb.audit(path, policy=ASKING, keys=KEYRING, check_values=check_values)
    assert {finding.id for finding in report.findings} <= RULES.keys()
    assert report.files == 1


@examples(15)
@given(st.binary(max_size=300))
@example(b"PAR1" * 3)
@example(b"\xff\xff\xff\x7fPAR1" * 3)
def test_any_bytes_at_all_are_an_unchecked_file(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        path.write_bytes(content + b"\0")
        report = sb.audit(path, policy=POLICY, keys=KEYRING)
    assert {finding.id for finding in report.findings} <= {"unchecked-file", "unchecked-feature"}


def test_a_footer_beyond_all_measure_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sound(tmp_path)
    with open_input(str(path)) as file:
        length = path.stat().st_size - read_tail(file).offset
    monkeypatch.setattr(file_audit, "_MOST_FOOTER", length - 9)
    report = Example(path=path).audit()
    assert [finding.id for finding in report.findings] == ["unchecked-feature"]


def test_findings_without_end_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_audit, "_MOST_FINDINGS", 3)
    path = write(tmp_path / "x.parquet", customers(50), row_group_size=10)
    findings = Example(path=path).audit().findings
    assert len(findings) == 5
    assert findings[-1].id == "unchecked-file"


PLACES: list[Callable[[ColumnMetaData], Any]] = [
    lambda m: setattr(m, "bloom_filter_offset", -5),
    lambda m: setattr(m, "bloom_filter_offset", 1 << 62),
    lambda m: setattr(m, "bloom_filter_length", -1),
    lambda m: setattr(m, "bloom_filter_length", (1 << 31) - 1),
]


@pytest.mark.parametrize("change", PLACES)
@pytest.mark.parametrize("column", ["email", "city"])
def test_a_filter_that_stands_outside_the_file_is_damaged(
    tmp_path: Path, column: str, change: Callable[[ColumnMetaData], Any]
) -> None:
    path = filtered(tmp_path, column)
    edit_column(path, 0, column, change)
    ids = {finding.id for finding in Example(path=path).audit().findings}
    # What was the filter of a column in clear is now a stray one.
    assert {"filter-damaged"} <= ids <= {"filter-damaged", "filter-stray-in-clear"}


def test_a_page_index_that_stands_outside_the_file_is_no_crash(tmp_path: Path) -> None:
    path = sound(tmp_path)

    def change(it: Opened) -> None:
        chunk_of(it, "email").column_index_offset = 1 << 40
        chunk_of(it, "email").column_index_length = 100

    edit_footer(path, change)
    findings = Example(path=path).audit().findings
    assert {finding.id for finding in findings} == {"unchecked-file", "impossible-page-index"}
    assert {finding.column for finding in findings} == {"email"}


@pytest.mark.parametrize(
    "name", ["ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata"]
)
@pytest.mark.parametrize("text", ["", "{", "[[[[" * 5000, '{"columns": 3, "fields": [1]}', "AAAA"])
def test_a_schema_that_is_none_tells_nothing(tmp_path: Path, name: str, text: str) -> None:
    path = sound(tmp_path, Mode.SIGNED, store_schema=False)
    set_texts(path, {name: text})
    assert Example(path=path, policy=SIGNED).audit().findings == ()


def test_an_arrow_schema_whose_names_are_no_text_stops_nothing(tmp_path: Path) -> None:
    path = sound(tmp_path, Mode.SIGNED, store_schema=False)
    schema = bytearray(customers(1).schema.serialize().to_pybytes())
    schema[schema.find(b"city")] = 0x80
    set_texts(path, {"ARROW:schema": base64.b64encode(schema).decode()})
    assert Example(path=path, policy=SIGNED).audit().findings == ()


@pytest.mark.parametrize("place", ["check", "file"])
def test_an_unforeseen_error_is_a_finding_of_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for name in "abc":
        keys = {"k_finance": ["iban"]} if name == "c" else None
        options = {} if keys is None else {"column_keys": keys}
        write(tmp_path / f"{name}.parquet", customers(30), Mode.ENCRYPTED, **options)

    def fail(*arguments: Any) -> Any:
        what = arguments[0]
        path = (what if place == "file" else what.of).file.path
        if path.endswith("b.parquet"):
            raise ZeroDivisionError("user1@example.com")
        return original(*arguments)

    original = file_audit._audit if place == "file" else leaks.check_schemas
    if place == "file":
        monkeypatch.setattr(file_audit, "_audit", fail)
    else:
        checks = tuple(fail if each is original else each for each in file_audit._FOOTER_CHECKS)
        monkeypatch.setattr(file_audit, "_FOOTER_CHECKS", checks)
    report = Example(path=tmp_path).audit()
    found = {(finding.id, Path(finding.path or "").name) for finding in report.findings}
    assert found == {("unchecked-file", "b.parquet"), ("column-in-clear", "c.parquet")}
    (told,) = (finding for finding in report.findings if finding.id == "unchecked-file")
    assert "ZeroDivisionError" in told.message
    assert "user1" not in told.message


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"[]"])
def test_key_material_outside_that_is_no_json_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = sound(tmp_path)
    outside = {
        "keyMaterialType": "PKMT1",
        "internalStorage": False,
        "keyReference": "0",
    }
    set_key_metadata(path, "email", lambda _: json.dumps(outside).encode())
    (tmp_path / "_KEY_MATERIAL_FOR_x.parquet.json").write_bytes(content)
    report = Example(path=path).audit()
    assert {(f.id, f.column) for f in report.findings} == {("key-material-damaged", "email")}
