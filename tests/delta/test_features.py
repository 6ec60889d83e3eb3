"""Tables that are not written to, each refused by the name of what stands against it."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.delta.features import has_in_commit_timestamps, refuse_unwritable
from tests.tables import delta_logs as logs


def test_every_feature_is_taken_that_concerns_no_file() -> None:
    features = ["appendOnly", "changeDataFeed", "clustering", "deletionVectors", "v2Checkpoint"]
    refuse_unwritable(7, features, {"delta.appendOnly": "true"}, "t")
    for version in range(1, 7):
        refuse_unwritable(version, [], {}, "t")


@pytest.mark.parametrize(
    ("version", "features", "configuration", "told"),
    [
        (8, [], {}, "version 8 of the protocol"),
        (7, ["rowTracking"], {}, "rowTracking: a file at a new path needs fresh row ids"),
        (7, ["catalogManaged"], {}, "catalogManaged: its commits go through a catalog"),
        (7, ["icebergCompatV2"], {}, "Iceberg metadata"),
        (7, ["quantumRows"], {}, "quantumRows: it is not known here"),
        (2, [], {"delta.universalFormat.enabledFormats": "hudi"}, "enabledFormats = hudi"),
    ],
)
def test_other_tables_are_refused_by_name(
    version: int, features: list[str], configuration: dict[str, str], told: str
) -> None:
    with pytest.raises(sb.UnsupportedFeatureError, match=told):
        refuse_unwritable(version, features, configuration, "t")


def test_a_refused_table_is_not_touched(tmp_path: Path) -> None:
    first = [logs.protocol("rowTracking", reader=1), logs.metadata()]
    first[0]["protocol"]["writerFeatures"] = ["rowTracking"]
    logs.commit(tmp_path, 0, *first)
    with pytest.raises(sb.UnsupportedFeatureError, match="rowTracking"):
        sb.add_bloom_filters(tmp_path, columns="id")
    assert [path.name for path in tmp_path.iterdir()] == ["_delta_log"]


def test_in_commit_timestamps_are_a_setting_of_the_table() -> None:
    assert has_in_commit_timestamps({"delta.enableInCommitTimestamps": "true"})
    assert not has_in_commit_timestamps({})
