"""The page of advice, as its bytes and as a browser shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.advising.page import render_page
from tests.advising.seeded import TABLES
from tests.auditing.formats.browser import NAMES, Page, browser_page, find_browser

EVIL = "\"><script>document.title='owned'</script><svg onload=document.title='owned'>'&amp;\x00"


@pytest.fixture(scope="module")
def advice(tmp_path_factory: pytest.TempPathFactory) -> sb.TableAdvice:
    table = tmp_path_factory.mktemp("tables") / "t"
    TABLES["sorted ids"](table)
    return sb.advise(table)


def evil(advice: sb.TableAdvice) -> sb.TableAdvice:
    columns = [replace(it, column=EVIL, reason=EVIL, type=EVIL) for it in advice.columns]
    return replace(advice, columns=tuple(columns))


def test_nothing_from_a_file_becomes_part_of_the_page(advice: sb.TableAdvice) -> None:
    page = render_page(evil(advice), subject=EVIL)
    assert "<script" not in page
    assert "<svg onload" not in page
    assert "\x00" not in page


def test_each_column_that_was_tried_has_its_picture(advice: sb.TableAdvice) -> None:
    page = render_page(advice)
    for tried in ("email", "id"):
        assert f"<code>{tried}</code>" in page
    # Two kinds of lookups, each without and with the filter: a bar and a strip of each.
    assert page.count('<svg class="bar"') == page.count('<svg class="strip"') == 8
    assert "[columns.email]" in page


def test_the_same_advice_is_the_same_page(advice: sb.TableAdvice) -> None:
    assert render_page(advice) == render_page(advice)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = find_browser()
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)}")
    with browser_page(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_it_without_complaint_and_it_fits(
    page: Page, advice: sb.TableAdvice, tmp_path: Path, width: int, dark: bool
) -> None:
    path = tmp_path / "advice.html"
    path.write_text(render_page(evil(advice), subject="t"), encoding="utf-8")
    page.open(path, width=width, dark=dark)
    assert page.requests == [path.as_uri()]
    assert page.complaints == []
    assert page.value("document.title") == "Advice on t"
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.value(wide) <= 0
    bars = "[...document.querySelectorAll('svg.bar')].map(e => e.getBoundingClientRect().width)"
    assert min(page.value(bars)) > 80
    fill = "getComputedStyle(document.querySelector('rect.without')).fill"
    assert page.value(fill) not in {"rgb(0, 0, 0)", "none"}
