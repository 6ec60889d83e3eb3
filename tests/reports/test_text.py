"""What comes from a file is shown so that it neither acts nor misleads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.reports.text import human_bytes, legible, without_commands, written_out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("dt=2026-01-01/größe é 名前.parquet", "dt=2026-01-01/größe é 名前.parquet"),
        ("\x1b[2Jclear", r"\x1b[2Jclear"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("invoice\u202etxt.parquet", r"invoice\u202etxt.parquet"),
        ("no UTF-8: \udcff", r"no UTF-8: \udcff"),
        ("no\u00a0space\u200b", r"no\xa0space\u200b"),
    ],
)
def test_what_would_act_is_written_out(text: str, shown: str) -> None:
    assert legible(text) == shown


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    shown = legible("a" * 500 + "middle" + "z" * 500, 30)
    assert len(shown) == 30
    assert shown.startswith("aaa")
    assert shown.endswith("zzz")


@given(st.text(st.characters(), max_size=200), st.integers(8, 60))
def test_any_text_is_printable_and_short(text: str, longest: int) -> None:
    shown = legible(text, longest)
    assert shown.isprintable()
    assert len(shown) <= longest
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, None), (0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB")],
)
def test_a_size_is_in_powers_of_1024(size: int | None, text: str | None) -> None:
    assert human_bytes(size) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error file=x::y", r":\x3aerror file=x:\x3ay"),
        (":::group::", r"::\x3agroup::"),
        ("##vso[task.x]y", r"#\x23vso[task.x]y"),
        ("###[error]", r"##\x23[error]"),
        ("##teamcity[buildStop]", r"#\x23teamcity[buildStop]"),
        ("arn:aws:iam::123:role/x", "arn:aws:iam::123:role/x"),
        ("## a title, a::1", "## a title, a::1"),
    ],
)
def test_a_command_to_a_ci_runner_is_written_out(text: str, shown: str) -> None:
    assert written_out(text) == shown
    assert written_out(shown) == shown


@given(st.text(st.sampled_from('#:[ae\x7f\\"\u202e'), max_size=12))
def test_a_document_without_commands_is_equal(text: str) -> None:
    document = without_commands(json.dumps({text: text}))
    assert json.loads(document) == {text: text}
    assert written_out(document) == document
