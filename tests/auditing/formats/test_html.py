"""The page of an audit, as its bytes and as a browser shows it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.auditing.findings import AuditReport, Severity
from secure_bloom.auditing.formats import render_html
from secure_bloom.auditing.formats.html import html_page
from secure_bloom.auditing.formats.mistakes import State
from secure_bloom.auditing.scope import AuditScope
from tests.auditing.formats import reports
from tests.auditing.formats.browser import NAMES, Page, browser_page, find_browser
from tests.auditing.formats.reports import COLUMNS, filter_missing, finding, unchecked

#: A title that changes tells that something from a file ran.
EVIL = (
    "\"><script>document.title='owned'</script>"
    "<img src=//evil.example/x onerror=\"document.title='owned'\">'&amp;"
    "</title></style><svg onload=document.title='owned'>\x00\u202e"
)
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "script", "header", "section"),
    *("h1", "h2", "h3", "p", "strong", "span", "b", "small", "code", "label", "input", "div"),
    *("table", "thead", "tbody", "tr", "th", "td", "a", "article", "ul", "li", "details"),
    *("summary", "dl", "dt", "dd"),
}


class Outline(HTMLParser):
    """The tags of a page, its attributes, and the text of its style and script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.inline: dict[str, str] = {}
        self._in = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in in {"style", "script"}:
            self.inline[self._in] = self.inline.get(self._in, "") + data


def evil_report() -> AuditReport:
    return AuditReport(
        findings=(
            finding(EVIL, path=f"lake/{EVIL}/{EVIL}", column=EVIL, what=EVIL, fix=EVIL),
            unchecked(f"lake/{EVIL}/b"),
        ),
        ignored=(finding(path=f"{EVIL}", column=EVIL),),
        paths=(f"lake/{EVIL}/a", f"lake/{EVIL}/b"),
        columns=(EVIL, "email"),
    )


def test_nothing_from_a_file_becomes_part_of_the_page() -> None:
    outline = Outline(render_html(evil_report(), subject=EVIL, meanings={EVIL: EVIL}))
    assert set(outline.tags) == TAGS - {"details", "summary"}
    assert outline.tags["script"] == 1
    assert {name for name, _ in outline.attributes} == {
        *("lang", "charset", "http-equiv", "content", "name", "class", "aria-label", "type", "id"),
        *("placeholder", "hidden", "value", "checked", "aria-hidden", "role", "tabindex", "scope"),
        *("title", "data-states", "data-state", "href"),
    }
    assert all(re.fullmatch(r"#finding-\d+", v or "") for n, v in outline.attributes if n == "href")


def test_the_policy_allows_the_style_and_the_script_and_nothing_else() -> None:
    outline = Outline(render_html(reports.small_report()))
    policy = next(v for n, v in outline.attributes if n == "content" and v and "default-src" in v)
    hashes = {
        tag: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for tag, text in outline.inline.items()
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; "
        f"script-src 'sha256-{hashes['script']}'; base-uri 'none'; form-action 'none'"
    )


def test_the_same_report_is_the_same_page() -> None:
    assert render_html(reports.small_report()) == render_html(reports.small_report())


def test_files_that_a_cut_would_make_equal_keep_their_names() -> None:
    """As those of an Iceberg table: a UUID at the end, and the partition in the middle."""
    paths = [
        f"/mnt/warehouse/db.db/people/data/day={day}/00000-0-{'f' * 36}.parquet" for day in (1, 2)
    ]
    page = render_html(reports.large_report(["delta/0.parquet", *paths]))
    shown = re.findall('<th scope="row"[^>]*><div>([^<]*)</div>', page)
    assert sorted(shown) == sorted(["delta/0.parquet", *paths])


def test_10_000_files_are_a_small_page() -> None:
    assert len(render_html(reports.large_report())) < 150_000
    paths = [f"lake/{'x' * 120}-{n}.parquet" for n in range(10_000)]
    assert len(render_html(reports.large_report(paths))) < 1_000_000


def test_an_endless_report_is_a_page_all_the_same() -> None:
    columns = tuple(f"{n}{'c' * 400}" for n in range(400))
    paths = tuple(f"lake/{n}/{'d' * 200}/part.parquet" for n in range(2_000))
    found = tuple(
        finding(f"id-{n % 40}", path=path, column=columns[n % 400], what=f"{n}{'w' * 5000}")
        for n, path in enumerate(paths)
    )
    page = render_html(AuditReport(findings=found, paths=paths, columns=columns))
    assert len(page) < 5_000_000


