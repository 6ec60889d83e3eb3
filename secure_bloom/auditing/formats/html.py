"""Render an AuditReport as one HTML page: a matrix in colour, mistakes, their fixes.

The page opens without a network, and is complete without its script, which only searches and
filters.  Its Content Security Policy allows its style and its script by their hashes and nothing
else, so that not even a path that escaped escaping could run or load anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files

from secure_bloom.auditing.findings import KINDS, AuditReport
from secure_bloom.auditing.formats.matrix import WHOLE_FILE, Cell, Matrix, Row, matrix_of
from secure_bloom.auditing.formats.mistakes import (
    Mistake,
    State,
    below_folder,
    common_folder,
    extent,
    group_report,
    parts_of_fix,
    tallies,
    verdict,
)
from secure_bloom.reports.text import counted, legible, named_columns


def html_page(title: str, body: str, *, style: str, script: str | None = None) -> str:
    """Return the whole page. ``body`` must be escaped already, ``title`` must not be."""
    allowed = f"style-src '{_hash(style)}'; "
    if script is not None:
        allowed += f"script-src '{_hash(script)}'; "
    policy = f"default-src 'none'; {allowed}base-uri 'none'; form-action 'none'"
    ending = "" if script is None else f"<script>{script}</script>\n"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
{ending}</body>
</html>
"""


