"""A wrong type, anywhere in what users call, is an error of ours that says what was wanted."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom import hudi, paimon
from secure_bloom.calling.arguments import asks, takes
from secure_bloom.encryption.kms.keyring import new_keyring
from secure_bloom.encryption.policy_tables import EncryptionOptions
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys


class Thing:
    """Of no type that any function wants."""


#: What users give by mistake.  True and 5 are numbers of open files to `open`.
WRONG = [5, True, -1, 1.5, None, "x", b"x", [5], [None], {5: 5}, Path("nowhere"), Thing()]
POLICY = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
"""
INT = paimon.DataType.parse("INT")
FILTER = sb.SplitBlockBloomFilter(1)
BITS = FILTER.to_bytes()
KEYRING = sb.Keyring(master_keys={"k": bytes(16)})
RING: dict[str, Any] = {"key_bytes": bytes(16), "master_key_identifier": "k"}
WRAPPED = {"wrapped_key": KEYRING.wrap_key(**RING), "master_key_identifier": "k"}
HASHES = np.zeros(1, np.uint64)
HUDI = hudi.SimpleBloomFilter(10, 0.1)
DYNAMIC = hudi.DynamicBoundedBloomFilter(10, 0.1, 20)
INDEX = paimon.FileIndex()
EMAIL = [("email", "=", "a@x")]
#: What functions must be given, by the name of the parameter.
GIVEN: dict[str, Any] = {
    "paths": "lake",
    "path": "lake/0.parquet",
    "data_file": "lake/0.parquet",
    "policy": "policy.toml",
    "output": "out",
    "column": "email",
    "columns": ["email"],
    "values": ["a@x"],
    "keys_to_find": ["a@x"],
    "where": EMAIL,
    "table": "lake",
    "query": "SELECT * FROM 'lake'",
    "files": "lake",
    "values_of": "lake:email",
    "dry_run": True,
    "number": 5,
    "numbers": np.zeros(1, np.int64),
    "value": b"x",
    "num_entries": 10,
    "items": 10,
    "fpp": 0.1,
    "types": {"email": INT},
    "data_type": INT,
    "index": INDEX,
    "predicate": paimon.as_predicate(EMAIL),
    "forms": paimon.typed_forms({"email": INT}),
    "schema": pa.schema({"email": pa.string()}),
}
#: Functions and methods beside their arguments: all that users call with arguments of their own.
METHODS: list[tuple[Callable[..., object], dict[str, Any]]] = [
    (sb.Keyring, {"master_keys": {}, "data_keys": {}, "explicit": None}),
    (sb.Keyring.load, {"path": "keyring.json"}),
    (KEYRING.has_key, {"master_key_id": "k"}),
    (KEYRING.wrap_key, RING),
    (KEYRING.unwrap_key, WRAPPED),
    (sb.PyarrowKms, {"kms": KEYRING}),
    (sb.PyarrowKms(KEYRING).wrap_key, RING),
    (sb.PyarrowKms(KEYRING).unwrap_key, WRAPPED),
    (sb.ExplicitKeys, {"footer": None, "columns": {}, "aad_prefix": None, "data_keys": {}}),
    (sb.KeyPolicy, dict.fromkeys(inspect.signature(sb.KeyPolicy).parameters, ...)),
    (sb.KeyPolicy.load, {"path": "policy.toml"}),
    (sb.KeyPolicy().key_for, {"path": ["email"]}),
    (sb.KeyPolicy().own_key_for, {"path": ["email"]}),
    (sb.BloomFilterOptions, {"fpp": 0.1, "max_bytes": 1024}),
    (sb.BloomFilterOptions.of, {"column": "email", "given": 0.1}),
    (sb.SplitBlockBloomFilter, {"block_count": 1}),
    (sb.SplitBlockBloomFilter.from_bytes, {"bitset": BITS}),
    (FILTER.insert, {"value": b"x"}),
    (FILTER.check, {"value": b"x"}),
    (FILTER.insert_hash, {"h": 1}),
    (FILTER.check_hash, {"h": 1}),
    (FILTER.check_probe, {"probe": ...}),
    (FILTER.insert_hashes, {"hashes": HASHES}),
    (FILTER.check_hashes, {"hashes": HASHES}),
    (FILTER.insert_fixed, {"values": np.zeros(1)}),
    (FILTER.insert_binary, {"offsets": np.zeros(1, np.int32), "data": np.zeros(0, np.uint8)}),
    (FILTER.folded_to, {"fpp": 0.1}),
    (hudi.SimpleBloomFilter, {"num_entries": 10, "fpp": 0.1, "hash_type": HUDI.hash_type}),
    (hudi.SimpleBloomFilter.from_bytes, {"stored": HUDI.to_bytes()}),
    (hudi.SimpleBloomFilter.parse, {"text": HUDI.serialize()}),
    (HUDI.insert, {"key": "a"}),
    (HUDI.check, {"key": "a"}),
    (HUDI.insert_many, {"keys": ["a"]}),
    (HUDI.check_many, {"keys": ["a"]}),
    (HUDI.insert_packed, {"keys": PackedKeys.of([b"a"])}),
    (HUDI.check_packed, {"keys": PackedKeys.of([b"a"])}),
    (hudi.DynamicBoundedBloomFilter, {"num_entries": 10, "fpp": 0.1, "max_entries": 20}),
    (hudi.DynamicBoundedBloomFilter.from_bytes, {"stored": DYNAMIC.to_bytes()}),
    (hudi.RecordKeyFilterOptions, {"type_code": "SIMPLE", "num_entries": 1, "fpp": 0.1}),
    (hudi.RecordKeyFilterOptions().empty_filter, {"keys": 10}),
    (paimon.BloomFilter64, {"bit_count": 64, "hash_functions": 2}),
    (paimon.BloomFilter64.sized, {"items": 5, "fpp": 0.1}),
    (paimon.BloomFilter64.from_bytes, {"body": paimon.BloomFilter64(64, 2).to_bytes()}),
    (paimon.DataType, {"root": INT.root, "parameter": None}),
    (paimon.DataType.parse, {"text": "INT"}),
    (paimon.FileIndex, {"columns": (), "redundant": b"", "trailing": b""}),
    (paimon.FileIndex.from_bytes, {"data": INDEX.to_bytes()}),
    (INDEX.indexes, {"column": "email"}),
    (INDEX.with_indexes, {"new": []}),
    (paimon.Index, {"type": "bloom-filter", "body": b""}),
    (paimon.ColumnIndexes, {"name": "email", "indexes": ()}),
    (paimon.IndexOptions, {"items": 1, "fpp": 0.1}),
]
#: Any object is a value to look for, options, or a condition.
ANY_VALUE = {"values", "value", "given", "where", "keys_to_find", "predicate", "forms"}


