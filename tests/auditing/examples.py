"""For each id of a finding a dataset that triggers it and nothing else; the texts are the docs'."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.memory import InMemoryCatalog
from thrift.protocol.TProtocol import TType

import secure_bloom as sb
from secure_bloom.auditing.findings import AuditReport
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import AcceptedFinding, ColumnRule, EncryptionOptions
from secure_bloom.errors import KeyUnavailableError
from secure_bloom.paimon.container import ColumnIndexes, FileIndex, Index
from secure_bloom.parquet.structures import metadata as declared
from testing.delta_logs import add, column, commit, metadata, protocol
from testing.live_footer import set_bloom_filter
from testing.surgery import Opened, edit_column, edit_footer, filter_place, flip, opened
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, keyring_json, write
from testing.thrift.metadata import ColumnIndex, ColumnMetaData, KeyValue, Statistics
from tests.lying.editing import Place, edit
from tests.lying.lies import LIES

ROWS = 60


def rules(**columns: ColumnRule | str | None) -> dict[str, ColumnRule]:
    """Column -> its rule, or only its key."""
    return {
        name: rule if isinstance(rule, ColumnRule) else ColumnRule(path=name, key=rule)
        for name, rule in columns.items()
    }


def bloom(path: str, key: str | None = None, **options: Any) -> ColumnRule:
    return ColumnRule(path=path, key=key, bloom=sb.BloomFilterOptions(**options))


#: What the files of most examples obey but for one thing.
POLICY = KeyPolicy(footer_key="k_footer", columns=rules(email="k_pii", iban="k_finance"))
SIGNED = replace(POLICY, footer_mode=FooterMode.SIGNED)


def with_rules(policy: KeyPolicy = POLICY, **columns: ColumnRule | str | None) -> KeyPolicy:
    return replace(policy, columns={**policy.columns, **rules(**columns)})


@dataclass(slots=True, kw_only=True)
class Example:
    """What to audit, and how; ``options`` are the other arguments of ``sb.audit``."""

    path: Path
    policy: KeyPolicy | Path = POLICY
    options: dict[str, Any] = field(default_factory=dict)

    def audit(self, **options: Any) -> AuditReport:
        """Its report."""
        arguments: dict[str, Any] = {"keys": KEYRING, **self.options, **options}
        return sb.audit(self.path, policy=self.policy, **arguments)


Builder = Callable[[Path], Example]
EXAMPLES: dict[str, Builder] = {}


def example(name: str) -> Callable[[Builder], Builder]:
    """Make the function the builder of the example of an id; its docstring goes into the docs."""

    def register(builder: Builder) -> Builder:
        EXAMPLES[name] = builder
        return builder

    return register


def sound(folder: Path, mode: Mode = Mode.ENCRYPTED, **options: Any) -> Path:
    """A file that obeys POLICY, or SIGNED; what pyarrow shows of columns in the latter is cut."""
    path = write(folder / "x.parquet", options.pop("table", customers(ROWS)), mode, **options)
    if mode is Mode.SIGNED:
        edit_footer(path, _cut_copies)
    return path


def _cut_copies(it: Opened) -> None:
    for chunks in it.footer.column_chunks:
        for chunk in chunks:
            if chunk.crypto_metadata is not None and chunk.meta_data is not None:
                del chunk.meta_data.size_statistics


def filtered(folder: Path, *columns: str, mode: Mode = Mode.ENCRYPTED) -> Path:
    """A sound file with filters."""
    path = sound(folder, mode)
    assert not sb.add_bloom_filters(path, columns=columns, keys=KEYRING).failed
    return path


def put_filter(path: Path, column: str, stored: bytes) -> None:
    """Give the column's only chunk these bytes for a filter."""

    def change(it: Opened) -> bytes:
        set_bloom_filter(it.chunk(0, column), it.footer.tail.offset, len(stored))
        return stored

    edit_footer(path, change)


def some_filter(*values: bytes, blocks: int = 4) -> bytes:
    """A filter in clear of these values."""
    made = SplitBlockBloomFilter(blocks)
    for value in values:
        made.insert(value)
    return encode_bloom_filter(made, None)


def chunk_of(it: Opened, column: str) -> declared.ColumnChunk:
    return it.chunk(0, column).column_chunk


def set_texts(path: Path, texts: Mapping[str, str]) -> None:
    """Give the footer this key-value metadata."""
    pairs = [KeyValue.of(key=key, value=value) for key, value in texts.items()]
    edit_footer(path, lambda it: setattr(it.footer.metadata, "key_value_metadata", pairs))


def set_key_metadata(path: Path, column: str, change: Callable[[bytes], bytes | None]) -> None:
    """Change what the file says of a column's key."""

    def edit(it: Opened) -> None:
        crypto = chunk_of(it, column).crypto_metadata
        own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
        assert own is not None
        assert own.key_metadata is not None
        new = change(own.key_metadata)
        del own.key_metadata
        if new is not None:
            own.key_metadata = new

    edit_footer(path, edit)


