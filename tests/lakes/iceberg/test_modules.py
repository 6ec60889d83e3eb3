"""Small rules of commits: conditions as file filters, names of new files, what still holds."""

from __future__ import annotations

import fastavro
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, Or
from pyiceberg.manifest import ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.lakes.iceberg.commit import still_standing
from secure_bloom.lakes.iceberg.commit_table import open_table
from secure_bloom.lakes.iceberg.live_files import Manifests, group_by_spec, row_filter
from secure_bloom.lakes.iceberg.manifest_writers import manifest_writer
from secure_bloom.lakes.iceberg.position_deletes import DeleteCarrier
from secure_bloom.lakes.iceberg.replacing_snapshot import (
    Changes,
    NewDataFile,
    Rewrite,
    metrics,
    schema_of,
)
from secure_bloom.lakes.iceberg.snapshot_run import refuse_shown_values
from tests.lakes.iceberg.tables import (
    NAME,
    SCHEMA,
    data_files,
    delete_by_vector,
    delete_positions,
    entries,
    local,
    people,
)


def test_conditions_become_filters_of_files() -> None:
    found = row_filter("id = 1 and (city = 'a' or not id < 5)", SCHEMA)
    assert isinstance(found, And)
    assert found.left == EqualTo("id", 1)
    assert isinstance(found.right, Or)


def test_a_file_outside_the_table_is_an_error(catalog: SqlCatalog) -> None:
    people(catalog, files=1)
    table = open_table(NAME)
    with pytest.raises(FormatError, match="outside the table"):
        table.location("file:///etc/passwd.parquet")


def test_a_replacement_stands_while_its_file_is_live(catalog: SqlCatalog) -> None:
    old = people(catalog, files=2)
    table = open_table(NAME)
    manifests, base = Manifests(table.io), table.head
    wanted = tuple(NewDataFile(old=it, new="n", opened="n", size=1) for it in entries(old))
    changes = Changes(rewrite=Rewrite.of("add"), replacements=wanted)
    assert still_standing(table, manifests, base, changes) == changes
    assert metrics(changes)["added-records"] == "200"
    assert list(group_by_spec(entries(old))) == [0]
    assert schema_of(old.spec(), table) == old.schema()
    old.delete("id < 100")
    table.refresh()
    assert len(still_standing(table, manifests, base, changes).replacements) == 1


def test_a_delete_file_of_a_new_data_file_has_its_positions(catalog: SqlCatalog) -> None:
    table = people(catalog, files=1)
    delete_positions(table, data_files(table)[0], [4, 3], "pos")
    opened = open_table(NAME)
    manifests = Manifests(opened.io)
    (data,) = manifests.live(opened.head).values()
    (deletes,) = manifests.deletes(opened.head)
    carrier = DeleteCarrier(opened, {data.data_file.file_path: (deletes,)})
    new = f"{table.location()}/data/new.parquet"
    found = carrier.write(data, new)
    assert found is not None
    assert found.sequence_number == deletes.sequence_number
    written = pq.read_table(local(f"{table.location()}/data/new.deletes.parquet"))
    assert written.to_pylist() == [{"file_path": new, "pos": 3}, {"file_path": new, "pos": 4}]
    assert DeleteCarrier(opened, {}).write(data, new) is None


def test_a_manifest_of_delete_files_says_so_and_carries_all_fields(catalog: SqlCatalog) -> None:
    table = people(catalog, files=1)
    delete_by_vector(table, data_files(table)[0], [3], "dv")
    manifests = Manifests(open_table(NAME).io)
    (entry,) = manifests.deletes(table.current_snapshot())
    output = table.io.new_output(f"{table.location()}/metadata/m.avro")
    given = (table.spec(), table.schema(), output, 1, "gzip")
    with manifest_writer(ManifestContent.DELETES, 2, *given) as writer:
        writer.existing(entry)
    written = writer.to_manifest_file()
    assert written.content == ManifestContent.DELETES
    with local(written.manifest_path).open("rb") as stream:
        reader = fastavro.reader(stream)
        assert reader.metadata["content"] == "deletes"
        (record,) = reader
        (file,) = (it["type"] for it in reader.writer_schema["fields"] if it["name"] == "data_file")
    assert record["data_file"]["referenced_data_file"] == data_files(table)[0]
    assert record["data_file"]["content_offset"] == 4
    # Java cannot read ids of LONG, as pyiceberg writes them.
    types = {it["name"]: it["type"] for it in file["fields"]}
    assert types["equality_ids"][1]["items"] == "int"


def test_a_table_whose_metadata_show_no_secret_value_is_not_refused(catalog: SqlCatalog) -> None:
    people(catalog, files=1, spec=PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "c")))
    table = open_table(NAME)
    refuse_shown_values(table, Manifests(table.io), frozenset({1, 2}))
    with pytest.raises(UnsupportedFeatureError, match="partitioned by city"):
        refuse_shown_values(table, Manifests(table.io), frozenset({3}))
