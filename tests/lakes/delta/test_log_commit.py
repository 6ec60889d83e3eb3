"""Commits beside other writers: each version is one writer's, and no row is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import FileChangedError, PolicyError, UnfinishedWriteError
from secure_bloom.lakes.delta import log_commit as commit_module
from secure_bloom.lakes.delta.log_commit import (
    commit,
    has_in_commit_timestamps,
    log_file,
    open_table,
)
from secure_bloom.lakes.delta.replacements import Operation, Replacement
from secure_bloom.storage import commit_files
from testing import delta_logs as logs
from testing.delta_tables import rows
from testing.tables import KEYRING

OPERATION = Operation(name="ADD BLOOM FILTERS", parameters={})
VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    logs.commit(tmp_path, 0, *logs.start(), logs.add("a"), logs.add("b", tags={"t": "1"}))
    return str(tmp_path)


def both(folder: str) -> list[Replacement]:
    return [
        Replacement(old=file.add, path=f"{file.add['path']}.new", size=2)
        for file in open_table(folder).files
    ]


def live(folder: str) -> list[str]:
    return [str(file.add["path"]) for file in open_table(folder).files]


def test_the_next_version_is_ours(folder: str) -> None:
    done = commit(open_table(folder), both(folder), OPERATION)
    assert done.version == 1
    assert live(folder) == ["a.new", "b.new"]


def test_after_another_writer_the_version_behind_it_is_ours(folder: str) -> None:
    table, replacements = open_table(folder), both(folder)
    logs.commit(Path(folder), 1, logs.add("c"))
    done = commit(table, replacements, OPERATION)
    assert (done.version, live(folder)) == (2, ["a.new", "b.new", "c"])


@pytest.mark.parametrize(
    "action", [logs.remove("a"), logs.add("a", deletionVector=VECTOR)], ids=["removed", "deleted"]
)
def test_a_file_that_another_writer_changed_is_left_alone(
    folder: str, action: dict[str, object]
) -> None:
    table, replacements = open_table(folder), both(folder)
    logs.commit(Path(folder), 1, logs.protocol("deletionVectors"), logs.remove("a"), action)
    done = commit(table, replacements, OPERATION)
    assert [it.path for it in done.replaced] == ["b.new"]
    assert "a.new" not in live(folder)


def test_statistics_that_another_writer_added_meanwhile_are_carried(folder: str) -> None:
    table, replacements = open_table(folder), both(folder)
    logs.commit(Path(folder), 1, logs.add("b", stats='{"numRecords":4}', dataChange=False))
    commit(table, replacements, OPERATION)
    assert [file.add.get("stats") for file in open_table(folder).files] == [
        None,
        '{"numRecords":4}',
    ]


def test_where_nothing_is_live_any_more_nothing_is_committed(folder: str) -> None:
    table, replacements = open_table(folder), both(folder)
    logs.commit(Path(folder), 1, logs.remove("a"), logs.remove("b"))
    done = commit(table, replacements, OPERATION)
    assert (done.version, done.replaced) == (None, ())
    assert not Path(log_file(folder, 2)).exists()


def test_a_feature_that_came_meanwhile_stops_the_commit(folder: str) -> None:
    table, replacements = open_table(folder), both(folder)
    action = logs.protocol(reader=1)
    action["protocol"]["writerFeatures"] = ["rowTracking"]
    logs.commit(Path(folder), 1, action)
    with pytest.raises(sb.UnsupportedFeatureError, match="rowTracking"):
        commit(table, replacements, OPERATION)


FUTURE = 4_000_000_000_000


@pytest.fixture
def stamped() -> list[dict[str, Any]]:
    """The first actions of a table with in-commit timestamps."""
    protocol = logs.protocol(reader=1)
    protocol["protocol"]["writerFeatures"] = ["inCommitTimestamp"]
    metadata = logs.metadata(delta_enableInCommitTimestamps="true")
    return [protocol, metadata, logs.add("a")]


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_in_commit_timestamps_grow_whatever_the_clock_says(
    tmp_path: Path, stamped: list[dict[str, Any]], has_checkpoint: bool
) -> None:
    info = {"commitInfo": {"inCommitTimestamp": FUTURE, "operation": "WRITE"}}
    logs.commit(tmp_path, 0, info, *stamped)
    if has_checkpoint:
        # It has no commitInfo, so the commit is looked at all the same.
        logs.checkpoint(logs.log_of(tmp_path) / f"{0:020}.checkpoint.parquet", *stamped)
    folder = str(tmp_path)
    commit(open_table(folder), both(folder), OPERATION)
    first = json.loads(Path(log_file(folder, 1)).read_text().splitlines()[0])
    assert first["commitInfo"]["inCommitTimestamp"] == FUTURE + 1
    assert open_table(folder).in_commit_timestamp == FUTURE + 1


def test_a_missing_in_commit_timestamp_is_an_error_before_anything_is_written(
    tmp_path: Path, stamped: list[dict[str, Any]]
) -> None:
    logs.commit(tmp_path, 0, *stamped)
    with pytest.raises(sb.FormatError, match="its version 0 has none"):
        open_table(str(tmp_path))


Create = Callable[..., None]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Create], None]:
    """Let the one write of a commit end otherwise."""

    def install(create: Create) -> None:
        monkeypatch.setattr(commit_files, "create_file", create)

    return install


def test_a_commit_whose_answer_was_lost_counts_as_done(
    folder: str, failing: Callable[[Create], None]
) -> None:
    for error in (PolicyError("the store cannot be reached"), FileChangedError("it is there")):

        def create(path: str, content: bytes, *, like: str, error: Exception = error) -> None:
            Path(path).write_bytes(content)
            raise error

        failing(create)
        replacements = both(folder)
        version = open_table(folder).version
        assert commit(open_table(folder), replacements, OPERATION).version == version + 1


def test_a_commit_that_was_not_written_is_an_error(
    folder: str, failing: Callable[[Create], None]
) -> None:
    def create(path: str, content: bytes, *, like: str) -> None:
        raise PolicyError("the disk is full")

    failing(create)
    with pytest.raises(PolicyError, match="full"):
        commit(open_table(folder), both(folder), OPERATION)


def test_where_nobody_can_tell_the_error_says_so(
    folder: str, failing: Callable[[Create], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise PolicyError("the store cannot be reached")

    table, replacements = open_table(folder), both(folder)
    failing(broken)
    monkeypatch.setattr(commit_files, "open_input", broken)
    with pytest.raises(UnfinishedWriteError, match="it is unknown whether"):
        commit(table, replacements, OPERATION)


def test_a_writer_that_is_always_first_is_an_error_in_the_end(
    folder: str, failing: Callable[[Create], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_module, "_LONGEST_PAUSE", 0)
    monkeypatch.setattr(commit_module, "_FIRST_PAUSE", 0)

    def create(path: str, content: bytes, *, like: str) -> None:
        raise FileChangedError("it is there")

    failing(create)
    with pytest.raises(FileChangedError, match="other writers were first"):
        commit(open_table(folder), both(folder), OPERATION)


def test_no_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(sb.MissingPathError):
        open_table(str(tmp_path))


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