def data_keys(path: Path) -> tuple[bytes, dict[str, bytes]]:
    """The keys themselves, of the footer and of columns."""
    with opened(path) as it:
        assert it.footer.key is not None
        columns = {}
        for name in ("email", "iban"):
            column_cipher = it.chunk(0, name).cipher
            assert column_cipher is not None
            columns[name] = column_cipher.key.key
        return it.footer.key.key, columns


# The policy.


@example("policy-unknown-word")
def policy_unknown_word(folder: Path) -> Example:
    """`blom = true` in `[columns.email]`."""
    policy = folder / "policy.toml"
    policy.write_text('[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\nblom = true\n')
    return Example(path=sound(folder), policy=policy)


@example("policy-invalid")
def policy_invalid(folder: Path) -> Example:
    """`bloom = { fpp = 2.0 }`."""
    policy = folder / "policy.toml"
    policy.write_text('[footer]\nkey = "k_footer"\n[columns.email]\nbloom = { fpp = 2.0 }\n')
    return Example(path=sound(folder), policy=policy)


def _addresses(folder: Path, *, zip_key: str = "k_pii") -> Path:
    rows = [{"zip": f"{i:05}", "city": "rome"} for i in range(ROWS)]
    keys: dict[str, list[str]] = {"k_pii": ["address.city"]}
    keys.setdefault(zip_key, []).append("address.zip")
    return write(
        folder / "x.parquet", pa.table({"address": rows}), Mode.ENCRYPTED, column_keys=keys
    )


def _address_policy(inner: ColumnRule) -> KeyPolicy:
    columns = {"address": ColumnRule(path="address", key="k_pii"), "address.zip": inner}
    return replace(POLICY, columns=columns)


@example("policy-two-keys")
def policy_two_keys(folder: Path) -> Example:
    """`address` under `k_pii`, `address.zip` under `k_finance`."""
    policy = _address_policy(ColumnRule(path="address.zip", key="k_finance"))
    return Example(path=_addresses(folder, zip_key="k_finance"), policy=policy)


@example("policy-filter-without-key")
def policy_filter_without_key(folder: Path) -> Example:
    """`address` under `k_pii`, and `[columns."address.zip"]` with `bloom = true` and no key."""
    path = _addresses(folder)
    assert not sb.add_bloom_filters(path, columns=["address.zip"], keys=KEYRING).failed
    return Example(path=path, policy=_address_policy(bloom("address.zip")))


@example("policy-parent-named")
def policy_parent_named(folder: Path) -> Example:
    """`address` under `k_pii`, and an empty table `[columns."address.zip"]`."""
    return Example(path=_addresses(folder), policy=_address_policy(ColumnRule(path="address.zip")))


@example("policy-key-unknown")
def policy_key_unknown(folder: Path) -> Example:
    """`email` under `k_gone`, which the keyring does not have."""
    path = sound(folder)

    # A file without rows breaks no rule itself.
    def empty(it: Opened) -> None:
        it.footer.metadata.row_groups, it.footer.metadata.num_rows = [], 0

    edit_footer(path, empty)
    with opened(path) as it:
        content = it.file.all_bytes()
        path.write_bytes(content[:4] + content[it.footer.tail.offset :])
    return Example(path=path, policy=with_rules(email="k_gone"))


class LockedKms:
    """A KMS that unwraps, and does not wrap under one of its master keys."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        if master_key_identifier == "k_pii":
            raise KeyUnavailableError("the master key is locked")
        return KEYRING.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return KEYRING.unwrap_key(wrapped_key, master_key_identifier)


@example("policy-key-unusable")
def policy_key_unusable(folder: Path) -> Example:
    """A KMS in which `k_pii` is locked for writers."""
    return Example(path=sound(folder), options={"keys": LockedKms()})


@example("policy-column-unknown")
def policy_column_unknown(folder: Path) -> Example:
    """A rule for `emial`, the files have `email`."""
    return Example(path=sound(folder), policy=with_rules(emial=bloom("emial")))


def _of_several(pattern: str) -> KeyPolicy:
    """A policy that has the rules of most examples for the tables of one pattern."""
    one = replace(POLICY, table=pattern)
    return KeyPolicy(footer_key=POLICY.footer_key, tables={pattern: one})


@example("policy-table-unknown")
def policy_table_unknown(folder: Path) -> Example:
    """`[tables."ordrs/*"]` for the files of `orders`."""
    return Example(path=sound(folder), policy=_of_several("ordrs/*"))


@example("policy-table-misspelt")
def policy_table_misspelt(folder: Path) -> Example:
    """`[tables."ordrs/*"]` for the files of `orders`, beside `[tables."*"]`."""
    inside = folder / "orders"
    inside.mkdir()
    policy = _of_several("*")
    tables = {**policy.tables, **_of_several("ordrs/*").tables}
    sound(inside)
    return Example(path=folder, policy=replace(policy, tables=tables))


@example("policy-table-unused")
def policy_table_unused(folder: Path) -> Example:
    """`[tables."customers/*"]` in an audit of a lake that has only `orders`."""
    inside = folder / "orders"
    inside.mkdir()
    policy = _of_several("orders/*")
    tables = {**policy.tables, **_of_several("customers/*").tables}
    sound(inside)
    return Example(path=folder, policy=replace(policy, tables=tables))


# Spark properties.


def _session(folder: Path, **changes: str | None) -> Example:
    """A sound file, and the policy's own properties but for ``changes``."""
    properties = {**POLICY.spark_properties()}
    for word, value in changes.items():
        name = f"parquet.encryption.{word.replace('_', '.')}"
        properties.pop(name, None)
        if value is not None:
            properties[name] = value
    return Example(path=sound(folder), options={"spark_properties": properties})


