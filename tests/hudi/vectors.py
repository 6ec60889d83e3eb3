"""Expected values that Hudi's own Java code computed: `tests/vectors/hudi/`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from secure_bloom.hudi import DynamicBoundedBloomFilter, HashType, SimpleBloomFilter
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.hudi.record_keys.footer_entry import FILTER_TYPES
from testing import project
from testing.project import VECTORS

FOLDER = VECTORS / "hudi"
SHARED = project.SHARED / "vectors"


def cases(name: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((folder / name).read_text())["cases"]
    return loaded


def keys_of(given: list[str] | dict[str, Any]) -> list[str]:
    if isinstance(given, list):
        return given
    numbers = range(given["start"], given["stop"])
    return [given["prefix"] + str(n).zfill(given["width"]) for n in numbers]


def empty_filter(case: dict[str, Any]) -> HudiBloomFilter:
    """The filter that the case's settings make."""
    kind = FILTER_TYPES[case["type"].upper()]
    hash_type = HashType(case.get("hash_type", 1))
    if kind is SimpleBloomFilter:
        return SimpleBloomFilter(case["num_entries"], case["fpp"], hash_type=hash_type)
    return DynamicBoundedBloomFilter(
        case["num_entries"], case["fpp"], case["max_entries"], hash_type=hash_type
    )


def answers(found: Any) -> str:
    """Verdicts as the vectors write them: one character each."""
    return "".join(str(int(each)) for each in found)
