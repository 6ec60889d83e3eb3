"""Schemas that other tools leave in a footer."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from testing.surgery import Opened, edit_footer
from testing.tables import Mode, customers, write
from testing.thrift.metadata import KeyValue
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    SIGNED,
    Example,
    chunk_of,
    rules,
    set_texts,
    sound,
)


class TestSchemas:
    def audit(self, folder: Path, name: str, schema: object) -> list[str | None]:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        path = sound(folder, Mode.SIGNED, store_schema=False)
        set_texts(path, {name: text})
        report = Example(path=path, policy=SIGNED).audit()
        assert set(ids(report)) <= {"schema-in-clear"}
        return [finding.column for finding in report.findings]

    def test_sparks_comments_are_found(self, tmp_path: Path) -> None:
        fields = [
            {"name": "email", "type": "string", "metadata": {"comment": "of customers"}},
            {"name": "iban", "type": "string", "metadata": {}},
            {"name": "city", "type": "string", "metadata": {"comment": "not sensitive"}},
        ]
        schema = {"type": "struct", "fields": fields}
        name = "org.apache.spark.sql.parquet.row.metadata"
        assert self.audit(tmp_path, name, schema) == ["email"]

    def test_members_of_sparks_lists_and_maps_are_found_too(self, tmp_path: Path) -> None:
        told = {"name": "zip", "type": "string", "metadata": {"comment": "of the customers"}}
        struct = {"type": "struct", "fields": [told]}
        types = {
            "homes": {"type": "array", "elementType": struct},
            "offices": {"type": "map", "keyType": "string", "valueType": struct},
        }
        fields = [{"name": name, "type": kind, "metadata": {}} for name, kind in types.items()]
        rows = [{"zip": "1"}] * 3
        table = pa.table(
            {
                "homes": [rows] * 30,
                "offices": pa.array(
                    [[("a", rows[0])]] * 30,
                    pa.map_(pa.string(), pa.struct([pa.field("zip", pa.string())])),
                ),
            }
        )
        leaves = ["homes.list.element.zip", "offices.key_value.value.zip"]
        path = write(
            tmp_path / "x.parquet",
            table,
            Mode.SIGNED,
            column_keys={"k_pii": [*leaves, "offices.key_value.key"]},
            store_schema=False,
        )
        name = "org.apache.spark.sql.parquet.row.metadata"
        set_texts(path, {name: json.dumps({"type": "struct", "fields": fields})})
        policy = replace(SIGNED, columns=rules(homes="k_pii", offices="k_pii"))
        report = Example(path=path, policy=policy).audit(ignore="encoding-data-in-clear")
        assert [(f.id, f.column) for f in report.findings] == [
            ("schema-in-clear", leaf) for leaf in leaves
        ]

    def test_attributes_of_a_pandas_table_are_found(self, tmp_path: Path) -> None:
        schema = {"columns": [], "attributes": {"made of": "customers of Acme"}}
        assert self.audit(tmp_path, "pandas", schema) == [None]

    def test_a_columns_own_texts_are_found(self, tmp_path: Path) -> None:
        path = sound(tmp_path, Mode.SIGNED)

        def change(it: Opened) -> None:
            shown = chunk_of(it, "email").meta_data
            assert shown is not None
            shown.key_value_metadata = [KeyValue.of(key="note", value="user1@example.com")]

        edit_footer(path, change)
        (finding,) = Example(path=path, policy=SIGNED).audit().findings
        assert (finding.id, finding.column) == ("schema-in-clear", "email")
        assert "user1" not in finding.message

    def test_pandas_categories_are_found(self, tmp_path: Path) -> None:
        columns = [
            {"name": "email", "metadata": {"num_categories": 5, "ordered": False}},
            {"name": "iban", "metadata": {"encoding": "UTF-8"}},
            {"name": "city", "metadata": None},
        ]
        assert self.audit(tmp_path, "pandas", {"columns": columns}) == ["email"]

    def test_arrows_field_ids_are_harmless(self, tmp_path: Path) -> None:
        fields = [pa.field("email", pa.string(), metadata={"PARQUET:field_id": "1"})]
        fields += [pa.field("iban", pa.string(), metadata={"note": "secret"})]
        text = base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode()
        assert self.audit(tmp_path, "ARROW:schema", text) == ["iban"]

    def test_an_encrypted_footer_hides_them(self, tmp_path: Path) -> None:
        email = pa.field("email", pa.string(), metadata={"note": "secret"})
        table = customers(30)
        table = table.cast(table.schema.set(0, email))
        assert ids(Example(path=sound(tmp_path, table=table)).audit()) == []