@example("policy-ignore-expired")
def policy_ignore_expired(folder: Path) -> Example:
    """An entry of `[[audit.ignore]]` whose last day was in 2020."""
    entry = AcceptedFinding(
        finding="filter-missing", reason="soon", until=datetime.date(2020, 1, 31)
    )
    return Example(path=sound(folder), policy=replace(POLICY, accepted=(entry,)))


@example("policy-column-unclassified")
def policy_column_unclassified(folder: Path) -> Example:
    """A column `tax_id` came last week and no rule names it; found with `--strict`."""
    table = customers(ROWS).append_column("tax_id", pa.array(range(ROWS)))
    policy = replace(POLICY, clear=tuple(customers(1).column_names))
    return Example(path=sound(folder, table=table), policy=policy, options={"strict": True})


@example("policy-column-looks-sensitive")
def policy_column_looks_sensitive(folder: Path) -> Example:
    """A column `phone` in clear that no rule names."""
    table = customers(ROWS).append_column("phone", pa.array(["1"] * ROWS))
    return Example(path=sound(folder, table=table))


@example("spark-no-encryption")
def spark_no_encryption(folder: Path) -> Example:
    """No `parquet.crypto.factory.class`."""
    found = _session(folder)
    del found.options["spark_properties"]["parquet.crypto.factory.class"]
    return found


@example("spark-column-unprotected")
def spark_column_unprotected(folder: Path) -> Example:
    """`parquet.encryption.column.keys = k_finance:iban`."""
    return _session(folder, column_keys="k_finance:iban")


@example("spark-column-wrong-key")
def spark_column_wrong_key(folder: Path) -> Example:
    """`parquet.encryption.column.keys = k_finance:iban,email`."""
    return _session(folder, column_keys="k_finance:iban,email")


@example("spark-two-keys")
def spark_two_keys(folder: Path) -> Example:
    """`parquet.encryption.column.keys = k_finance:iban,email;k_pii:email`."""
    return _session(folder, column_keys="k_finance:iban,email;k_pii:email")


@example("spark-column-unknown")
def spark_column_unknown(folder: Path) -> Example:
    """`parquet.bloom.filter.enabled#emial = true`."""
    found = _session(folder)
    found.options["spark_properties"]["parquet.bloom.filter.enabled#emial"] = "true"
    return found


@example("spark-not-a-leaf")
def spark_not_a_leaf(folder: Path) -> Example:
    """`parquet.encryption.column.keys = k_pii:email,address` for a table with `address.zip`."""
    found = _session(folder, column_keys="k_pii:email,address;k_finance:iban")
    rows = customers(ROWS).append_column("address", pa.array([{"zip": "1"}] * ROWS))
    write(found.path, rows, Mode.ENCRYPTED)
    return found


@example("spark-footer-key")
def spark_footer_key(folder: Path) -> Example:
    """`parquet.encryption.footer.key = k_pii`."""
    return _session(folder, footer_key="k_pii")


@example("spark-footer-mode")
def spark_footer_mode(folder: Path) -> Example:
    """`parquet.encryption.plaintext.footer = true`."""
    return _session(folder, plaintext_footer="true")


@example("spark-weaker")
def spark_weaker(folder: Path) -> Example:
    """`parquet.encryption.algorithm = AES_GCM_CTR_V1`."""
    return _session(folder, algorithm="AES_GCM_CTR_V1")


@example("spark-unknown-word")
def spark_unknown_word(folder: Path) -> Example:
    """`parquet.encryption.data.key.lenght.bits = 256`."""
    return _session(folder, data_key_lenght_bits="256")


@example("spark-invalid")
def spark_invalid(folder: Path) -> Example:
    """`parquet.encryption.column.keys = k_pii:email;k_finance:iban;k_pii`."""
    return _session(folder, column_keys="k_pii:email;k_finance:iban;k_pii")


# Keys.


@example("spark-kms-address")
def spark_kms_address(folder: Path) -> Example:
    """`parquet.encryption.kms.client.class = com.example.OurKms`, without `kms.instance.url`."""
    return _session(folder, kms_client_class="com.example.OurKms")


@example("keys-in-lake")
def keys_in_lake(folder: Path) -> Example:
    """`dev-keyring.json` beside the data."""
    sound(folder)
    (folder / "dev-keyring.json").write_text(keyring_json())
    return Example(path=folder)