def functions(module: ModuleType) -> list[Callable[..., object]]:
    named = [getattr(module, name) for name in module.__all__]
    return [value for value in named if inspect.isfunction(value)]


@cache
def plan() -> sb.ReadPlan:
    return sb.plan_read("lake", where=EMAIL)


def arguments(function: Callable[..., object]) -> dict[str, Any]:
    """What the function must be given, and what keeps it from writing."""
    parameters = inspect.signature(function).parameters.values()
    wanted = {p.name for p in parameters if p.default is p.empty} | {"dry_run", "columns"}
    given = {p.name: GIVEN[p.name] for p in parameters if p.name in wanted & set(GIVEN)}
    if "plan" in wanted:
        given |= {"plan": plan(), "file": plan().files[0]}
    return given


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder to be in: a table of one file, a policy and its keyring."""
    folder = tmp_path_factory.mktemp("arguments")
    (folder / "lake").mkdir()
    pq.write_table(pa.table({"email": ["a@x", "b@x"]}), folder / "lake" / "0.parquet")
    (folder / "policy.toml").write_text(POLICY)
    new_keyring(folder / "keyring.json", ["k_footer", "k_pii"])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder
    plan.cache_clear()


def call(function: Callable[..., object], given: dict[str, Any]) -> None:
    result = function(**given)
    if inspect.isgenerator(result):
        list(result)


def check(function: Callable[..., object], given: dict[str, Any], name: str) -> None:
    """Each wrong value is taken or refused by an error of ours; what has no type, by what it is."""
    for value in WRONG:
        try:
            call(function, {**given, name: value})
        except SecureBloomError as error:
            told = str(error)
        else:
            told = ""
        if isinstance(value, Thing) and name not in ANY_VALUE:
            assert "wanted" in told or "must be" in told, (name, told)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(
    "function",
    [*functions(sb), *functions(hudi), *functions(paimon)],
    ids=lambda f: f"{f.__module__.split('.')[1]}.{f.__name__}",
)
def test_functions_refuse_wrong_types_by_errors_of_ours(function: Callable[..., object]) -> None:
    for name in inspect.signature(function).parameters:
        check(function, arguments(function), name)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(("method", "given"), METHODS, ids=lambda m: getattr(m, "__qualname__", ""))
def test_methods_refuse_wrong_types_by_errors_of_ours(
    method: Callable[..., object], given: dict[str, Any]
) -> None:
    for name in given:
        check(method, {k: v for k, v in given.items() if v is not ...}, name)


def test_every_public_class_that_users_make_is_tried() -> None:
    reports = {
        "Report",
        "Plan",
        "Commit",
        "Advice",
        "Probe",
        "Lookup",
        "Finding",
        "Encryption",
        "Filter",
    }
    made = {m.__qualname__.split(".")[0] for m, _ in METHODS}
    for module in (sb, hudi, paimon):
        for name in module.__all__:
            kind = getattr(module, name)
            if inspect.isclass(kind) and not name.endswith(tuple(reports)) and dataclass_like(kind):
                assert kind.__name__ in made


def dataclass_like(kind: type) -> bool:
    """Parts of conditions are checked where a condition is read."""
    is_part = kind.__module__.endswith("tree") or kind is paimon.Comparison
    return hasattr(kind, "__dataclass_fields__") and not is_part


def test_functions_on_spark_refuse_wrong_types_too(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyspark = pytest.importorskip("pyspark.sql")
    from secure_bloom import spark
    from secure_bloom.spark import jobs_of_call

    # Of the right class, and nothing behind it: no job begins.
    session = pyspark.SparkSession.__new__(pyspark.SparkSession)
    monkeypatch.setattr(jobs_of_call, "cancelled_jobs", lambda _: nullcontext())
    for function in functions(spark):
        for name in inspect.signature(function).parameters:
            given = {**arguments(function), "spark": session, name: Thing()}
            parameters = inspect.signature(function).parameters
            with pytest.raises(SecureBloomError, match=r"wanted|the table has no schema"):
                function(**{k: v for k, v in given.items() if k in parameters})


def test_the_error_says_what_was_given_and_what_is_wanted(lake: Path) -> None:
    with pytest.raises(PolicyError, match="jobs is of type str, wanted a whole number or None"):
        sb.add_bloom_filters("lake", columns="email", jobs="x")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="in_place is of type str, wanted True or False"):
        sb.add_bloom_filters("lake", columns="email", in_place="no")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="output is of type int, wanted a text or a Path"):
        sb.decrypt("lake", output=5)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="wanted a mapping of texts to texts or None"):
        sb.audit("lake", policy="policy.toml", spark_properties={"a": 5})  # type: ignore[dict-item]


def test_flags_and_numbers_of_numpy_are_flags_and_numbers(lake: Path) -> None:
    report = sb.audit("lake", policy="policy.toml", sample=np.int64(1), without_keys=np.bool_(True))  # type: ignore[arg-type]
    assert report.files == 1
    assert json.loads(report.to_json())["scope"]["options"]["sample"] == 1
    dry = sb.add_bloom_filters("lake", columns="email", keys=KEYRING, dry_run=np.bool_(True))  # type: ignore[arg-type]
    assert json.loads(dry.to_json())["dry_run"] is True
    advised = sb.advise("lake", fpp=np.float32(0.5))  # type: ignore[arg-type]
    assert "0.5" in advised.to_json()


def test_texts_of_numpy_are_paths(lake: Path) -> None:
    assert len(sb.inspect(np.array(["lake"])).files) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_a_path_that_no_file_can_have_is_refused(lake: Path, path: str) -> None:
    for call in (
        lambda: sb.inspect(path),
        lambda: sb.add_bloom_filters("lake", columns="email", keys=KEYRING, output=path),
        lambda: sb.decrypt("lake", keys=KEYRING, output=path),
        lambda: sb.advise("lake", queries=path),
        lambda: paimon.build_index(path, ["email"]),
        lambda: hudi.read_record_key_filter(path),
    ):
        with pytest.raises(PolicyError, match="no file can have"):
            call()


def test_signatures_and_docstrings_stay_those_of_the_function() -> None:
    assert "jobs" in inspect.signature(sb.add_bloom_filters).parameters
    assert (sb.add_bloom_filters.__doc__ or "").startswith("Add split-block Bloom filters")
    assert sb.KeyPolicy(footer_key="k", uniform=True).key_for("a.b") == "k"


@dataclass(frozen=True)
class Order:
    name: str
    _: KW_ONLY
    pieces: int = 1


@takes(Order)
def told(order: Order) -> str:
    """What was ordered."""
    return f"{order.pieces} {order.name}"


def test_it_is_called_with_the_fields() -> None:
    assert told("pen") == told(name="pen", pieces=1) == "1 pen"
    assert told("pen", pieces=3) == "3 pen"
    for args, kwargs in [(("pen", 3), {}), ((), {}), (("pen",), {"price": 2})]:
        with pytest.raises(TypeError):
            told(*args, **kwargs)


def test_a_wrong_argument_is_told_by_the_name_of_the_function() -> None:
    with pytest.raises(TypeError, match=r"^told\(\) got an unexpected keyword argument 'price'"):
        told("pen", price=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^told\(\) missing 1 required positional argument"):
        told()  # type: ignore[call-arg]


def test_it_shows_the_fields_as_its_own() -> None:
    assert str(inspect.signature(told)) == "(name: 'str', *, pieces: 'int' = 1) -> 'str'"
    assert (told.__name__, told.__doc__) == ("told", "What was ordered.")


class Shop:
    stock = 3

    @asks(Order)
    def sell(self, order: Order) -> str:
        """What is left."""
        return f"{self.stock - order.pieces} {order.name}"


def test_a_method_is_called_with_the_fields_too() -> None:
    assert Shop().sell("pen") == Shop().sell(name="pen") == "2 pen"
    assert Shop().sell("pen", pieces=3) == "0 pen"
    shown = "(self, name: 'str', *, pieces: 'int' = 1) -> 'str'"
    assert str(inspect.signature(Shop.sell)) == shown
    with pytest.raises(TypeError, match=r"^sell\(\) got an unexpected keyword argument 'price'"):
        Shop().sell("pen", price=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("made", "texts"),
    [
        (lambda it: sb.KeyPolicy(footer_key="k", footer_mode=it).footer_mode, "signed encrypted"),
        (lambda it: EncryptionOptions(algorithm=it).algorithm, "AES_GCM_V1 aes_gcm_ctr_v1"),
        (lambda it: hudi.SimpleBloomFilter(9, 0.1, hash_type=it).hash_type.name, "murmur JENKINS"),
        (lambda it: paimon.Comparison(column="a", operator=it, values=(1,)).operator, "= in"),
        (lambda it: paimon.DataType(root=it).root, "int BIGINT"),
    ],
)
def test_every_argument_that_is_an_enum_takes_its_text(
    made: Callable[[Any], str], texts: str
) -> None:
    for text in texts.split():
        assert str(made(text)).lower() == text.lower()


def test_a_text_that_is_no_member_of_an_enum_gets_the_list_of_those_that_are() -> None:
    with pytest.raises(PolicyError) as error:
        sb.KeyPolicy(footer_key="k", footer_mode="hidden")  # type: ignore[arg-type]
    assert str(error.value) == "footer_mode is 'hidden', wanted one of plaintext, signed, encrypted"
    with pytest.raises(PolicyError) as error:
        hudi.SimpleBloomFilter(9, 0.1, hash_type="sha")
    assert str(error.value) == "hash_type is 'sha', wanted one of jenkins, murmur"
