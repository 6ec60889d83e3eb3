"""The tests of a room name each module of it that has a function."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from testing.project import PACKAGE, ROOT

TESTS = ROOT / "tests"


def test_every_module_is_named_by_the_tests_of_its_room() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")]
    missing = [
        str(path.relative_to(PACKAGE))
        for path in modules
        if not has_test_file(path) and not is_table(path) and not public_names(path) & words(path)
    ]
    assert missing == []


def has_test_file(path: Path) -> bool:
    return (TESTS / path.relative_to(PACKAGE).with_name(f"test_{path.name}")).exists()


def public_names(path: Path) -> set[str]:
    """The functions and classes that other modules may use."""
    found = ast.parse(path.read_text()).body
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {it.name for it in found if isinstance(it, kinds) and not it.name.startswith("_")}


def words(path: Path) -> set[str]:
    """All words in the tests of the room of a module."""
    return words_below(TESTS / path.relative_to(PACKAGE).with_suffix("").parts[0])


@cache
def words_below(folder: Path) -> set[str]:
    return {word for test in folder.rglob("*.py") for word in re.findall(r"\w+", test.read_text())}


def is_table(path: Path) -> bool:
    """Whether a module has constants and bare records alone, which those who read them show."""
    tree = ast.parse(path.read_text())
    return not any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))