@example("column-in-clear")
def column_in_clear(folder: Path) -> Example:
    """pyarrow was told to encrypt `iban` alone, and wrote `email` in clear."""
    return Example(path=sound(folder, column_keys={"k_finance": ["iban"]}))


@example("table-key-ignored")
def table_key_ignored(folder: Path) -> Example:
    """`encryption.key-id = k1` in an Iceberg table that pyiceberg wrote, in clear."""
    catalog = InMemoryCatalog("examples", warehouse=str(folder))
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", pa.schema({"id": pa.int64()}), properties={"encryption.key-id": "k1"}
    )
    table.append(pa.table({"id": [1, 2, 3]}))
    return Example(path=Path(table.metadata_location), policy=KeyPolicy(columns={}))


@example("column-alike-in-clear")
def column_alike(folder: Path) -> Example:
    """`email` in most files, `Email` in one, where pyarrow encrypted `iban` alone."""
    sound(folder)
    table = customers(ROWS)
    table = table.rename_columns(["Email", *table.column_names[1:]])
    write(folder / "y.parquet", table, Mode.ENCRYPTED, column_keys={"k_finance": ["iban"]})
    return Example(path=folder)


@example("column-derived-in-clear")
def column_derived(folder: Path) -> Example:
    """The log of a Delta table computes `start` by `substring(email, 1, 3)`."""
    path = sound(folder)
    computed = column("start", "string", **{"delta.generationExpression": "substring(email, 1, 3)"})
    names = (column("email", "string"), column("iban", "string"), computed)
    commit(folder, 0, protocol(), metadata(*names))
    commit(folder, 1, add(path.name, path.stat().st_size))
    return Example(path=folder)


@example("column-wrong-key")
def column_wrong_key(folder: Path) -> Example:
    """pyarrow was given `k_finance` for `email`."""
    return Example(path=sound(folder, column_keys={"k_finance": ["iban", "email"]}))


@example("column-under-footer-key")
def column_under_footer_key(folder: Path) -> Example:
    """pyarrow in uniform mode: all columns under the footer key."""
    return Example(path=sound(folder, Mode.UNIFORM))


@example("footer-not-encrypted")
def footer_not_encrypted(folder: Path) -> Example:
    """pyarrow with `plaintext_footer`, the policy says encrypted."""
    return Example(path=sound(folder, Mode.SIGNED))


@example("footer-not-signed")
def footer_not_signed(folder: Path) -> Example:
    """A plain file; the policy says signed, and has no sensitive column."""
    return Example(path=sound(folder, Mode.PLAIN), policy=replace(SIGNED, columns={}))


@example("footer-wrong-key")
def footer_wrong_key(folder: Path) -> Example:
    """pyarrow was given `k_finance` for the footer."""
    return Example(path=sound(folder, encryption={"footer_key": "k_finance"}))


@example("key-retired")
def key_retired(folder: Path) -> Example:
    """A column under `k_finance`; the policy says `[keys.k_finance] retired = true`."""
    policy = replace(POLICY, columns=rules(email="k_pii"), retired_keys=frozenset({"k_finance"}))
    return Example(path=sound(folder), policy=policy)


@example("key-not-in-policy")
def key_not_in_policy(folder: Path) -> Example:
    """A column under `k_finance`; the policy has no rule for it and does not name the key."""
    policy = replace(POLICY, columns=rules(email="k_pii"))
    return Example(path=sound(folder), policy=policy)


@example("weaker-algorithm")
def weaker_algorithm(folder: Path) -> Example:
    """pyarrow with `AES_GCM_CTR_V1`."""
    return Example(path=sound(folder, encryption={"encryption_algorithm": "AES_GCM_CTR_V1"}))


@example("key-too-short")
def key_too_short(folder: Path) -> Example:
    """Keys of 128 bits; the policy says `data_key_bits = 256`."""
    policy = replace(POLICY, encryption=EncryptionOptions(data_key_bits=256))
    return Example(path=sound(folder), policy=policy)


def _damaged(key_metadata: bytes) -> bytes:
    fields = json.loads(key_metadata)
    del fields["wrappedKEK"]
    return json.dumps(fields).encode()


@example("key-material-damaged")
def key_material_damaged(folder: Path) -> Example:
    """The key material of `email` lost its field `wrappedKEK`."""
    path = sound(folder)
    set_key_metadata(path, "email", _damaged)
    return Example(path=path)


@example("key-material-missing")
def key_material_missing(folder: Path) -> Example:
    """The key of `email` is stored outside, in a file that did not follow."""
    path = sound(folder)
    reference = {"keyMaterialType": "PKMT1", "internalStorage": False, "keyReference": "columnKey0"}
    set_key_metadata(path, "email", lambda _: json.dumps(reference).encode())
    return Example(path=path)