def _hash(text: str) -> str:
    """Return the source expression of an inline element (CSP Level 3, 2.3.1)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_EXAMPLES = 3
_MOST_PATHS = 100
_MOST_PATHS_OF_ALL = 2_000
_LONGEST = 2_000
_MOST_TABLES = 200
#: The letters of a column's name where there is little room.
_SHORT = 30
#: The parts of a path: its folder and number, and its end.
_SHORT_LABEL = 44
_DENSE_COLUMNS = 6
_HEADINGS = {
    "Findings": {State.CRITICAL, State.HIGH, State.MEDIUM, State.LOW},
    "Could not be checked": {State.UNCHECKED},
    "Notes: nobody can do better here": {State.NOTE},
    "Ignored": {State.IGNORED},
}
#: The sign in a cell of one file; a cell of several files shows how many are in its state.
_SIGNS = {
    State.CRITICAL: "C",
    State.HIGH: "H",
    State.MEDIUM: "M",
    State.LOW: "L",
    State.UNCHECKED: "?",
    State.NOTE: "n",
    State.IGNORED: "i",
    State.CLEAN: "·",
}


def render_html(
    report: AuditReport,
    *,
    subject: str | None = None,
    created: datetime | None = None,
    meanings: Mapping[str, str] | None = None,
) -> str:
    """Return the report as one page.

    ``subject`` names the audited table, ``created`` is the time, and ``meanings`` explain the ids.
    """
    groups = group_report(report)
    folder = common_folder(report.paths)
    name = legible(subject or folder or "files")
    body = (
        *_head(report, groups, name),
        *_about(report, created),
        *_legend(groups),
        *_tables(report),
        *_matrix(matrix_of(report, groups), groups, folder),
        *_findings(groups, folder, meanings or {}),
    )
    style, script = _asset("page.css"), _asset("page.js")
    return html_page(f"Audit of {name}", "\n".join(body), style=style, script=script)


def _asset(name: str) -> str:
    return files("secure_bloom.auditing.formats").joinpath(name).read_text(encoding="utf-8")


def _head(report: AuditReport, groups: Sequence[Mistake], subject: str) -> Iterator[str]:
    """Yield the audited dataset, and the conclusion in one sentence."""
    result = verdict(report, groups)
    yield "<header>"
    yield '<p class="product">secure-bloom audit</p>'
    yield f"<h1>{escape(subject)}</h1>"
    yield f'<p class="verdict {result.state}"><strong>{result.headline.capitalize()}.</strong>'
    yield f"<span>{result.scope}</span></p>"
    yield "</header>"


def _about(report: AuditReport, created: datetime | None) -> Iterator[str]:
    """Yield the facts that are needed to repeat the audit: policy, options, time, versions."""
    scope = report.scope
    digest = f" SHA-256 {scope.policy_sha256}" if scope.policy_sha256 else ""
    lines = {
        "Policy": f"{scope.policy or 'made in Python'}{digest}",
        "Options": ", ".join(scope.settings()) or "none",
        "Accepted": "; ".join(f"{name}: {why}" for name, why in scope.accepted.items()),
        "Not looked at": "; ".join(scope.not_looked_at()),
        "Time": f"{created:%Y-%m-%d %H:%M} {created.tzname() or ''}" if created else "",
        "Versions": ", ".join(f"{name} {number}" for name, number in scope.versions.items()),
    }
    yield '<dl class="about">'
    for name, text in lines.items():
        if text:
            yield f"<div><dt>{name}</dt><dd>{escape(legible(text, _LONGEST))}</dd></div>"
    yield "</dl>"


def _legend(groups: Sequence[Mistake]) -> Iterator[str]:
    """Yield the states with their colours and counts.

    With the script, a click on a state hides it.
    """
    yield '<section class="legend" aria-label="Legend and filter">'
    yield '<input type="search" id="search" placeholder="Search columns, paths, ids" hidden>'
    for tally in tallies(groups):
        places = f"<small>in {counted(tally.places, 'place')}</small>" if tally.places else ""
        yield _chip(tally.state, f"<b>{tally.mistakes:,}</b>{places}")
    yield _chip(State.CLEAN, "")
    yield (
        '<span class="chip"><span class="sign blank" aria-hidden="true"></span>'
        "<span>not looked at, or no such column</span></span>"
    )
    yield (
        '<p class="remark">Numbers count mistakes: what one cause did in many files is one. '
        "A place is a file, or a column or row group in it, that has the mistake.</p>"
    )
    yield '<p id="shown" role="status"></p>'
    yield "</section>"


def _chip(state: State, count: str) -> str:
    return (
        f'<label class="chip"><input type="checkbox" value="{state}" checked hidden>'
        f'<span class="sign {state}" aria-hidden="true">{_SIGNS[state]}</span>'
        f"<span>{state}</span>{count}</label>"
    )


def _tables(report: AuditReport) -> Iterator[str]:
    """Yield a line for each table with the number of its findings. One table needs no line."""
    tables = report.tables
    if len(tables) < 2:
        return
    yield '<section class="tables"><h2>Tables</h2>'
    yield '<p class="remark">The findings of each table, each file counted.</p>'
    yield '<table><thead><tr><th scope="col">table</th>'
    yield '<th scope="col">files</th>'
    yield from (f'<th scope="col">{severity}</th>' for severity in KINDS)
    yield "</tr></thead><tbody>"
    for it in tables[:_MOST_TABLES]:
        cells = "".join(
            f'<td class="{severity}">{it.findings[severity]:,}</td>'
            if it.findings.get(severity)
            else "<td></td>"
            for severity in KINDS
        )
        name = escape(legible(it.table))
        yield f'<tr><th scope="row">{name}</th><td>{it.files:,}</td>{cells}</tr>'
    yield "</tbody></table>"
    if len(tables) > _MOST_TABLES:
        rest = counted(len(tables) - _MOST_TABLES, "table")
        yield f'<p class="remark">{rest} with the fewest findings left out.</p>'
    yield "</section>"


def _matrix(matrix: Matrix, groups: Sequence[Mistake], folder: str) -> Iterator[str]:
    """Yield a table of files or folders by columns."""
    grouped = any(len(row.files.paths) > 1 for row in matrix.rows)
    yield '<section class="matrix">'
    yield f"<h2>{'Folders' if grouped else 'Files'} by column</h2>"
    below = f"Paths are below <code>{escape(legible(folder))}</code>" if folder else ""
    yield f'<p class="remark">{_reading(matrix, grouped=grouped)}{below}</p>'
    density = "dense" if len(matrix.columns) > _DENSE_COLUMNS else "wide"
    yield f'<div class="frame" tabindex="0"><table class="{density}">'
    yield "<thead><tr><td></td>"
    yield from map(_column_head, matrix.columns)
    yield "</tr></thead><tbody>"
    cut = Counter(legible(row.files.label, _SHORT_LABEL) for row in matrix.rows)
    for row in matrix.rows:
        yield _row(row, matrix.columns, groups, cut)
    yield "</tbody></table></div></section>"


def _reading(matrix: Matrix, *, grouped: bool) -> str:
    """Return a note that explains the matrix."""
    number = "A number says how many files are in the colour's state. " if grouped else ""
    hidden = f"{counted(matrix.hidden, 'column')} with the fewest findings left out. "
    order = "Worst rows and columns first. Each cell has the colour of its worst state. "
    return f"{order}{number}{hidden if matrix.hidden else ''}"


def _column_head(column: str | None) -> str:
    if column is WHOLE_FILE:
        return '<th scope="col" class="whole"><span>whole file</span></th>'
    short = escape(legible(column, _SHORT))
    return f'<th scope="col" title="{escape(legible(column))}"><span>{short}</span></th>'


def _row(
    row: Row, columns: Sequence[str | None], groups: Sequence[Mistake], cut: Counter[str]
) -> str:
    """Return a row of the matrix. A name that the cut makes equal to another one stays whole."""
    count = len(row.files.paths)
    many = f" <small>{counted(count, 'file')}</small>" if count > 1 else ""
    name = escape(legible(row.files.label))
    short = legible(row.files.label, _SHORT_LABEL)
    short = escape(short) if cut[short] == 1 else name
    label = f'<th scope="row" title="{name}"><div>{short}{many}</div></th>'
    cells = (
        _cell(cell, column, count, groups) for cell, column in zip(row.cells, columns, strict=True)
    )
    return f'<tr data-states="{" ".join(row.states)}">{label}{"".join(cells)}</tr>'


def _cell(cell: Cell, column: str | None, count: int, groups: Sequence[Mistake]) -> str:
    state = cell.state
    if cell.blank is not None:
        name = "whole file" if column is WHOLE_FILE else legible(column, _SHORT)
        return f'<td class="blank" title="{escape(f"{name}: {cell.blank}")}"></td>'
    if state is State.CLEAN:
        # The row without files says nothing about columns that no finding names.
        return f'<td class="clean">{_SIGNS[state]}</td>' if count else "<td></td>"
    sign = f"{len(cell.files[state]):,}" if count > 1 else _SIGNS[state]
    doubt = "?" if State.UNCHECKED in cell.files and state is not State.UNCHECKED else ""
    target = next(iter(cell.groups[state]))
    name = "whole file" if column is WHOLE_FILE else legible(column, _SHORT)
    title = escape(f"{name}: {_cell_text(cell, count, groups)}")
    link = f'<a href="#finding-{target + 1}">{sign}{doubt}</a>'
    return f'<td class="{state}" title="{title}">{link}</td>'


def _cell_text(cell: Cell, count: int, groups: Sequence[Mistake]) -> str:
    """Return a text such as ``critical in 3 of 50 files (ID), low in 1 of 50 files (ID)``."""
    parts = []
    for state in sorted(cell.files, key=lambda state: state.rank):
        ids = ", ".join(dict.fromkeys(groups[index].id for index in cell.groups[state]))
        extent_ = f" in {len(cell.files[state]):,} of {count:,} files" if count > 1 else ""
        parts.append(f"{state}{extent_} ({ids})")
    return ", ".join(parts)


def _findings(groups: Sequence[Mistake], folder: str, meanings: Mapping[str, str]) -> Iterator[str]:
    """Yield the mistakes under their headings. A heading without any is left out."""
    most = max(_EXAMPLES, min(_MOST_PATHS, _MOST_PATHS_OF_ALL // max(len(groups), 1)))
    numbered = list(enumerate(groups, start=1))
    for heading, states in _HEADINGS.items():
        members = [(number, group) for number, group in numbered if group.state in states]
        if members:
            yield f'<section class="findings"><h2>{heading}</h2>'
            for number, group in members:
                paths = "".join(_paths(group.paths, folder, most))
                yield _finding(number, group, meanings.get(group.id), paths)
            yield "</section>"


def _finding(number: int, group: Mistake, meaning: str | None, paths: str) -> str:
    state, columns = group.state, escape(named_columns(group.columns))
    note = f'<p class="remark">{escape(legible(meaning, _LONGEST))}</p>\n' if meaning else ""
    return f"""<article id="finding-{number}" data-state="{state}">
