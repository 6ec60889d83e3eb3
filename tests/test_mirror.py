"""Tests mirror the package: a file for each module, or a line in CONTRIBUTING that says which."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.project import PACKAGE, ROOT

TESTS = ROOT / "tests"
#: Modules without a test file of their own; whoever makes them fewer lowers it.
MOST_WITHOUT = 5


def exceptions() -> list[tuple[list[str], list[str]]]:
    """The rows of CONTRIBUTING's table: patterns of modules, and the tests that show them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = text.partition("| modules | shown by |")[2].partition("\n\n")[0].splitlines()[2:]
    return [
        (re.findall(r"`([^`]+)`", modules), re.findall(r"`([^`]+)`", tests))
        for _, modules, tests, *_ in (row.split("|") for row in rows)
    ]


@cache
def modules_without_tests() -> list[str]:
    """Modules that have no test file of their own, as paths below the package."""
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not is_table(path)]
    return sorted(
        str(path.with_suffix(""))
        for path in paths
        if not path.name.startswith("__")
        and not (TESTS / path.parent / f"test_{path.name}").exists()
    )


@cache
def is_table(path: Path) -> bool:
    """Whether a module has constants and bare records alone, which those who read them show."""
    tree = ast.parse(path.read_text())
    return not any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))


def folder_of(pattern: str) -> str:
    return pattern.removesuffix("*")


def test_a_module_has_a_test_file_or_says_what_shows_it() -> None:
    folders = [folder_of(pattern) for patterns, _ in exceptions() for pattern in patterns]
    for module in modules_without_tests():
        wanted = f"tests/{Path(module).parent}/test_{Path(module).name}.py"
        assert any(map(module.startswith, folders)), f"write {wanted}"


def test_new_modules_come_with_tests() -> None:
    """Most of those without were divided off modules whose tests show them still."""
    assert len(modules_without_tests()) <= MOST_WITHOUT


def test_every_exception_is_needed_and_leads_to_a_test() -> None:
    found = exceptions()
    assert found
    for patterns, tests in found:
        assert all((TESTS / test).exists() for test in tests), tests
        for pattern in patterns:
            assert any(m.startswith(folder_of(pattern)) for m in modules_without_tests()), pattern


if __name__ == "__main__":
    print(*modules_without_tests(), sep="\n")
