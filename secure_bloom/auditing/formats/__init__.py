"""The output formats of an audit: one report, as text, as SARIF or as an HTML page.

JSON is the report's own ``to_json``.  Anybody may have written the paths and the names of columns:
every format makes them safe by :func:`secure_bloom.reports.text.legible`, and escapes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.auditing.formats.html import render_html
    from secure_bloom.auditing.formats.sarif import render_sarif
    from secure_bloom.auditing.formats.terminal import render_text

_HOMES = {"html": ["render_html"], "sarif": ["render_sarif"], "terminal": ["render_text"]}

__all__ = ["render_html", "render_sarif", "render_text"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