<h3><span class="badge {state}">{state}</span> <code>{escape(group.id)}</code>
<span>{columns}</span></h3>
<p>{escape(legible(group.what, _LONGEST))}</p>
{note}<p class="fix"><b>Fix</b> {_fix(group.fix)}</p>
<p class="remark">{escape(extent(group))}</p>
{paths}</article>"""


def _fix(fix: str) -> str:
    return "".join(
        f"<code>{escape(legible(part, _LONGEST))}</code>"
        if is_command
        else escape(legible(part, _LONGEST))
        for part, is_command in parts_of_fix(fix)
    )


def _paths(paths: Sequence[str], folder: str, most: int) -> Iterator[str]:
    """Yield a few paths, more that can be unfolded, and the number of paths beyond ``most``."""
    items = [f"<li>{escape(legible(below_folder(path, folder)))}</li>" for path in paths[:most]]
    if len(paths) > most:
        items.append(f"<li>and {len(paths) - most:,} more: --format json names all</li>")
    if items:
        yield f"<ul>{''.join(items[:_EXAMPLES])}</ul>\n"
    if items[_EXAMPLES:]:
        yield f"<details><summary>{len(paths) - _EXAMPLES:,} more</summary>"
        yield f"<ul>{''.join(items[_EXAMPLES:])}</ul></details>\n"
