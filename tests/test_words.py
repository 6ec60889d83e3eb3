"""Messages, docstrings and comments of the package are in plain words.

Each word below has a plainer one: "tell" is "say", "show" or "list"; "stand" is "be"; "behind" is
"after"; "held against" is "checked against"; "at hand" is "available".
"""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.project import PACKAGE, ROOT

FORBIDDEN = re.compile(
    r"\b(tells?|told|telling|stands?|stood|standing|behind|at hand|of ours|of theirs"
    r"|such an?|so many|so much|as it were|where there (?:is|are) none"
    r"|(?:held|holds?) (?:\w+ ){0,3}against)\b",
    re.IGNORECASE,
)

#: Texts in which one of the words has no plainer form.
ALLOWED = frozenset(
    {
        "left behind",
        "leaves no header behind",
        "content behind under",
        "behind a balancer",
        "stand-in",
    }
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module that has more than one word, and every comment, with its line."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize(
    "room", sorted({p.relative_to(PACKAGE).parts[0] for p in PACKAGE.rglob("*.py")})
)
def test_messages_docstrings_and_comments_are_in_plain_words(room: str) -> None:
    top = PACKAGE / room
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text[max(0, match.start() - 30) : match.end() + 30]}"
        for path in (sorted(top.rglob("*.py")) if top.is_dir() else [top])
        for line, text in texts(path)
        for match in FORBIDDEN.finditer(text)
        if not any(allowed in text for allowed in ALLOWED)
    ]
    assert found == []


@pytest.mark.skipif(importlib.util.find_spec("codespell_lib") is None, reason="needs codespell")
def test_docs_and_messages_are_spelt_right() -> None:
    [spelled] = re.findall(r"^SPELLED := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *spelled.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")
