"""Both filters against Hudi's own bytes and verdicts, against each other, and against damage."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom import hudi
from secure_bloom.errors import FormatError, PolicyError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.hudi import DynamicBoundedBloomFilter, HashType, SimpleBloomFilter
from secure_bloom.hudi.record_keys.bloom_filter import Header, HudiBloomFilter, header_for, sizing
from secure_bloom.hudi.record_keys.footer_entry import FILTER_TYPES
from tests.hudi.vectors import answers, cases, empty_filter, keys_of

BLOOM = [case for case in cases("bloom.json") if "error" not in case]
REFUSED = [case for case in cases("bloom.json") if "error" in case]
MORE = [case for case in cases("more.json") if case["op"] != "footer"]
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def name(case: dict[str, Any]) -> str:
    return f"{case['type']} {case['name']}"


@pytest.mark.parametrize("case", cases("params.json"), ids=lambda c: f"{c['num_entries']}")
def test_sizes_are_those_of_hudi(case: dict[str, Any]) -> None:
    assert sizing(case["num_entries"], case["fpp"]) == (case["bits"], case["hashes"])


@pytest.mark.parametrize(
    "wrong",
    [(True, 0.1), (2.5, 0.1), ("5", 0.1), (None, 0.1), (5, "x"), (5, None), (5, True)],
)
def test_sizes_of_a_wrong_type_are_refused(wrong: tuple[Any, Any]) -> None:
    for make in (
        sizing,
        SimpleBloomFilter,
        lambda n, fpp: DynamicBoundedBloomFilter(n, fpp, 20),
        lambda n, fpp: hudi.RecordKeyFilterOptions(num_entries=n or "None", fpp=fpp),
    ):
        with pytest.raises(PolicyError, match="is of type"):
            make(*wrong)
    with pytest.raises(PolicyError, match="hash_type is of type"):
        SimpleBloomFilter(5, 0.1, hash_type=1)  # type: ignore[arg-type]
    for bound in (-1, 2.5, "many"):
        with pytest.raises(PolicyError, match="max_entries"):
            DynamicBoundedBloomFilter(5, 0.1, bound)  # type: ignore[arg-type]
        with pytest.raises(PolicyError, match="max_entries"):
            hudi.RecordKeyFilterOptions(max_entries=bound)  # type: ignore[arg-type]


def test_the_fpp_of_an_empty_filter_is_plus_zero() -> None:
    assert str(SimpleBloomFilter(5, 0.1).fpp()) == "0.0"


@pytest.mark.parametrize("in_bulk", [False, True], ids=["single", "bulk"])
@pytest.mark.parametrize("case", BLOOM, ids=name)
def test_filters_are_those_of_hudi(case: dict[str, Any], in_bulk: bool) -> None:
    made, keys, probes = empty_filter(case), keys_of(case["keys"]), keys_of(case["probes"])
    if in_bulk:
        made.insert_many(keys)
        assert answers(made.check_many(probes)) == case["answers"]
    else:
        for key in keys:
            made.insert(key)
        assert answers(map(made.check, probes)) == case["answers"]
    raw, text = made.to_bytes(), made.serialize()
    assert case["type_code"] == made.TYPE_CODE
    assert (len(raw), hashlib.sha256(raw).hexdigest()) == (case["raw_len"], case["raw_sha256"])
    assert hashlib.sha256(text.encode()).hexdigest() == case["text_sha256"]
    assert text == case.get("serialized", text)
    assert type(made).parse(text).serialize() == text


@pytest.mark.parametrize("case", REFUSED, ids=name)
def test_what_hudi_refuses_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=r"is empty|fpp is 1"):
        empty_filter(case).insert_many(keys_of(case["keys"]))


@pytest.mark.parametrize("case", MORE, ids=name)
def test_parsed_filters_go_on_as_hudi_does(case: dict[str, Any]) -> None:
    kind = FILTER_TYPES[case["type"]]
    if "error" in case:
        with pytest.raises((FormatError, UnsupportedFeatureError)):
            kind.parse(case["from"])
        return
    parsed = kind.parse(case["from"])
    for key in keys_of(case.get("keys", [])):
        parsed.insert(key)
    assert parsed.serialize() == case["serialized"]
    assert answers(parsed.check_many(keys_of(case["probes"]))) == case["answers"]


# --- one rule for single keys and for many -----------------------------------------------------


@given(
    keys=st.lists(KEYS, max_size=60),
    probes=st.lists(KEYS, max_size=20),
    num_entries=st.integers(1, 12),
    bound=st.integers(-1, 40),
    fpp=st.sampled_from([0.5, 0.1, 1e-3, 1e-12]),
    hash_type=st.sampled_from(HashType),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    parse_at=st.integers(0, 5),
)
def test_keys_in_bulk_end_where_single_keys_do(
    keys: list[str],
    probes: list[str],
    num_entries: int,
    bound: int,
    fpp: float,
    hash_type: HashType,
    cuts: list[int],
    parse_at: int,
) -> None:
    def make() -> HudiBloomFilter:
        if bound < 0:
            return SimpleBloomFilter(num_entries, fpp, hash_type=hash_type)
        return DynamicBoundedBloomFilter(num_entries, fpp, bound, hash_type=hash_type)

    single, many = make(), make()
    places = [0, *sorted(cuts), len(keys)]
    for step, (start, stop) in enumerate(pairwise(places)):
        if step == parse_at:
            single, many = (type(f).parse(f.serialize()) for f in (single, many))
        many.insert_many(keys[start:stop])
        for key in keys[start:stop]:
            single.insert(key)
    assert many.to_bytes() == single.to_bytes()
    assert many.check_many(probes).tolist() == [single.check(key) for key in probes]
    assert all(many.check_many(keys))


def test_a_single_key_does_not_need_numpy() -> None:
    code = (
        "import sys; from secure_bloom import hudi;"
        "f = hudi.DynamicBoundedBloomFilter(10, 0.01, 20); f.insert('a');"
        "g = type(f).parse(f.serialize()); assert g.check('a') and not g.check('b'); g.fpp();"
        "assert not {'numpy', 'pyarrow'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- growth ------------------------------------------------------------------------------------


def test_a_dynamic_filter_grows_by_rows_up_to_its_bound() -> None:
    grown = DynamicBoundedBloomFilter(100, 0.01, 250)
    rows = []
    for start in range(0, 600, 100):
        grown.insert_many(f"key-{n}" for n in range(start, start + 100))
        rows.append(grown.rows)
    assert rows == [1, 2, 3, 3, 3, 3]
    assert (grown.nr, grown.current) == (100, 400)


def test_fpp_is_the_share_of_absent_keys_that_pass() -> None:
    grown = DynamicBoundedBloomFilter(500, 0.01, 1500)
    grown.insert_many(f"key-{n}" for n in range(4000))
    seen = grown.check_many(f"absent-{n}" for n in range(40_000)).mean()
    assert grown.fpp() == pytest.approx(seen, rel=0.05)
    assert SimpleBloomFilter(10, 0.1).fpp() == 0.0


def test_a_full_filter_has_an_fpp_of_one() -> None:
    full = SimpleBloomFilter.from_bytes(struct.pack(">iibi", -1, 3, 1, 8) + b"\xff")
    assert (full.fpp(), full.fill()) == (1.0, 1.0)
    assert full.check("anything")


def test_a_filter_counts_no_further_than_java() -> None:
    header = struct.pack(">iibi", -1, 3, 1, 8)
    counts = struct.pack(">iii", 5, 2**31 - 2, 1)
    last = DynamicBoundedBloomFilter.from_bytes(header + counts + header + b"\0")
    last.insert("a")
    with pytest.raises(PolicyError, match="no more keys fit"):
        last.insert("b")


def test_one_text_is_not_taken_for_its_characters() -> None:
    made = SimpleBloomFilter(10, 0.1)
    for act in (made.insert_many, made.check_many):
        with pytest.raises(PolicyError, match="wanted several"):
            act("key")


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", "\ud800", b"bytes", 7])
def test_the_error_for_what_is_no_key_does_not_show_it(key: Any) -> None:
    made = SimpleBloomFilter(10, 0.1)
    for act in (made.insert, made.check, lambda k: made.insert_many(["a", k])):
        with pytest.raises(PolicyError, match="a record key is") as caught:
            act(key)
        assert "ud800" not in str(caught.value)
    assert made.fill() == 0.0


@pytest.mark.parametrize(
    ("num_entries", "fpp"),
    [(0, 0.1), (-5, 0.1), (2**31, 0.1), (10, 0.0), (10, 1.0), (10, math.nan)],
)
def test_settings_that_make_no_filter_are_refused(num_entries: int, fpp: float) -> None:
    with pytest.raises(PolicyError, match=r"num_entries is|fpp is"):
        SimpleBloomFilter(num_entries, fpp)


ROW = struct.pack(">iibi", -1, 3, 1, 8) + b"\0"
DAMAGED: dict[str, tuple[type[hudi.HudiBloomFilter], bytes]] = {
    "no bytes": (SimpleBloomFilter, b""),
    "bits cut short": (SimpleBloomFilter, struct.pack(">iibi", -1, 3, 1, 2**31 - 1) + b"\0"),
    "no hashes": (SimpleBloomFilter, struct.pack(">iibi", -1, 0, 1, 8) + b"\0"),
    "hashes without end": (SimpleBloomFilter, struct.pack(">iibi", -1, 2**31 - 1, 1, 8) + b"\0"),
    "old form, hashes without end": (SimpleBloomFilter, struct.pack(">ii", 2**30, 8) + b"\0"),
    "negative size": (SimpleBloomFilter, struct.pack(">iibi", -1, 3, 1, -8) + b"\0"),
    "no counts": (DynamicBoundedBloomFilter, ROW[:-1]),
    "no rows": (DynamicBoundedBloomFilter, ROW[:-1] + struct.pack(">iii", 5, 0, 0)),
    "rows without end": (
        DynamicBoundedBloomFilter,
        ROW[:-1] + struct.pack(">iii", 5, 0, 2**31 - 1) + ROW,
    ),
    "more rows than can be asked": (
        DynamicBoundedBloomFilter,
        ROW[:-1] + struct.pack(">iii", 1, 0, 140_000) + ROW * 140_000,
    ),
    "a row without room": (
        DynamicBoundedBloomFilter,
        ROW[:-1] + struct.pack(">iii", 0, 0, 1) + ROW,
    ),
    "a negative count": (DynamicBoundedBloomFilter, ROW[:-1] + struct.pack(">iii", 5, -1, 1) + ROW),
    "a row cut short": (
        DynamicBoundedBloomFilter,
        ROW[:-1] + struct.pack(">iii", 5, 0, 2) + ROW + ROW[:-1],
    ),
    "rows of two shapes": (
        DynamicBoundedBloomFilter,
        ROW[:-1] + struct.pack(">iii", 5, 0, 2) + ROW + struct.pack(">iibi", -1, 4, 1, 8) + b"\0",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_filter_is_refused(damage: str) -> None:
    kind, stored = DAMAGED[damage]
    with pytest.raises((FormatError, UnsupportedFeatureError)):
        kind.from_bytes(stored)


@pytest.mark.parametrize("text", ["%%%", "ab=c", "é"])
def test_a_text_that_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="base64"):
        SimpleBloomFilter.parse(text)


@given(kind=st.sampled_from(list(FILTER_TYPES.values())), stored=st.binary(max_size=80))
def test_any_bytes_are_a_filter_or_an_error_of_ours(
    kind: type[HudiBloomFilter], stored: bytes
) -> None:
    for prefix in (b"", struct.pack(">iibi", -1, 3, 1, 8)):
        try:
            parsed = kind.parse(base64.b64encode(prefix + stored).decode())
        except SecureBloomError:
            continue
        parsed.check("key")
        assert type(parsed).parse(parsed.serialize()).to_bytes() == parsed.to_bytes()


def test_bits_behind_the_row_are_dropped_as_hadoop_does() -> None:
    stored = struct.pack(">iibi", -1, 3, 1, 4) + b"\xff"
    assert SimpleBloomFilter.from_bytes(stored).to_bytes()[-1] == 0x0F


def test_a_repr_shows_only_the_shape() -> None:
    made = SimpleBloomFilter(10, 0.1)
    made.insert("secret-key")
    assert repr(made) == (
        "SimpleBloomFilter(rows=1, vector_size=48, num_hashes=4, hash_type=MURMUR)"
    )


def test_checking_keeps_the_order_of_the_keys() -> None:
    made = SimpleBloomFilter(10, 1e-9)
    made.insert_many(["a", "c"])
    assert made.check_many(["c", "b", "a"]).tolist() == [True, False, True]
    assert made.check_many([]).dtype == np.bool_


def test_a_filter_comes_back_from_its_bytes() -> None:
    one = SimpleBloomFilter(num_entries=100, fpp=0.01)
    one.insert("key")
    other = SimpleBloomFilter.from_bytes(one.to_bytes())
    assert other.to_bytes() == one.to_bytes()
    assert other.check("key")
    assert not other.check("nobody")


def test_its_size_stays_however_many_keys_come() -> None:
    one = SimpleBloomFilter(num_entries=10, fpp=0.01)
    size = len(one.to_bytes())
    for number in range(1000):
        one.insert(str(number))
    assert len(one.to_bytes()) == size


@pytest.mark.parametrize("hash_type", list(HashType))
def test_a_header_is_read_as_it_was_written(hash_type: HashType) -> None:
    header = Header(num_hashes=10, hash_type=hash_type, vector_size=1437)
    stored = header.encode()
    assert Header.decode(memoryview(stored + b"bits")) == (header, len(stored))
    assert header.row_bytes == 180


def test_the_older_form_has_no_version_and_one_hash() -> None:
    header, length = Header.decode(memoryview(struct.pack(">ii", 7, 100) + b"bits"))
    assert header == Header(num_hashes=7, hash_type=HashType.JENKINS, vector_size=100)
    assert length == 8


@pytest.mark.parametrize(
    ("stored", "error"),
    [
        (struct.pack(">i", -2), UnsupportedFeatureError),
        (struct.pack(">iibi", -1, 7, 9, 100), UnsupportedFeatureError),
        (struct.pack(">iibi", -1, 0, 1, 100), FormatError),
        (struct.pack(">iibi", -1, 7, 1, 0), FormatError),
        (struct.pack(">i", -1), FormatError),
        (b"", FormatError),
    ],
    ids=["version", "hash", "no hashes", "no bits", "cut short", "empty"],
)
def test_what_is_no_header_is_refused(stored: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        Header.decode(memoryview(stored))


def test_more_keys_and_fewer_false_positives_want_more_bits() -> None:
    def bits(keys: int, fpp: float) -> int:
        return header_for(keys, fpp, HashType.MURMUR).vector_size

    assert bits(1000, 0.01) < bits(1000, 0.001) < bits(10_000, 0.001)
