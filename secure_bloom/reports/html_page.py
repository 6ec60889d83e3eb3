"""One HTML page that opens without a network, and runs and loads nothing but what it brings along.

Its Content Security Policy allows its style and its script by their hashes and nothing else, so
that not even a path that escaped escaping could run or load anything.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape


def html_page(title: str, body: str, *, style: str, script: str | None = None) -> str:
    """Return the whole page; ``body`` must be escaped already, ``title`` must not be."""
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
