"""The public names are there, and cost little to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import secure_bloom

WANTED = {
    "add_bloom_filters",
    "audit",
    "Finding",
    "probe",
    "inspect",
    "BloomFilterOptions",
    "SplitBlockBloomFilter",
    "Verdict",
    "KmsClient",
    "Keyring",
    "ExplicitKeys",
    "KeyPolicy",
    "SecureBloomError",
    "FormatError",
    "UnsupportedFeatureError",
    "IntegrityError",
    "KeyUnavailableError",
    "FileChangedError",
    "PolicyError",
}


def test_every_public_name_is_there() -> None:
    assert set(secure_bloom.__all__) >= WANTED
    assert dir(secure_bloom) == sorted(secure_bloom.__all__)


@pytest.mark.parametrize("name", sorted(secure_bloom.__all__))
def test_a_public_name_is_documented(name: str) -> None:
    assert getattr(secure_bloom, name).__doc__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'add_filters'"):
        _ = secure_bloom.add_filters


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import secure_bloom", {"numpy", "pyarrow", "pyspark"}),
        ("from secure_bloom import probe, inspect", {"pyarrow", "pyspark"}),
        # A process that hands out files to others begins with this.
        ("from secure_bloom import add_bloom_filters", {"numpy", "pyarrow", "pyspark"}),
    ],
)
def test_an_import_does_not_bring_heavy_packages(code: str, heavy: set[str]) -> None:
    script = f"{code}; import sys; print(*(set(sys.modules) & {heavy!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
