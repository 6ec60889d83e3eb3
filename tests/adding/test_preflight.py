"""What cannot be is told before a file is written; what one file cannot do stops no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.adding.append_mark import append_mark
from secure_bloom.adding.preflight import Survey, check_surveys, survey_file
from secure_bloom.adding.request import filter_request
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.encryption.policy import ColumnRule, KeyPolicy
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    PolicyError,
    UnsupportedFeatureError,
)
from tests.tables import KEYRING, Mode, customers, write


def _survey(path: Path, *columns: str, keys: object = KEYRING, **options: bool) -> Survey:
    request = filter_request(columns, options.pop("policy", None))
    return survey_file(str(path), request, KeyResolver(keys), **options)


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
def test_a_file_that_fits_the_request(tmp_path: Path, mode: Mode) -> None:
    found = _survey(write(tmp_path / "x.parquet", customers(5), mode), "email", "nobody")
    assert (found.refusal, found.failure, found.missing) == (None, None, ("nobody",))
    assert found.columns == tuple(customers(1).column_names)


def test_a_boolean_column_is_a_refusal_of_the_request(tmp_path: Path) -> None:
    table = customers(2).append_column("flag", [[True, False]])
    found = _survey(write(tmp_path / "x.parquet", table), "id", "flag")
    assert found.failure is None
    with pytest.raises(UnsupportedFeatureError, match="flag is BOOLEAN") as caught:
        check_surveys([found])
    assert caught.value.path == str(tmp_path / "x.parquet")


def test_keys_and_policy_are_looked_at_before_anything_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(5), Mode.ENCRYPTED)
    assert isinstance(_survey(path, "email", keys=None).failure, KeyUnavailableError)
    rules = {"id": ColumnRule(path="id", key="k_pii")}
    found = _survey(path, "id", policy=KeyPolicy(footer_key="k_footer", columns=rules))
    assert isinstance(found.failure, PolicyError)
    assert found.failure.path == str(path)


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"not parquet at all", b"PAR1" + bytes(100) + b"PAR1", b"PARE" * 100],
    ids=["empty", "magic", "text", "zeros", "magics"],
)
def test_what_is_no_parquet_file_is_a_failure_of_that_file(
    tmp_path: Path, content: bytes, repair: bool
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    found = _survey(path, "email", repair=repair)
    assert isinstance(found.failure, FormatError)
    assert found.failure.path == str(path)
    assert path.read_bytes() == content


def test_a_column_that_no_readable_file_has_is_refused() -> None:
    failure = Survey(path="broken", failure=FormatError("broken"))
    one = Survey(path="1", columns=("email", "id"), missing=("emial", "iban"))
    two = Survey(path="2", columns=("email", "iban"), missing=("emial",))
    with pytest.raises(PolicyError, match="no column emial") as caught:
        check_surveys([failure, one, two])
    assert caught.value.hint == "did you mean email"


def test_a_column_that_one_file_has_is_enough() -> None:
    failure = Survey(path="broken", failure=FormatError("broken"))
    one = Survey(path="1", columns=("email",), missing=("iban",))
    two = Survey(path="2", columns=("email", "iban"))
    assert check_surveys(iter([failure, one, two])) == {"broken": failure.failure}


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
def test_a_torn_tail_is_cut_off_only_when_asked_for(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(5), mode)
    good = path.read_bytes()
    torn = good + append_mark(len(good)) + bytes(500)
    path.write_bytes(torn)
    assert isinstance(_survey(path, "email").failure, FormatError)
    assert path.read_bytes() == torn
    assert _survey(path, "email", repair=True).failure is None
    assert path.read_bytes() == good
