"""Every table feature of the protocol: kept by a commit, or refused by its name before a write.

The names are those of PROTOCOL.md and its RFCs, and of the engines that were ahead of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.delta.features import has_in_commit_timestamps
from testing import delta_logs as logs
from testing.delta_tables import rows
from testing.tables import KEYRING

POLICY = sb.KeyPolicy(footer_key="k_footer")
#: Features that writers alone must know, and what they may set in the table's properties.
KEPT_BY_WRITERS = {
    "allowColumnDefaults": {},
    "appendOnly": {"delta.appendOnly": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "checkConstraints": {"delta.constraints.c": "id >= 0"},
    "checkpointProtection": {"delta.requireCheckpointProtectionBeforeVersion": "1"},
    "clustering": {},
    "domainMetadata": {},
    "generatedColumns": {},
    "identityColumns": {},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "invariants": {},
    "materializePartitionColumns": {},
}
#: Features that readers must know too.
KEPT_BY_ALL = (
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
)
_ICEBERG = "Iceberg metadata that its engine writes would go on naming the old files"
_MIRROR = "would go on naming the old files"
_CATALOG = "its commits go through a catalog"
_MOVED = "engines look for the table elsewhere"
_UNKNOWN = "this program does not know what that asks of writers"
REFUSED = {
    "coordinatedCommits-preview": _CATALOG,
    "icebergCompatV1": _ICEBERG,
    "icebergCompatV2": _ICEBERG,
    "icebergCompatV3": _ICEBERG,
    "icebergWriterCompatV1": _ICEBERG,
    "icebergWriterCompatV3": _ICEBERG,
    "redirectWriterOnly-preview": _MOVED,
    "rowTracking": "needs fresh row ids",
    "inCommitTimestamp-preview": _UNKNOWN,
    "quantumRows": _UNKNOWN,
}
REFUSED_PROPERTIES = (
    ("delta.universalFormat.enabledFormats", "iceberg", _MIRROR),
    ("delta.universalFormat.enabledFormats", "hudi,iceberg", _MIRROR),
    ("delta.compatibility.symlinkFormatManifest.enabled", "true", _MIRROR),
    ("delta.enableIcebergCompatV1", "true", _ICEBERG),
    ("delta.enableIcebergCompatV2", "true", _ICEBERG),
    ("delta.enableIcebergCompatV3", "TRUE", _ICEBERG),
    ("delta.enableIcebergWriterCompatV1", "true", _ICEBERG),
    ("delta.enableIcebergWriterCompatV3", "true", _ICEBERG),
    ("delta.enableRowTracking", "true", "needs fresh row ids"),
    ("delta.coordinatedCommits.commitCoordinator-preview", "dynamodb", _CATALOG),
    ("delta.redirectReaderWriter-preview", "{}", _MOVED),
    ("delta.redirectWriterOnly-preview", "{}", _MOVED),
)
#: Refused by every verb: a reader that does not know them would see another table.
CLOSED = (
    "catalogManaged",
    "catalogOwned-preview",
    "collations-preview",
    "geospatial-preview",
    "managed-commit-dev",
    "redirectReaderWriter-preview",
    "typeWidening-dev",
)
WRITING: dict[str, Callable[[Path], object]] = {
    "add": lambda table: sb.add_bloom_filters(table, columns="id"),
    "add, to see": lambda table: sb.add_bloom_filters(table, columns="id", dry_run=True),
    "reencrypt": lambda table: sb.reencrypt(table, policy=POLICY, keys=KEYRING),
    "rotate": lambda table: sb.rotate_keys(table, policy=POLICY, keys=KEYRING),
}
READING: dict[str, Callable[[Path], object]] = {
    "read": lambda table: sb.read_table(table, where="id = 1"),
    "probe": lambda table: sb.probe(table, "id", [1]),
    "inspect": sb.inspect,
    "audit": lambda table: sb.audit(table, policy=POLICY, keys=KEYRING),
}


def write(table: Path, *features: str, closed: bool = False, **rest: Any) -> Path:
    """A table of one file, whose protocol lists features, of readers too if it is ``closed``."""
    table.mkdir()
    pq.write_table(pa.table({"id": [0, 1]}), table / "a.parquet")
    protocol = logs.protocol(reader=3 if closed else 1)
    protocol["protocol"] |= {"writerFeatures": list(features)}
    protocol["protocol"] |= {"readerFeatures": list(features)} if closed else {}
    metadata = logs.metadata(partitions=rest.pop("partitions", ()))
    metadata["metaData"]["configuration"] = rest
    info = {"commitInfo": {"inCommitTimestamp": 1, "operation": "WRITE"}}
    size = (table / "a.parquet").stat().st_size
    values = dict.fromkeys(metadata["metaData"]["partitionColumns"], "1")
    action = logs.add("a.parquet", size, partitionValues=values)
    logs.commit(table, 0, info, protocol, metadata, action)
    return table


def state(table: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in table.rglob("*") if path.is_file()}


def refused(table: Path, told: str, verbs: dict[str, Callable[[Path], object]]) -> None:
    before = state(table)
    for verb in verbs.values():
        with pytest.raises(sb.UnsupportedFeatureError, match=told):
            verb(table)
    assert state(table) == before


def test_a_commit_keeps_the_rules_of_features_that_concern_no_file(tmp_path: Path) -> None:
    for name, properties in KEPT_BY_WRITERS.items():
        table = write(tmp_path / name, name, **properties)
        assert sb.add_bloom_filters(table, columns="id").commits[0].version == 1, name
        assert sb.read_table(table).to_pydict() == {"id": [0, 1]}, name
    # deltalake knows these, and counts a commit that breaks them as an error.
    for name in ("appendOnly", "changeDataFeed", "inCommitTimestamp", "domainMetadata"):
        assert [row["id"] for row in rows(tmp_path / name)] == [0, 1], name


def test_a_commit_keeps_the_rules_of_features_that_readers_know_too(tmp_path: Path) -> None:
    for name in KEPT_BY_ALL:
        table = write(tmp_path / name, name, closed=True)
        assert sb.add_bloom_filters(table, columns="id").commits[0].version == 1, name
        assert sb.read_table(table).to_pydict() == {"id": [0, 1]}, name


@pytest.mark.parametrize("name", REFUSED)
def test_a_feature_that_a_commit_would_break_stops_it_by_name(tmp_path: Path, name: str) -> None:
    table = write(tmp_path / "t", name)
    refused(table, f"table feature {name}: .*{REFUSED[name]}", WRITING)
    for verb in READING.values():
        verb(table)


@pytest.mark.parametrize(("name", "value", "reason"), REFUSED_PROPERTIES)
def test_a_property_that_a_commit_would_break_stops_it_by_name(
    tmp_path: Path, name: str, value: str, reason: str
) -> None:
    table = write(tmp_path / "t", **{name: value})
    refused(table, f"the property {name}: .*{reason}", WRITING)
    for verb in READING.values():
        verb(table)


def test_properties_that_are_off_stop_nothing(tmp_path: Path) -> None:
    off = dict.fromkeys((name for name, _, _ in REFUSED_PROPERTIES), "false")
    table = write(tmp_path / "t", **off | {"delta.universalFormat.enabledFormats": ""})
    assert sb.add_bloom_filters(table, columns="id").commits[0].version == 1


@pytest.mark.parametrize("name", CLOSED)
def test_what_a_reader_must_know_stops_every_verb_by_name(tmp_path: Path, name: str) -> None:
    refused(write(tmp_path / "t", name, closed=True), name, WRITING | READING)


def test_partition_columns_that_each_new_file_must_hold_stop_a_commit(tmp_path: Path) -> None:
    """A copy of a file from before the feature would lack them."""
    table = write(tmp_path / "t", "materializePartitionColumns", partitions=["id"])
    refused(table, "materializePartitionColumns: each new file must hold", WRITING)


def test_versions_of_the_protocol_without_features(tmp_path: Path) -> None:
    for version in range(1, 9):
        table = write(tmp_path / str(version))
        log = table / "_delta_log" / f"{0:020}.json"
        listed = '"minWriterVersion": 7, "writerFeatures": []'
        log.write_text(log.read_text().replace(listed, f'"minWriterVersion": {version}'))
        if version == 8:
            refused(table, "version 8 of the protocol", WRITING)
        else:
            assert sb.add_bloom_filters(table, columns="id").commits[0].version == 1


def test_in_commit_timestamps_are_a_setting_of_the_table() -> None:
    assert has_in_commit_timestamps({"delta.enableInCommitTimestamps": "true"})
    assert not has_in_commit_timestamps({})
