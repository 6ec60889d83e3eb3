"""The examples in docstrings of public functions do what they show."""

from __future__ import annotations

import doctest
import inspect
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.project import ROOT
from testing.tables import customers

#: Built once a room: Python's own `inspect` is not ours.
ROOMS = {"": sb, "hudi.": sb.hudi, "paimon.": sb.paimon}
FUNCTIONS = {
    f"{prefix}{name}": getattr(room, name)
    for prefix, room in ROOMS.items()
    for name in room.__all__
    if inspect.isfunction(getattr(room, name))
}
#: What a single example shows of several functions, or formulas that their text explains.
WITHOUT = {
    "hudi.add_record_key_filter",
    "hudi.read_record_key_filter",
    "hudi.sizing",
    "paimon.as_predicate",
    "paimon.build_index",
    "paimon.hash_bytes",
    "paimon.hash_long",
    "paimon.hash_longs",
    "paimon.hash_value",
    "paimon.must_read",
    "paimon.show",
    "paimon.sizing",
    "paimon.typed_forms",
}
WITH = sorted(set(FUNCTIONS) - WITHOUT)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table under the development policy with filters, one without, and one in clear."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "keys", "keys")
    table = customers(40)
    table = table.append_column("national_id", pa.array([f"{i:09}" for i in range(40)]))
    table = table.append_column("country", pa.array(["it", "no"] * 20))
    encryption = sb.pyarrow_encryption("keys/policy.toml", table.schema)
    for name, properties in {
        "out": encryption.encryption_properties(),
        "new": encryption.encryption_properties(),
        "plain": None,
    }.items():
        Path(name).mkdir()
        path = Path(name) / "part-0.parquet"
        pq.write_table(table, path, row_group_size=20, encryption_properties=properties)
    sb.add_bloom_filters("out", policy="keys/policy.toml")
    Path("dump.csv").write_text("who,when\nuser7@example.com,2026-01-31\n")
    return tmp_path


@pytest.mark.parametrize("name", WITH)
@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_example_does_what_it_shows(name: str) -> None:
    function = FUNCTIONS[name]
    parser = doctest.DocTestParser()
    example = parser.get_doctest(function.__doc__ or "", {"sb": sb}, name, None, None)
    assert example.examples, f"{name} has no example"
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert not told, "".join(told)


def test_what_has_no_example_is_there() -> None:
    assert set(FUNCTIONS) >= WITHOUT


#: Functions for users; the others of a room are its format, for programs.
DESCRIBED = {
    **{name: FUNCTIONS[name] for name in FUNCTIONS if "." not in name},
    **{name: FUNCTIONS[name] for name in FUNCTIONS if name.startswith("hudi.")},
    **{
        f"paimon.{name}": getattr(sb.paimon, name)
        for name in ("build_index", "build_indexes", "probe", "show")
    },
}
del DESCRIBED["hudi.sizing"]


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_public_docstring_names_every_argument(name: str) -> None:
    """In Google's style, which editors render."""
    check_sections(DESCRIBED[name])


@pytest.mark.parametrize(
    "name", ["add_bloom_filters", "advise", "audit", "reencrypt", "rotate_keys"]
)
def test_a_docstring_of_a_job_on_spark_names_every_argument(name: str) -> None:
    pytest.importorskip("pyspark")
    import secure_bloom.spark

    check_sections(getattr(secure_bloom.spark, name))


def check_sections(function: Callable[..., Any]) -> None:
    parts = re.split(
        r"^(Args|Returns|Raises|Example):$", inspect.getdoc(function) or "", flags=re.MULTILINE
    )
    assert parts[1::2] in (["Args", "Returns", "Raises"], ["Args", "Returns", "Raises", "Example"])
    named = re.findall(r"^    (\w+): ", parts[2], re.MULTILINE)
    assert sorted(named) == sorted(inspect.signature(function).parameters)
