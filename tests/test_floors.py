"""A module imports only from lower floors: the rule that keeps the layout from growing walls."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "secure_bloom"

#: The modules and packages of each floor; inside one package its own order is free.  A part of a
#: package that others build on may be a room of its own.
ROOMS = {
    0: ["errors", "kernels"],
    1: [
        "options",
        "compact",
        "cipher",
        "xxh64",
        "report",
        "findings",
        "numerals",
        "reading.asking.predicates",
        "reading.scheduling",
        "reading.stages",
        "reading.warmth",
    ],
    2: [
        "sbbf",
        "views",
        "keys",
        "storage",
        "formats",
        "reading.asking.structures",
        "reading.asking.texts",
    ],
    3: ["metadata", "policy", "modules", "sources", "records"],
    4: ["schema", "logical", "hudi.bloom"],
    5: ["literals", "footer"],
    6: ["request", "pages", "bloom", "torn", "entries"],
    7: ["summaries", "survey", "decoding", "plain", "reader"],
    8: ["values"],
    9: ["building", "paimon", "reading.asking", "reading.files"],
    10: ["auditing", "reading.pruning"],
    11: ["planning", "inspection", "reading.rows"],
    12: ["rewriting", "reading"],
    13: ["writer", "hudi"],
    14: ["spark"],
    15: ["cli"],
    16: ["__init__", "__main__"],
}
FLOORS = {room: floor for floor, rooms in ROOMS.items() for room in rooms}
#: Only these rooms may name a heavy package, wherever in a module that is.
HEAVY = {
    "pyspark": {"spark"},
    "numba": {"kernels"},
    "boto3": {"keys"},
    "pyarrow": {
        "storage",
        "decoding",
        "values",
        "entries",
        "plain",
        "auditing",
        "hudi",
        "paimon",
        "reading",
        "reading.asking",
        "reading.asking.predicates",
        "reading.files",
        "reading.pruning",
        "reading.rows",
        "spark",
    },
}


def _modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    return _room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))


def _room_of(name: str) -> str:
    """The innermost room that a dotted name lies in; its first part where it lies in none."""
    parts = name.split(".")
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((room for room in names if room in FLOORS), parts[0])


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
        package, _, inner = name.partition(".")
        other = _room_of(inner)
        if package != "secure_bloom" or not inner or other == room:
            continue
        assert FLOORS[other] < FLOORS[room], f"{room} must not import {other}"


def test_every_module_has_a_floor() -> None:
    assert {_room(p) for p in _modules()} <= set(FLOORS)


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_stay_in_their_rooms(path: Path) -> None:
    for name in _imports(path):
        rooms = HEAVY.get(name.split(".")[0])
        assert rooms is None or _room(path) in rooms, f"{_room(path)} must not import {name}"


@pytest.mark.parametrize("statement", ["import secure_bloom", "from secure_bloom import probe"])
def test_what_probes_starts_light(statement: str) -> None:
    heavy = "{'numba', 'numpy', 'pyarrow', 'pyspark'}"
    code = f"import sys; {statement}; assert not {heavy} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
