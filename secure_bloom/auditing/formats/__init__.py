"""The output formats of an audit: one report, as text, as SARIF or as a page.

JSON is the report's own ``to_json``.  Paths and column names come from files and folders that
anybody may have written: every format shows them by :func:`~.legible.legible`, and escapes them.
"""

from secure_bloom.auditing.formats.html import render_html
from secure_bloom.auditing.formats.sarif import render_sarif
from secure_bloom.auditing.formats.terminal import render_text

__all__ = ["render_html", "render_sarif", "render_text"]
