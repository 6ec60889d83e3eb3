"""Whole tables written by Paimon's Java writer: read, asked, and built again byte for byte."""

from __future__ import annotations

import base64
import tarfile
from pathlib import Path
from typing import Any

import pytest

from secure_bloom import paimon
from secure_bloom.paimon import FileIndex, IndexOptions, must_read, typed_forms
from secure_bloom.predicates.tree import leaves
from testing.project import NO_VECTORS
from tests.paimon.vectors import SHARED, load, predicate_of, types_of

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=NO_VECTORS)
TABLES = load("tables", SHARED)["cases"] if SHARED.is_dir() else []
INDEXED = [case for case in TABLES if case["name"] != "pk_no_index"]
by_name = pytest.mark.parametrize("case", INDEXED, ids=lambda case: case["name"])
_OPTIONS = "file-index.bloom-filter."


def index_of(file: dict[str, Any]) -> bytes:
    return base64.b64decode(file["embedded_index"] or file["index_file"])


@pytest.fixture
def table(case: dict[str, Any], tmp_path: Path) -> Path:
    with tarfile.open(SHARED / case["archive"]) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def options_of(case: dict[str, Any]) -> dict[str, IndexOptions]:
    """The options of each indexed column; those of a map hold for its keys."""
    options = case["options"]

    def option(column: str, name: str, default: str) -> str:
        of_map = options.get(f"{_OPTIONS}{column.partition('[')[0]}.{name}", default)
        return str(options.get(f"{_OPTIONS}{column}.{name}", of_map))

    return {
        column: IndexOptions(
            items=int(option(column, "items", "1000000")), fpp=float(option(column, "fpp", "0.1"))
        )
        for column in options[f"{_OPTIONS}columns"].split(",")
    }


@by_name
def test_indexes_give_the_answers_of_java(case: dict[str, Any]) -> None:
    types = types_of(case["schema"])
    indexes = {file["file"]: FileIndex.from_bytes(index_of(file)) for file in case["files"]}
    for question in case["predicates"]:
        predicate = predicate_of(question["predicate"], types)
        answers = {
            name: int(must_read(index, predicate, typed_forms(types)))
            for name, index in indexes.items()
        }
        assert answers == question["index_answers"], question["predicate"]


@by_name
def test_indexes_are_carried_byte_for_byte(case: dict[str, Any]) -> None:
    for file in case["files"]:
        assert FileIndex.from_bytes(index_of(file)).to_bytes() == index_of(file)


@by_name
def test_ours_have_the_same_bodies(case: dict[str, Any], table: Path) -> None:
    if case["options"]["file.format"] != "parquet":
        pytest.skip("data files of this table are not Parquet")
    for file in case["files"]:
        path = table / file["bucket_path"] / file["file"]
        Path(f"{path}.index").unlink(missing_ok=True)
        paimon.build_index(path, options_of(case))
        ours = FileIndex.from_bytes(Path(f"{path}.index").read_bytes())
        theirs = FileIndex.from_bytes(index_of(file))
        for column in options_of(case):
            (built,) = ours.indexes(column)
            assert built in theirs.indexes(column), column


@by_name
def test_index_files_are_probed_where_they_stand(case: dict[str, Any], table: Path) -> None:
    types = types_of(case["schema"])
    for file in case["files"]:
        path = table / file["bucket_path"] / f"{file['file']}.index"
        if file["embedded_index"]:
            path.write_bytes(index_of(file))
        for question in case["predicates"]:
            predicate = predicate_of(question["predicate"], types)
            if any("[" in c.column for c in leaves(predicate)):
                continue  # a map's key has a type only in the schema
            if not isinstance(question["predicate"][-1], int):
                continue  # values of other types are written otherwise for people
            (asked,) = paimon.probe(path, predicate, types=types).files
            wanted = question["index_answers"][file["file"]]
            assert asked.error is None
            assert (asked.verdict == "absent") is (wanted == 0), question["predicate"]
