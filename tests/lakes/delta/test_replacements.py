"""The actions of a commit: what is carried, and what is new."""

from __future__ import annotations

import json
from typing import Any

from secure_bloom.lakes.delta.replacements import (
    Operation,
    Replacement,
    commit_info,
    encode,
    file_key,
)

OLD: dict[str, Any] = {
    "path": "a%20b/x.parquet",
    "size": 100,
    "partitionValues": {"day": None},
    "modificationTime": 1,
    "dataChange": True,
    "stats": '{"numRecords":3}',
    "tags": {"INSERTION_TIME": "7"},
    "deletionVector": {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 2,
    },
    "clusteringProvider": "liquid",
    "baseRowId": None,
    "stats_parsed": {"numRecords": 3},
}
NEW = Replacement(old=OLD, path="a%20b/x.sb-1.parquet", size=130)


def test_statistics_partition_values_tags_and_deletion_vector_go_along() -> None:
    remove, add = (next(iter(action.values())) for action in NEW.actions(5))
    for name in ("partitionValues", "stats", "tags", "deletionVector"):
        assert add[name] == remove[name] == OLD[name]
    assert add["clusteringProvider"] == "liquid"
    assert (add["path"], add["size"], add["modificationTime"]) == (NEW.path, 130, 5)
    assert (remove["path"], remove["size"], remove["deletionTimestamp"]) == (OLD["path"], 100, 5)
    assert not add["dataChange"] | remove["dataChange"]


def test_what_only_checkpoints_have_is_left_out() -> None:
    for action in NEW.actions(5):
        (fields,) = action.values()
        assert not {"stats_parsed", "baseRowId"} & fields.keys()


def test_a_file_counts_by_its_path_and_its_deletion_vector() -> None:
    vector = {**OLD["deletionVector"], "offset": None}
    others = [OLD, {**OLD, "path": "y"}, {**OLD, "deletionVector": None}]
    assert len({file_key(it) for it in [*others, {**OLD, "deletionVector": vector}]}) == 4
    assert file_key({**OLD, "size": 7, "stats": None}) == file_key(OLD)


def test_a_commit_is_one_action_a_line_and_says_first_who_made_it() -> None:
    operation = Operation(name="ADD BLOOM FILTERS", parameters={"columns": "é"})
    info = commit_info(
        operation, [NEW], now=9, read_version=4, transaction="t", in_commit_timestamp=12
    )
    first, *rest = map(json.loads, encode([info, *NEW.actions(9)]).splitlines())
    assert first["commitInfo"]["inCommitTimestamp"] == 12
    assert first["commitInfo"]["readVersion"] == 4
    assert first["commitInfo"]["operationMetrics"]["numRemovedBytes"] == "100"
    assert [next(iter(action)) for action in rest] == ["remove", "add"]
