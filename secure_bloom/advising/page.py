"""TableAdvice -> one page that opens without a network, with a picture for each column.

The bars show what one lookup reads, without the filter and with it: the footers, and all else.  The
strips show what becomes of the table's row groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from html import escape
from importlib.resources import files

from secure_bloom.advising.table_advice import ColumnAdvice, TableAdvice
from secure_bloom.advising.trial import LookupComparison, LookupCost
from secure_bloom.html_page import html_page
from secure_bloom.reading.pruning.plan import Step
from secure_bloom.text import counted, human_bytes, legible

_LONGEST = 2000
#: The fates of row groups, in the order of the strip: class -> steps and words.
_FATES: Mapping[str, tuple[frozenset[Step], str]] = {
    "early": (
        frozenset({Step.EMPTY, Step.PARTITION, Step.STATISTICS, Step.PAGE_INDEX}),
        "folders and statistics",
    ),
    "dictionary": (frozenset({Step.DICTIONARY}), "dictionaries"),
    "filter": (frozenset({Step.BLOOM_FILTER}), "the filter"),
}
#: The colours: class -> words.
_LEGEND = {
    "footers": "footers",
    "without": "the rest, as it is",
    "with": "the rest, with the filter",
    **{kind: f"row groups ruled out by {words}" for kind, (_, words) in _FATES.items()},
    "read": "row groups that are read",
}


def render_page(
    advice: TableAdvice, *, subject: str | None = None, created: datetime | None = None
) -> str:
    """Return the advice as one page; ``subject`` is what was looked at, ``created`` when."""
    name = legible(subject or "table")
    others = [column for column in advice.columns if not column.gains]
    body = (
        *_head(advice, name, created),
        *_legend(advice),
        *_columns("Columns that gain", advice.gaining),
        *_policy(advice),
        *_columns("Columns that do not", others),
    )
    style = files("secure_bloom.advising").joinpath("page.css").read_text(encoding="utf-8")
    return html_page(f"Advice on {name}", "\n".join(body), style=style)


def _head(advice: TableAdvice, name: str, created: datetime | None) -> Iterator[str]:
    gaining = counted(len(advice.gaining), "column")
    verb = "gains" if len(advice.gaining) == 1 else "gain"
    yield "<header>"
    yield '<p class="product">secure-bloom advise</p>'
    yield f"<h1>{escape(name)}</h1>"
    state = "gains" if advice.gaining else "no"
    headline = f"{gaining} of {len(advice.columns):,} {verb}."
    yield f'<p class="verdict {state}"><strong>{headline}</strong>'
    yield f"<span>{escape(advice.size_text)}</span></p>"
    yield f'<p class="note">{escape(advice.sureness)}</p>'
    if advice.queries_text:
        yield f'<p class="note">{escape(advice.queries_text)}</p>'
    if created is not None:
        yield f'<p class="note">{created:%Y-%m-%d %H:%M} {created.tzname() or ""}</p>'
    yield "</header>"


def _legend(advice: TableAdvice) -> Iterator[str]:
    if not any(column.trial for column in advice.columns):
        return
    yield '<ul class="legend" aria-label="Legend">'
    for kind, words in _LEGEND.items():
        yield f'<li><i class="{kind}"></i>{words}</li>'
    yield "</ul>"


def _columns(heading: str, columns: tuple[ColumnAdvice, ...] | list[ColumnAdvice]) -> Iterator[str]:
    if not columns:
        return
    yield f"<section><h2>{heading}</h2>"
    for column in columns:
        yield from _column(column)
    yield "</section>"


def _column(column: ColumnAdvice) -> Iterator[str]:
    yield f'<article class="{column.verdict}">'
    share = "" if column.share is None else f"<small>{100 * column.share:.0f} % of lookups</small>"
    name, kind_of_value = escape(legible(column.column)), escape(legible(column.type))
    yield f'<h3><span class="badge {column.verdict}">{column.verdict}</span>'
    yield f"<code>{name}</code><small>{kind_of_value}</small>{share}</h3>"
    yield f"<p>{escape(legible(column.reason, _LONGEST))}</p>"
    kinds = column.kinds
    sizes = [c.bytes for it in kinds.values() if it for c in (it.without, it.with_)]
    for name, kind in kinds.items():
        if kind is not None:
            yield from _kind(name, kind, max(sizes))
    if column.facts:
        facts = "".join(f"<li>{escape(fact)}</li>" for fact in column.facts)
        yield f'<ul class="facts">{facts}</ul>'
    yield "</article>"


def _kind(name: str, kind: LookupComparison, largest: float) -> Iterator[str]:
    """Yield the bars and strips of one kind of lookup."""
    yield f'<div class="kind"><h4>a value that is {name}</h4>'
    for filters, cost in (("without", kind.without), ("with", kind.with_)):
        size = human_bytes(round(cost.bytes)) or ""
        yield _row(f"{filters} filter", _bar(cost, filters, largest), size)
        words = f"{round(cost.read, 1):,g} of {_row_groups(cost):,.0f} read"
        yield _row("", _strip(cost), words)
    yield "</div>"


def _row(label: str, picture: str, words: str) -> str:
    return f'<div class="row"><span>{label}</span>{picture}<span>{escape(words)}</span></div>'


def _bar(cost: LookupCost, filters: str, largest: float) -> str:
    footers = 100 * cost.footers / max(1.0, largest)
    rest = 100 * cost.bytes / max(1.0, largest) - footers
    title = f"{filters} filter: {human_bytes(round(cost.bytes))} a lookup"
    return _svg(title, "bar", (("footers", footers), (filters, rest)))


def _strip(cost: LookupCost) -> str:
    count = max(1.0, _row_groups(cost))
    shares = [
        (kind, 100 * sum(cost.skipped[step] for step in steps) / count)
        for kind, (steps, _) in _FATES.items()
    ]
    return _svg("row groups", "strip", (*shares, ("read", 100 * cost.read / count)))


def _row_groups(cost: LookupCost) -> float:
    return cost.read + sum(cost.skipped.values())


def _svg(title: str, kind: str, parts: tuple[tuple[str, float], ...]) -> str:
    """Return parts side by side, in percent of the whole width."""
    rects, start = [], 0.0
    for name, width in parts:
        if width > 0:
            rects.append(f'<rect class="{name}" x="{start:.2f}" width="{width:.2f}" height="10"/>')
        start += max(0.0, width)
    return (
        f'<svg class="{kind}" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title)}">{"".join(rects)}</svg>'
    )


def _policy(advice: TableAdvice) -> Iterator[str]:
    if advice.policy:
        yield "<section><h2>Lines for a policy</h2>"
        yield f"<pre>{escape(advice.policy)}</pre></section>"
