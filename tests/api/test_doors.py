"""A verb has one public function, in `api`, and the command line and Spark call that one."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import secure_bloom
from testing.project import PACKAGE
from tests.test_floors import imports, modules, room_of

#: Public functions that are no verbs over files.
TOOLS = {"pyarrow_encryption", "time_limit"}
#: Functions of one read: the command line asks an open table, for its schema, rows and report.
READS = {
    "explain",
    "open_table",
    "plan_read",
    "read_batches",
    "read_row_groups",
    "read_table",
    "sql",
}
#: Rooms with doors of their own: ``sb.paimon.probe`` is another verb than ``sb.probe``.
OWN_DOORS = {"hudi", "paimon"}


def doors() -> dict[str, str]:
    """Return each public function of a verb with the module that has it."""
    public = {name: getattr(secure_bloom, name) for name in secure_bloom.__all__}
    return {
        name: found.__module__
        for name, found in public.items()
        if inspect.isfunction(found) and name not in TOOLS
    }


def test_the_doors_are_in_one_room() -> None:
    assert {"add_bloom_filters", "advise", "audit", "inspect", "reencrypt"} <= doors().keys()
    for name, module in doors().items():
        assert module.startswith("secure_bloom.api."), f"{name} is in {module}"


@pytest.mark.parametrize("room", ["cli", "spark"])
def test_who_calls_a_public_function_calls_its_door(room: str) -> None:
    public, found = doors(), set[str]()
    for path in modules():
        if room_of(path) == room:
            found |= _checked(path, public)
    if room == "cli":
        assert found == public.keys() - READS


def _checked(path: Path, public: dict[str, str]) -> set[str]:
    """Return the doors that a module imports; fails for one from elsewhere."""
    found = set[str]()
    for full in imports(path):
        module, _, name = full.rpartition(".")
        assert module != "secure_bloom", f"{path.relative_to(PACKAGE)} imports the face: {full}"
        if not module.startswith("secure_bloom.") or module.split(".")[1] in OWN_DOORS:
            continue
        if name in public and room_of(path) not in module:
            assert module == public[name], f"{path.relative_to(PACKAGE)} must not import {full}"
            found.add(name)
    return found
