"""A page brings along what it needs, and allows nothing else."""

from __future__ import annotations

import base64
import hashlib

from secure_bloom.reports.html_page import html_page


def allowed(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_style_and_the_script_are_allowed_by_their_hashes() -> None:
    page = html_page("t", "<p>x</p>", style="p { color: red }", script="1;")
    assert f"style-src '{allowed('p { color: red }')}'; script-src '{allowed('1;')}'" in page
    assert "default-src 'none'" in page


def test_a_page_without_a_script_allows_none() -> None:
    page = html_page("t", "", style="")
    assert "script-src" not in page
    assert "<script" not in page


def test_the_title_is_escaped() -> None:
    assert "<title>&lt;b&gt;</title>" in html_page("<b>", "", style="")