@example("key-material-unusable")
def key_material_unusable(folder: Path) -> Example:
    """A keyring in which `k_pii` is another key than the file was written with."""
    keyring = sb.Keyring(master_keys={**MASTER_KEYS, "k_pii": b"another-16b-key."})
    return Example(path=sound(folder), options={"keys": keyring})


@example("key-material-orphaned")
def key_material_orphaned(folder: Path) -> Example:
    """`_KEY_MATERIAL_FOR_gone.parquet.json`, and no `gone.parquet`."""
    (folder / "_KEY_MATERIAL_FOR_gone.parquet.json").write_text("{}")
    return Example(path=sound(folder))


@example("not-authentic")
def not_authentic(folder: Path) -> Example:
    """One bit of an encrypted footer is turned."""
    path = sound(folder)
    flip(path, path.stat().st_size - 20)
    return Example(path=path)


@example("mixed-rules")
def mixed_rules(folder: Path) -> Example:
    """Three files, of which one has `city` encrypted too; the policy has no rule for it."""
    for part in "ab":
        write(folder / f"{part}.parquet", customers(ROWS), Mode.ENCRYPTED)
    sound(folder, column_keys={"k_pii": ["email", "city"], "k_finance": ["iban"]})
    return Example(path=folder)


# What cannot be true.


def lying(folder: Path, change: Callable[[Place], object], column: str = "city") -> Example:
    """A sound file of which the column's chunk says something else."""
    options = {"write_page_index": True, "write_batch_size": 20, "data_page_size": 1}
    path = sound(folder, **options)
    assert edit(path, path, 0, column, change)
    return Example(path=path)


@example("impossible-counts")
def impossible_counts(folder: Path) -> Example:
    """The footer counts one row more than its row groups have."""
    return lying(folder, lambda place: setattr(place.file, "num_rows", ROWS + 1))


@example("impossible-sizes")
def impossible_sizes(folder: Path) -> Example:
    """`city` is said to have less than no bytes once decompressed."""
    return lying(folder, lambda place: setattr(place.meta_data, "total_uncompressed_size", -1))


@example("impossible-statistics")
def impossible_statistics(folder: Path) -> Example:
    """The smallest value of `city` is above its largest."""
    return lying(folder, LIES["Statistics: min above max"].change)


@example("impossible-encodings")
def impossible_encodings(folder: Path) -> Example:
    """`encoding_stats` count pages of an encoding that none has; found with `--check-values`."""
    path = sound(folder)
    assert edit(path, path, 0, "city", LIES["encoding_stats: all of another number"].change)
    return Example(path=path, options={"check_values": True})


@example("impossible-page-index")
def impossible_page_index(folder: Path) -> Example:
    """The column index of `city` says that all pages are null."""
    return lying(folder, LIES["ColumnIndex.null_pages: all"].change)


@example("impossible-pages")
def impossible_pages(folder: Path) -> Example:
    """A dictionary page that has one entry more than its header says; with `--check-values`."""
    # Of a sensitive column: the pages that stay behind are sealed.
    lie = LIES["DictionaryPageHeader.num_values: one less"].change
    example = lying(folder, lie, "email")
    example.options = {"check_values": True}
    return example


