"""A package imports only from lower floors: the rule that keeps the house from growing walls.

``python -m tests.test_floors`` prints the table of floors that ``docs/design/README.md`` shows.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from testing.project import PACKAGE, ROOT

#: The rooms of each floor, and what each is for.  A module imports from rooms of lower floors, from
#: its own room, from ``errors``, and from ``calling``, which knows ``errors`` alone.
FLOORS: list[dict[str, str]] = [
    {
        "errors": "every exception",
        "calling": "how functions are called: checked arguments, requests, options, lazy names",
        "running": "the work of a run: threads, other processes, results in order, limits of time",
        "reports": "what every report can do: a document, a table, words for people",
    },
    {
        "kernels": "loops in C, and the same by numpy: arrays in, arrays out",
        "storage": "bytes of local files and objects: bounded reads, atomic writes, listing",
        "encryption": "AES modules, keys, KMS clients, the key-to-column policy",
    },
    {
        "parquet": "the file format: structures, footer, schema, pages, values",
    },
    {
        "runs": "work x target x runner: the one loop of the verbs that write files",
        "bloom": "split-block filters: hash, build, store, probe",
        "predicates": "what rows are asked for: parse, bind, evaluate",
    },
    {
        "lakes": "tables: live files, columns, deletes, and commits of new files, by format",
    },
    {
        "adding": "plan filters and write them into files",
        "reading": "rows through filters: prune, decrypt, explain",
    },
    {
        "hudi": "Hudi's filter of record keys",
        "paimon": "Paimon's file index",
        "advising": "which columns gain by a filter",
        "tracing": "values of columns in files of any kind",
    },
    {
        "rekeying": "files under other keys: rotate, re-encrypt, decrypt",
        "auditing": "policy x files -> findings -> formats",
        "inspecting": "what files contain, and which keys open them",
    },
    {"api": "the doors: one public function for each verb"},
    {"spark": "the step after a write, the data source, sessions, the JVM's KMS client"},
    {
        "cli": "verbs",
        "__init__": "the face: public names, each at its home",
        "__main__": "the face: python -m secure_bloom",
    },
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
#: The parts of the room ``encryption``, from the lowest to the highest.
PARTS_OF_ENCRYPTION = [
    {"cipher", "configuration", "likeness", "personal_data", "table_patterns"},
    {"kms"},
    {"policy", "policy_files", "policy_tables", "policy_text"}
    | {"spark_columns", "spark_ddl", "spark_properties"},
    {"trust"},
    {"file_keys"},
    {"access"},
]
#: The face may look into every room.
FACE = {"__init__", "__main__"}
#: Only these rooms may name a heavy package, wherever in a module that is.
HEAVY = {
    "pyspark": {"spark"},
    "boto3": {"encryption", "storage"},
    "botocore": {"encryption", "storage"},
    "hvac": {"encryption"},
    "google": {"encryption", "storage"},
    "azure": {"encryption", "storage"},
    "pandas": {"reports"},
    "pyarrow": {
        "reports",
        "storage",
        "parquet",
        "bloom",
        "predicates",
        "lakes",
        "reading",
        "hudi",
        "paimon",
        "advising",
        "tracing",
        "auditing",
        "api",
        "spark",
    },
    "pyiceberg": {"lakes"},
    "sqlglot": {"advising"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Everything in a module, inside of functions too."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> list[str]:
    """The dotted names that a module imports, in full."""
    names = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a module imports from; the bare package and its public names are the face."""
    rooms = set()
    for name in imports(path):
        package, _, inner = name.partition(".")
        if package == "secure_bloom":
            room = inner.partition(".")[0]
            rooms.add(room if room in FLOOR_OF else "__init__")
    return rooms


def floors_table() -> str:
    """The floors as a table in Markdown."""
    rows = [
        f"| {floor} | " + "; ".join(f"`{room}` {what}" for room, what in rooms.items()) + " |"
        for floor, rooms in enumerate(FLOORS)
    ]
    return "\n".join(["| floor | rooms |", "| --- | --- |", *rows])