def test_a_page_says_what_it_is_about() -> None:
    scope = AuditScope(
        policy="keys/policy.toml",
        policy_sha256="ab" * 32,
        options={"sample": 10, "ignore": ["mixed-rules"], "without_keys": True},
        files_left_out=90,
        versions={"secure-bloom": "1.2.3"},
    )
    created = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)
    page = render_html(AuditReport(scope=scope), created=created)
    for text in (
        f"keys/policy.toml SHA-256 {'ab' * 32}",
        "--sample 10, --ignore mixed-rules, --without-keys",
        "90 files that are not in the sample; what only a key opens (--without-keys); values in",
        "2026-05-04 12:30 UTC",
        "secure-bloom 1.2.3",
    ):
        assert text in page


def test_a_page_without_files_says_so() -> None:
    assert "No file was looked at." in render_html(AuditReport())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = find_browser()
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)}")
    with browser_page(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def show(page: Page, folder: Path, report: AuditReport, **settings: Any) -> None:
    """Open the page of a report; whatever it is, it stays quiet and fits the window."""
    path = folder / "audit.html"
    path.write_text(render_html(report), encoding="utf-8")
    page.open(path, **settings)
    assert page.requests == [path.as_uri()]
    assert page.complaints == []
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.value(overflow) == 0
    assert page.value("document.title").startswith("Audit of ")


def cells(page: Page) -> dict[str, int]:
    """How many cells are shown in which state, by the colour that is seen."""
    return page.value(
        """(() => {
          const state = {};
          for (const sign of document.querySelectorAll(".chip .sign")) {
            const look = getComputedStyle(sign);
            state[look.backgroundColor + look.backgroundImage] = sign.classList[1];
          }
          const count = {};
          for (const cell of document.querySelectorAll("tbody td")) {
            const look = getComputedStyle(cell);
            const name = state[look.backgroundColor + look.backgroundImage];
            if (cell.checkVisibility()) count[name] = (count[name] || 0) + 1;
          }
          return count;
        })()"""
    )


def shown_rows(page: Page) -> list[str]:
    return page.value(
        "[...document.querySelectorAll('tbody tr')].filter(row => row.checkVisibility())"
        ".map(row => row.querySelector('th').innerText)"
    )


def shown_findings(page: Page) -> list[str]:
    return page.value(
        "[...document.querySelectorAll('article')].filter(e => e.checkVisibility())"
        ".map(e => e.querySelector('code').innerText)"
    )


@pytest.mark.slow
class TestInABrowser:
    @pytest.mark.parametrize("width", [1280, 390])
    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    @pytest.mark.parametrize("name", ["small", "clean", "large"])
    def test_it_opens_quietly_and_fits(
        self, page: Page, tmp_path: Path, name: str, dark: bool, width: int
    ) -> None:
        show(page, tmp_path, getattr(reports, f"{name}_report")(), width=width, dark=dark)

    def test_cells_have_the_colours_of_their_states(self, page: Page, tmp_path: Path) -> None:
        show(page, tmp_path, reports.small_report())
        assert cells(page) == {
            "critical": 1,
            "high": 1,
            "low": 2,
            "unchecked": 5,
            "ignored": 1,
            "clean": 15,
        }

    def test_a_clean_audit_is_all_green(self, page: Page, tmp_path: Path) -> None:
        show(page, tmp_path, reports.clean_report())
        assert cells(page) == {"clean": 40}
        assert page.value("document.querySelector('.verdict').innerText").startswith("Clean.")

    def test_a_large_audit_is_rows_of_folders(self, page: Page, tmp_path: Path) -> None:
        show(page, tmp_path, reports.large_report())
        assert len(shown_rows(page)) == 100
        assert cells(page)["critical"] == 102
        assert page.value("document.querySelector('tbody td.critical').innerText") == "100"

    @pytest.mark.parametrize("width", [1920, 400])
    def test_150_files_by_40_columns_use_the_window(
        self, page: Page, tmp_path: Path, width: int
    ) -> None:
        columns = (*(f"column_{n}" for n in range(36)), *COLUMNS)
        name = "part-{:05d}-6b0f1c1e-8a51-4f0e-9b57-0d8a0f2b7c11-c000.snappy.parquet"
        paths = tuple(f"lake/day=2026-05-01/{name.format(n)}" for n in range(150))
        found = finding(path=paths[120], column="iban")
        show(
            page,
            tmp_path,
            AuditReport(findings=(found,), paths=paths, columns=columns),
            width=width,
        )
        assert "part-00120" in shown_rows(page)[0]
        first = "document.querySelector('tbody tr td.critical').getBoundingClientRect()"
        frame = "document.querySelector('.frame')"
        assert page.value(f"{first}.right") < width
        assert page.value(f"{frame}.getBoundingClientRect().width") > 0.9 * width
        if width == 1920:
            assert page.value(f"{frame}.scrollWidth <= {frame}.clientWidth")

    def test_the_search_shows_rows_that_have_all_words(self, page: Page, tmp_path: Path) -> None:
        show(page, tmp_path, reports.small_report())
        page.click("#search")
        page.type("IBAN wrong")
        assert shown_findings(page) == ["column-wrong-key"]
        assert shown_rows(page) == ["part-00002.parquet"]
        assert page.value("document.querySelector('#shown').innerText") == (
            "1 of 5 findings, 1 of 5 rows shown"
        )

    def test_states_are_switched_off_and_on(self, page: Page, tmp_path: Path) -> None:
        show(page, tmp_path, reports.small_report())
        for state in ("clean", "unchecked", "ignored", "low"):
            page.click(f"input[value={state}]")
        assert shown_findings(page) == ["filter-in-clear", "column-wrong-key"]
        assert shown_rows(page) == ["part-00001.parquet", "part-00002.parquet"]
        page.click("input[value=clean]")
        assert "part-00000.parquet" in shown_rows(page)

    def test_a_cell_leads_to_its_finding(self, page: Page, tmp_path: Path) -> None:
        show(page, tmp_path, reports.small_report())
        page.click("input[value=high]")
        assert "column-wrong-key" not in shown_findings(page)
        page.click("td.high a")
        page.wait("document.querySelector(':target')?.checkVisibility()")
        assert page.value("document.querySelector(':target code').innerText") == "column-wrong-key"

    @pytest.mark.parametrize("width", [1280, 390])
    def test_what_is_hostile_stays_text(self, page: Page, tmp_path: Path, width: int) -> None:
        show(page, tmp_path, evil_report(), width=width)
        assert "<script>document.title='owned'</script>" in page.value("document.body.innerText")

    def test_without_scripts_all_is_there(self, page: Page, tmp_path: Path) -> None:
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            show(page, tmp_path, reports.small_report())
            assert len(shown_findings(page)) == 5
            assert len(shown_rows(page)) == 5
            assert not page.value("document.querySelector('#search').checkVisibility()")
            assert page.value("document.querySelector('.sign').checkVisibility()")
        finally:
            page.call("Emulation.setScriptExecutionDisabled", value=False)

    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    def test_every_text_can_be_read(self, page: Page, tmp_path: Path, dark: bool) -> None:
        everything = AuditReport(
            findings=(
                *(finding(f"id-{s}", s, path=f"lake/{s}") for s in list(Severity)[:4]),
                unchecked("lake/part-9"),
            ),
            ignored=(filter_missing("lake/part-8"),),
            notes=(finding("sizes-in-clear", Severity.NOTE, path="lake/part-7"),),
            paths=tuple(f"lake/part-{n}" for n in range(10)),
            columns=COLUMNS,
        )
        show(page, tmp_path, everything, dark=dark)
        contrasts = page.value(_CONTRASTS)
        assert set(State) <= set(contrasts)
        # WCAG 2.2, 1.4.3: 4.5 to 1 for text of this size.
        assert {name: c for name, c in contrasts.items() if c < 4.5} == {}


#: The contrast of each kind of text against what is behind it, by WCAG's formula.
_CONTRASTS = """(() => {
  const numbers = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = (color) => {
    const [r, g, b] = numbers(color).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const look = getComputedStyle(at);
      const stripes = look.backgroundImage.match(/rgb\\([^)]*\\)/g);
      if (stripes) return stripes;
      if (numbers(look.backgroundColor)[3] !== 0) return [look.backgroundColor];
    }
  };
  const contrast = (element) => {
    const own = light(getComputedStyle(element).color);
    return Math.min(...behind(element).map((color) => {
      const other = light(color);
      return (Math.max(own, other) + 0.05) / (Math.min(own, other) + 0.05);
    }));
  };
  const found = {};
  for (const cell of document.querySelectorAll("tbody td")) {
    found[cell.classList[0]] = contrast(cell.querySelector("a") || cell);
  }
  const others = [
    ".remark", ".about", "small", ".fix", "article p", "h1", ".verdict span", "li", ".whole"
  ];
  for (const name of others) {
    const element = document.querySelector(name);
    if (element) found[name] = contrast(element);
  }
  return found;
})()"""


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
