"""README's bullets and the files here are the same promises."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from testing.project import ROOT

HERE = Path(__file__).parent


def test_each_bullet_of_readme_has_a_file_that_begins_with_it() -> None:
    section = (ROOT / "README.md").read_text().partition("## What it promises")[2]
    section = section.partition("\n## ")[0]
    bullets = re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE)
    files = [path for path in HERE.glob("test_*.py") if path != Path(__file__)]
    docs = [ast.get_docstring(ast.parse(path.read_text())) or "" for path in files]
    assert sorted(doc.partition("\n")[0] for doc in docs) == sorted(
        bullet if bullet.endswith(".") else f"{bullet}." for bullet in bullets
    )
    assert "tests/promises" in section