def test_a_module_imports_only_from_lower_floors() -> None:
    for path in modules():
        room = room_of(path)
        for other in imported_rooms(path) - {room, "errors", "calling"}:
            is_below = room in FACE or FLOOR_OF[other] < FLOOR_OF[room]
            assert is_below, f"{path}: {room} must not import {other}"


def test_the_parts_of_encryption_import_lower_parts_only() -> None:
    height = {part: at for at, parts in enumerate(PARTS_OF_ENCRYPTION) for part in parts}
    for path in modules():
        room, *rest = path.relative_to(PACKAGE).with_suffix("").parts
        if room == "encryption" and rest != ["__init__"]:
            for name in imports(path):
                part = name.removeprefix("secure_bloom.encryption.").partition(".")[0]
                if name.startswith("secure_bloom.encryption.") and part != rest[0]:
                    same = PARTS_OF_ENCRYPTION[height[rest[0]]]
                    is_below = height[part] < height[rest[0]] or {part, rest[0]} <= same
                    assert is_below, f"{path} must not import {name}"


_IMPORT = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)


@pytest.mark.parametrize("tree", ["testing", "tests", "benchmarks", "campaigns"])
def test_tests_benchmarks_and_campaigns_share_by_testing_alone(tree: str) -> None:
    others = {"tests", "benchmarks", "campaigns"} - {tree}
    for path in sorted((ROOT / tree).rglob("*.py")):
        found = set(_IMPORT.findall(path.read_text())) & others
        assert not found, f"{path.relative_to(ROOT)} must not import {found}: move it into testing"


def test_every_module_has_a_floor() -> None:
    assert {room_of(path) for path in modules()} == set(FLOOR_OF)


def test_heavy_packages_stay_in_their_rooms() -> None:
    for path in modules():
        for name in imports(path):
            rooms = HEAVY.get(name.split(".")[0])
            assert rooms is None or room_of(path) in rooms, f"{path} must not import {name}"


def module_of(path: Path) -> str:
    """The dotted name of a module; a package's is that of its ``__init__``."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path, known: Set[str]) -> set[str]:
    """The modules of ours that one imports when it runs, inside of functions too."""
    # Names for the type checker alone load nothing.
    unused = {
        id(node)
        for block in nodes_of(path)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found: set[str] = set()
    for node in nodes_of(path):
        if id(node) in unused:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name if name in known else str(node.module) for name in inner)
    return found & known


def test_no_modules_import_each_other_in_a_circle() -> None:
    paths = {module_of(path): path for path in modules()}
    graph = {name: imported_modules(path, set(paths)) - {name} for name, path in paths.items()}
    # The face looks into every room, and rooms may ask it for the version.
    faces = {module_of(path) for path in modules() if room_of(path) in FACE}
    sorter = TopologicalSorter({name: found - faces for name, found in graph.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_module_name_occurs_in_two_packages_at_most() -> None:
    found = Counter(path.name for path in modules() if path.name != "__init__.py")
    assert not {name: count for name, count in found.items() if count > 2}


def test_no_class_name_occurs_twice() -> None:
    found = Counter(
        node.name for path in modules() for node in nodes_of(path) if isinstance(node, ast.ClassDef)
    )
    assert not {name: count for name, count in found.items() if count > 1}


def test_the_design_shows_the_floors() -> None:
    page = (ROOT / "docs" / "design" / "README.md").read_text()
    assert floors_table() in page, "put the output of python -m tests.test_floors there"


@pytest.mark.parametrize("statement", ["import secure_bloom", "from secure_bloom import probe"])
def test_what_probes_starts_light(statement: str) -> None:
    heavy = "{'numpy', 'pyarrow', 'pyspark'}"
    code = f"import sys; {statement}; assert not {heavy} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    print(floors_table())
