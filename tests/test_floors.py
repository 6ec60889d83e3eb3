"""A module imports only from lower floors: the rule that keeps the layout from growing walls."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "secure_bloom"

#: Floor of each module, or of a whole package; inside one package its own order is free.
FLOORS = {
    "errors": 0,
    "kernels": 0,
    "options": 1,
    "compact": 1,
    "cipher": 1,
    "xxh64": 1,
    "sbbf": 2,
    "metadata": 3,
    "keys": 3,
    "policy": 4,
    "storage": 3,
    "footer": 5,
    "pages": 6,
    "bloom": 6,
    "values": 7,
    "literals": 7,
    "report": 7,
    "writer": 8,
    "reader": 8,
    "inspection": 8,
    "spark": 9,
    "cli": 10,
    "__init__": 11,
    "__main__": 11,
}
HEAVY = {"pyspark": {"spark"}, "numba": {"kernels"}, "boto3": {"keys"}}


def _modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_from_lower_floors(path: Path) -> None:
    room = _room(path)
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] != "secure_bloom" or len(parts) < 2 or parts[1] == room:
            continue
        assert FLOORS[parts[1]] < FLOORS[room], f"{room} must not import {parts[1]}"


def test_every_module_has_a_floor() -> None:
    assert {_room(p) for p in _modules()} <= set(FLOORS)
