"""Tests mirror the package: a file for each module that has a function."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.project import PACKAGE, ROOT

TESTS = ROOT / "tests"


def test_every_module_has_a_test_file() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")]
    wanted = [path.relative_to(PACKAGE).with_name(f"test_{path.name}") for path in paths]
    missing = [
        str(test)
        for path, test in zip(paths, wanted, strict=True)
        if not (TESTS / test).exists() and not is_table(path)
    ]
    assert missing == []


def is_table(path: Path) -> bool:
    """Whether a module has constants and bare records alone, which those who read them show."""
    tree = ast.parse(path.read_text())
    return not any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))