@example("checksum-stale")
def checksum_stale(folder: Path) -> Example:
    """`.x.parquet.crc` as Hadoop wrote it for an earlier `x.parquet`."""
    path = sound(folder)
    (folder / ".x.parquet.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + bytes(4))
    return Example(path=path)


# Bloom filters.


@example("filter-missing")
def filter_missing(folder: Path) -> Example:
    """The policy says `bloom = true` for `city`, pyarrow wrote none."""
    return Example(path=sound(folder), policy=with_rules(city=bloom("city")))


@example("filter-impossible")
def filter_impossible(folder: Path) -> Example:
    """`bloom = true` for a BOOLEAN column."""
    table = customers(ROWS).append_column("active", pa.array([True] * ROWS))
    return Example(path=sound(folder, table=table), policy=with_rules(active=bloom("active")))


@example("filter-in-clear")
def filter_in_clear(folder: Path) -> Example:
    """`email` is encrypted, its filter is in clear, as the Rust crate writes them."""
    path = sound(folder)
    put_filter(path, "email", some_filter(b"user1@example.com"))
    return Example(path=path)


@example("filter-stray-in-clear")
def filter_stray(folder: Path) -> Example:
    """A filter in clear before the footer, to which nothing refers."""
    path = sound(folder)
    edit_footer(path, lambda _: some_filter(b"user1@example.com"))
    return Example(path=path)


@example("filter-not-authentic")
def filter_not_authentic(folder: Path) -> Example:
    """One bit of the filter of `email` is turned."""
    path = filtered(folder, "email")
    flip(path, filter_place(path, 0, "email").stop - 1)
    return Example(path=path)


@example("filter-damaged")
def filter_damaged(folder: Path) -> Example:
    """The filter of `city` is cut short."""
    path = sound(folder)
    put_filter(path, "city", some_filter(b"rome")[:-1])
    return Example(path=path)


def _forget_length(meta_data: ColumnMetaData) -> None:
    del meta_data.bloom_filter_length


@example("filter-length-absent")
def filter_length_absent(folder: Path) -> Example:
    """The filter of `email` without `bloom_filter_length`, as files before format 2.10 have it."""
    path = filtered(folder, "email")
    edit_column(path, 0, "email", _forget_length)
    return Example(path=path)


@example("filter-saturated")
def filter_saturated(folder: Path) -> Example:
    """A filter of `city` in which all bits are set."""
    path = sound(folder)
    full = encode_bloom_filter(SplitBlockBloomFilter.from_bytes(b"\xff" * 32), None)
    put_filter(path, "city", full)
    return Example(path=path)


@example("filter-crowded")
def filter_crowded(folder: Path) -> Example:
    """The e-mails inserted into the filter of `city`."""
    path = sound(folder)
    made = SplitBlockBloomFilter(64)
    for value in [*customers(ROWS)["city"].to_pylist(), *customers(ROWS)["email"].to_pylist()]:
        made.insert(str(value).encode())
    put_filter(path, "city", encode_bloom_filter(made, None))
    return Example(path=path)


@example("filter-wrong")
def filter_wrong(folder: Path) -> Example:
    """A filter of `city` in which no bit is set; found with `--check-values`."""
    path = sound(folder)
    put_filter(path, "city", some_filter())
    return Example(path=path, options={"check_values": True})


@example("filter-one-zero")
def filter_one_zero(folder: Path) -> Example:
    """A column of doubles from 0.0 up, with the filter that pyarrow writes of it."""
    table = customers(ROWS).append_column("rate", pa.array([float(i) for i in range(ROWS)]))
    plain = {"use_dictionary": False, "bloom_filter_options": {"rate": {"ndv": ROWS}}}
    path = write(folder / "x.parquet", table, **plain)
    return Example(path=path, policy=KeyPolicy(columns=rules(rate=None)))


# Leaks beside the filter.


@example("statistics-in-clear")
def statistics_in_clear(folder: Path) -> Example:
    """A signed footer whose open copy of the metadata of `email` has its statistics."""
    path = sound(folder, Mode.SIGNED)

    def change(it: Opened) -> None:
        chunk = it.chunk(0, "email")
        assert chunk.column_chunk.meta_data is not None
        assert chunk.meta_data.statistics is not None
        chunk.column_chunk.meta_data.statistics = chunk.meta_data.statistics

    edit_footer(path, change)
    return Example(path=path, policy=SIGNED)


@example("encoding-data-in-clear")
def encoding_data_in_clear(folder: Path) -> Example:
    """A signed footer whose open copy of the metadata of `email` has its encoding statistics."""
    path = sound(folder, Mode.SIGNED)

    def change(it: Opened) -> None:
        chunk = it.chunk(0, "email")
        assert chunk.column_chunk.meta_data is not None
        assert chunk.meta_data.encoding_stats is not None
        chunk.column_chunk.meta_data.encoding_stats = chunk.meta_data.encoding_stats

    edit_footer(path, change)
    return Example(path=path, policy=SIGNED)


@example("sizes-in-clear")
def sizes_in_clear(folder: Path) -> Example:
    """A signed footer as pyarrow 26 writes it: size statistics of `email` and `iban` are open."""
    path = write(folder / "x.parquet", customers(ROWS), Mode.SIGNED)
    return Example(path=path, policy=SIGNED)


@example("page-index-in-clear")
def page_index_in_clear(folder: Path) -> Example:
    """`email` is encrypted, its column index is not."""
    path = sound(folder)
    put_index(path, [b"user0"], [b"user9"])
    return Example(path=path)


def put_index(path: Path, min_values: list[bytes], max_values: list[bytes]) -> None:
    """Give `email` a column index in clear with these bounds of pages."""
    pages = [False] * len(min_values)
    index = ColumnIndex.of(null_pages=pages, min_values=min_values, max_values=max_values)

    def change(it: Opened) -> bytes:
        chunk = chunk_of(it, "email")
        chunk.column_index_offset = it.footer.tail.offset
        chunk.column_index_length = len(index.encode())
        return index.encode()

    edit_footer(path, change)


@example("pages-stray-in-clear")
def pages_stray(folder: Path) -> Example:
    """Pages of a file in clear before the footer, to which nothing refers."""
    path = sound(folder)
    clear = write(folder / "clear", customers(ROWS))
    pages = clear.read_bytes()[4:1000]
    clear.unlink()
    edit_footer(path, lambda _: pages)
    return Example(path=path)


@example("pages-in-clear")
def pages_in_clear(folder: Path) -> Example:
    """`email` is said to be encrypted, and begins with a page in clear."""
    path = sound(folder)
    page = write(folder / "clear", customers(ROWS)).read_bytes()[4:100]
    (folder / "clear").unlink()
    with path.open("r+b") as file:
        file.seek(4)
        file.write(page)
    return Example(path=path)


@example("bounds-stray-in-clear")
def bounds_stray(folder: Path) -> Example:
    """Statistics of `email` in clear before the footer, to which nothing refers."""
    path = sound(folder)
    bounds = Statistics.of(null_count=0, max_value=b"user9", min_value=b"user0")
    edit_footer(path, lambda _: bounds.encode())
    return Example(path=path)


@example("values-in-clear")
def values_in_clear(folder: Path) -> Example:
    """A column `contact` in clear repeats `email`; found with `--check-values`."""
    table = customers(ROWS)
    path = sound(folder, table=table.append_column("contact", table["email"]))
    return Example(path=path, options={"check_values": True})


@example("values-mentioned")
def values_mentioned(folder: Path) -> Example:
    """A column `contact` in clear with one of the values of `email`; with `--check-values`."""
    table = customers(ROWS)
    contacts = [table["email"][0].as_py(), *(f"office {n}" for n in range(ROWS - 1))]
    path = sound(folder, table=table.append_column("contact", pa.array(contacts)))
    return Example(path=path, options={"check_values": True})


@example("values-not-searched")
def values_not_searched(folder: Path) -> Example:
    """All values of `email` have three letters; with `--check-values`."""
    table = customers(ROWS)
    values = pa.array(["abc"] * ROWS)
    table = table.set_column(table.schema.get_field_index("email"), "email", values)
    return Example(path=sound(folder, table=table), options={"check_values": True})


@example("hudi-record-keys-in-clear")
def hudi_record_keys_in_clear(folder: Path) -> Example:
    """A signed footer with Hudi's `hoodie_min_record_key` and `hoodie_max_record_key`."""
    texts = {"hoodie_min_record_key": "DE1", "hoodie_max_record_key": "DE9"}
    table = customers(ROWS).replace_schema_metadata(texts)
    return Example(path=sound(folder, Mode.SIGNED, table=table), policy=SIGNED)


@example("hudi-record-keys-without-rule")
def hudi_record_keys_without_rule(folder: Path) -> Example:
    """A column `_hoodie_record_key` in clear, and no rule for it."""
    keys = pa.array([f"key {i}" for i in range(ROWS)])
    table = customers(ROWS).append_column("_hoodie_record_key", keys)
    return Example(path=sound(folder, table=table))


@example("hudi-filter-present")
def hudi_filter_present(folder: Path) -> Example:
    """`hudi add` put the record keys of `email` into an encrypted footer."""
    path = sound(folder)
    sb.hudi.add_record_key_filter(path, column="email", keys=KEYRING)
    return Example(path=path)


@example("paimon-index-present")
def paimon_index_present(folder: Path) -> Example:
    """`x.parquet.index` beside `x.parquet`, with a Bloom filter of `city`."""
    path = sound(folder)
    sb.paimon.build_index(path, "city", keys=KEYRING)
    return Example(path=path)


@example("paimon-index-in-clear")
def paimon_index_in_clear(folder: Path) -> Example:
    """`x.parquet.index` beside `x.parquet`, with a Bloom filter of `email`."""
    body = (4).to_bytes(4, "big") + bytes(8)
    columns = ColumnIndexes(name="email", indexes=(Index(type="bloom-filter", body=body),))
    (folder / "x.parquet.index").write_bytes(FileIndex(columns=(columns,)).to_bytes())
    return Example(path=sound(folder))


@example("summary-in-clear")
def summary_in_clear(folder: Path) -> Example:
    """`_metadata` of the table as pyarrow writes it for a plain one, beside an encrypted file."""
    collected: list[Any] = []
    table = customers(ROWS)
    pq.write_to_dataset(table, folder / "plain", metadata_collector=collected)
    pq.write_metadata(table.schema, folder / "_metadata", metadata_collector=collected)
    return Example(path=sound(folder))


@example("table-log-in-clear")
def table_log_in_clear(folder: Path) -> Example:
    """The log of a Delta table has statistics of `email`, whose files are encrypted."""
    path = sound(folder)
    bounds = {"email": "user0@example.com", "city": "Bergen"}
    stats = json.dumps({"numRecords": ROWS, "minValues": bounds, "maxValues": bounds})
    commit(folder, 0, protocol(), metadata(*(column(name, "string") for name in bounds)))
    commit(folder, 1, add(path.name, path.stat().st_size, stats=stats))
    return Example(path=folder)


@example("schema-in-clear")
def schema_in_clear(folder: Path) -> Example:
    """A signed footer with an Arrow schema in which `email` has a comment."""
    table = customers(ROWS)
    email = table.schema.field("email").with_metadata({"comment": "of the customers of Acme"})
    table = table.cast(table.schema.set(0, email))
    return Example(path=sound(folder, Mode.SIGNED, table=table), policy=SIGNED)


@example("partition-in-clear")
def partition_in_clear(folder: Path) -> Example:
    """A table partitioned by `email`, which the policy gives a key."""
    below = folder / "email=user1@example.com"
    below.mkdir()
    sound(below, table=customers(ROWS).drop_columns("email"), column_keys={"k_finance": ["iban"]})
    return Example(path=folder)


# What could not be checked.


@example("unchecked-file")
def unchecked_file(folder: Path) -> Example:
    """A file that is cut in its middle."""
    path = sound(folder)
    path.write_bytes(path.read_bytes()[:2000])
    return Example(path=path)


@example("unchecked-copy")
def unchecked_copy(folder: Path) -> Example:
    """A file that `openssl` encrypted, beside an encrypted file; with `--check-values`."""
    sound(folder)
    (folder / "x.bin").write_bytes(b"Salted__" + b"\0" * 30)
    return Example(path=folder, options={"check_values": True})


@example("other-files")
def other_files(folder: Path) -> Example:
    """`export.csv` beside an encrypted file."""
    sound(folder)
    (folder / "export.csv").write_text("id,city\n1,rome\n")
    return Example(path=folder)


@example("unchecked-feature")
def unchecked_feature(folder: Path) -> Example:
    """The data of `city` stands in another file (`ColumnChunk.file_path`)."""
    path = sound(folder)
    edit_footer(path, lambda it: setattr(chunk_of(it, "city"), "file_path", "y.parquet"))
    return Example(path=path)


@example("unchecked-fields")
def unchecked_fields(folder: Path) -> Example:
    """A text in a field 99 of an encrypted footer, which no version of the format has."""
    path = sound(folder)
    text = TType.STRING, b"a text"
    edit_footer(path, lambda it: it.footer.metadata.tree.fields.update({99: text}))
    return Example(path=path)


@example("unchecked-footer")
def unchecked_footer(folder: Path) -> Example:
    """An encrypted footer, audited with `--without-keys`."""
    return Example(path=sound(folder), options={"keys": None, "without_keys": True})


@example("unchecked-signature")
def unchecked_signature(folder: Path) -> Example:
    """A signed footer, audited with the columns' keys alone."""
    path = sound(folder, Mode.SIGNED)
    keys = sb.ExplicitKeys(columns=data_keys(path)[1])
    return Example(path=path, policy=SIGNED, options={"keys": keys})


@example("unchecked-column")
def unchecked_column(folder: Path) -> Example:
    """Audited with the keys of the footer and of `iban`."""
    path = sound(folder)
    footer, columns = data_keys(path)
    keys = sb.ExplicitKeys(footer=footer, columns={"iban": columns["iban"]})
    return Example(path=path, options={"keys": keys})


@example("unchecked-key-name")
def unchecked_key_name(folder: Path) -> Example:
    """`email` is encrypted under a key that the file does not name, and the keyring brings."""
    path = sound(folder)
    explicit = sb.ExplicitKeys(columns=data_keys(path)[1])
    set_key_metadata(path, "email", lambda _: None)
    keyring = sb.Keyring(master_keys=MASTER_KEYS, explicit=explicit)
    return Example(path=path, options={"keys": keyring})


@example("unchecked-filter")
def unchecked_filter(folder: Path) -> Example:
    """A policy that asks for a filter of `city`, in clear, audited with `--without-keys`."""
    path = filtered(folder, "city")
    options = {"keys": None, "without_keys": True, "ignore": ["unchecked-footer"]}
    return Example(path=path, policy=with_rules(city=bloom("city")), options=options)


@example("unchecked-gaps")
def unchecked_gaps(folder: Path) -> Example:
    """65 MiB of zeros between the data and the footer."""
    path = sound(folder)
    with opened(path) as it:
        offset = it.footer.tail.offset
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(offset)
        file.seek(offset + 65 * 1024 * 1024)
        file.write(content[offset:])
    return Example(path=path)


@example("unchecked-zeros")
def unchecked_zeros(folder: Path) -> Example:
    """A column of doubles below and above zero, whose filter has 0.0 and not -0.0."""
    table = pa.table({"rate": pa.array([-1.0, 1.0] * ROWS)})
    path = write(folder / "x.parquet", table, use_dictionary=False)
    values = pa.array([-1.0, 1.0, 0.0]).buffers()[1].to_pybytes()
    put_filter(path, "rate", some_filter(values[:8], values[8:16], values[16:]))
    return Example(path=path, policy=KeyPolicy())


@example("unchecked-values")
def unchecked_values(folder: Path) -> Example:
    """A page of `id` is overwritten with zeros; found with `--check-values`."""
    path = filtered(folder, "id")
    with opened(path) as it:
        meta_data = it.chunk(0, "id").meta_data
        start = meta_data.dictionary_page_offset or meta_data.data_page_offset
    content = bytearray(path.read_bytes())
    # Behind the page's header.
    content[start + 40 : start + 70] = bytes(30)
    path.write_bytes(content)
    return Example(path=path, options={"check_values": True})


@example("unchecked-sample")
def unchecked_sample(folder: Path) -> Example:
    """Two files, audited with `--sample 1`."""
    write(folder / "a.parquet", customers(ROWS), Mode.ENCRYPTED)
    sound(folder)
    return Example(path=folder, options={"sample": 1})
