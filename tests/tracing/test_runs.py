"""Runs of Base64: what they hold is found, names of programs are passed over."""

from __future__ import annotations

import base64
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.tracing import runs
from secure_bloom.tracing.runs import in_runs

NAMES = ["read_all_rows_of_a_table", "LONGEST_RUN_OF_BASE64", "_get_annotations_from"]


def _are_names(*texts: bytes) -> list[bool]:
    ends = np.cumsum([len(it) for it in texts])
    spans = np.stack([ends - [len(it) for it in texts], ends], axis=1).astype(np.int64)
    return runs._are_names(np.frombuffer(b"".join(texts), np.uint8), spans).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_program_is_passed_over(name: str) -> None:
    assert _are_names(name.encode()) == [True]


@given(st.text(st.characters(categories=["L", "N", "Z", "P"]), min_size=1), st.booleans())
def test_no_text_looks_as_a_name_in_base64(text: str, in_url: bool) -> None:
    text = (text * 12)[: max(12, len(text))]
    encode = base64.urlsafe_b64encode if in_url else base64.b64encode
    run = encode(text.encode()).rstrip(b"=")
    assert _are_names(run) == [False]


def test_digests_do_not_look_as_names() -> None:
    digests = [base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=") for _ in range(20_000)]
    # By chance one in 100,000 does.
    assert sum(_are_names(*digests)) < 5


def test_names_beside_a_run_do_not_hide_it() -> None:
    value = base64.b64encode(b"anna.huber@post.fi")
    text = b" ".join([NAMES[0].encode(), value, *(it.encode() for it in NAMES), value])
    assert b"".join(in_runs(text, lambda _: None)).count(b"anna.huber@post.fi") == 2


def test_a_run_of_one_character_is_not_decoded() -> None:
    assert list(in_runs(b"a" * 1_000 + b"\n", lambda _: None)) == []
