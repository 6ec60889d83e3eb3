"""The site that `make docs` builds: no warning, nothing asked of a network, a search that finds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testing.project import ROOT
from tests.auditing.formats.browser import NAMES, Page, browser_page, find_browser

#: Where the Makefile puts what builds the site.
PACKAGES = Path(sys.prefix) / "site"
if not PACKAGES.is_dir():
    pytest.importorskip("material", reason="the site needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|img|iframe)[^>]*src=["']?https?:|<link[^>]*href=["']?https?:"""
    )
    assert [page for page in site.rglob("*.html") if loads.search(page.read_text())] == []


def test_the_reference_has_every_verb_option_name_and_error(site: Path) -> None:
    verbs = (site / "reference" / "command-line.html").read_text()
    for text in ("secure-bloom keys check", "secure-bloom add", 'href="reencrypt.html"'):
        assert text in verbs
    adding = (site / "reference" / "add.html").read_text()
    for text in ("secure-bloom add [OPTIONS]", "--replace-filters", "Exit code"):
        assert text in adding
    names = (site / "reference" / "python.html").read_text()
    for text in ("read_table", "BloomFilterOptions", "allow_unverified"):
        assert text in names
    errors = (site / "reference" / "errors.html").read_text()
    for text in ("KmsUnavailableError", "1 absent everywhere"):
        assert text in errors
    assert "files_left_out" in (site / "reference" / "json.html").read_text()


def test_twenty_questions_are_answered_in_three_clicks(site: Path) -> None:
    """Links of the pages themselves count, those of the navigation do not."""
    table = (ROOT / "tests" / "questions.md").read_text()
    wanted = re.findall(r"\]\(\.\./docs/([^)#]+)\.md(?:#[^)]*)?\) \|$", table, re.MULTILINE)
    assert len(wanted) == 20
    reached = {site / "index.html"}
    for _ in range(3):
        reached |= {target for page in reached for target in _links(page)}
    assert [name for name in wanted if site / f"{name}.html" not in reached] == []


def _links(page: Path) -> set[Path]:
    """The pages to which the content of a page leads."""
    content = page.read_text().partition("<article")[2].partition("</article>")[0]
    targets = re.findall(r"""href=["']?([^"'#>\s:]+\.html)""", content)
    return {(page.parent / target).resolve() for target in targets}


@pytest.mark.slow
def test_in_a_browser_from_a_disk_the_search_finds(site: Path, tmp_path: Path) -> None:
    program = find_browser()
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)}")
    with browser_page(program, tmp_path) as page:
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        for path in sorted(set(site.rglob("*.html")) - {site / "404.html"}):
            for width, dark in ((400, False), (1280, True)):
                page.open(path, width=width, dark=dark)
                assert page.value(overflow) == 0, (path, width)
                assert page.value(_BROKEN) == [], (path, width)
                assert page.complaints == [], path
        page.open(site / "start" / "analyst.html", width=1280)
        copied = page.value(_COPIED).split("\n")
        assert copied[0] == "secure-bloom keys new keyring.json --policy policy.toml"
        assert not any(copied[1:])
        page.click(".md-search__input")
        page.wait("document.activeElement.matches('.md-search__input')")
        page.type("filter-saturated")
        page.wait(_FOUND)
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
        assert page.complaints == []


@pytest.mark.slow
def test_the_search_answers_the_twenty_questions(site: Path, tmp_path: Path) -> None:
    """Each question is typed as it is; its page must be among the first five for 18 of them."""
    program = find_browser()
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)}")
    table = (ROOT / "tests" / "questions.md").read_text()
    row = r"^\| ([^|]+\?) \|.*\]\(\.\./docs/([^)#]+)\.md(?:#[^)]*)?\) \|$"
    asked = re.findall(row, table, re.MULTILINE)
    assert len(asked) == 20
    with browser_page(program, tmp_path) as page:
        page.open(site / "index.html", width=1280)
        page.click(".md-search__input")
        missed = {
            question: wanted
            for question, wanted in asked
            if wanted not in _first_pages(page, site, question)
        }
    assert len(missed) <= 2, missed


def _first_pages(page: Page, site: Path, question: str) -> list[str]:
    """The first five pages that the search of the site gives for a text."""
    page.value(_ASK % "")
    page.wait("!document.querySelector('.md-search-result__item')")
    page.wait(_ASK % question)
    urls: list[str] = page.value(_RESULTS)
    return [url.partition(f"{site.name}/")[2].partition(".html")[0] for url in urls]


#: Pictures that were not found, and parts that leave the window without a bar to move them.
_BROKEN = """(() => {
  const scrolls = it => it && it !== document.body
    && (getComputedStyle(it).overflowX !== "visible" || scrolls(it.parentElement));
  const edge = document.documentElement.clientWidth + 1;
  const lost = [...document.querySelectorAll(".md-content *")].filter(
    it => it.getBoundingClientRect().right > edge && !scrolls(it));
  const missing = [...document.images].filter(it => it.complete && !it.naturalWidth);
  return [...lost, ...missing].map(it => it.outerHTML.slice(0, 80));
})()"""

#: What the button at a block of a console copies: it marks the block while it takes the text.
_COPIED = """(() => {
  const blocks = [...document.querySelectorAll("code")];
  const block = blocks.find(it => it.querySelector(".gp") && it.querySelector(".go"));
  block.setAttribute("data-md-copying", "");
  return block.innerText;
})()"""

#: The search listens only once its index is read: until then the input tells it again and again.
_FOUND = """(() => {
  const input = document.querySelector(".md-search__input");
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
  return !!document.querySelector('.md-search-result__link[href*="findings"]');
})()"""

#: Types a text into the search; true once there is a result.
_ASK = """(() => {
  const input = document.querySelector(".md-search__input");
  input.value = %r;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
  return !!document.querySelector(".md-search-result__item");
})()"""

#: The pages of the first five results.
_RESULTS = """[...document.querySelectorAll(".md-search-result__item > a")]
  .slice(0, 5).map(it => it.href)"""
