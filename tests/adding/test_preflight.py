"""What cannot be is told before a file is written; what one file cannot do stops no other."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.adding import preflight
from secure_bloom.adding.in_place import append_mark
from secure_bloom.adding.preflight import Survey, check_few, check_surveys, survey_file
from secure_bloom.adding.request import FilterRequest, filter_request
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import (
    FormatError,
    KeyUnavailableError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from testing.tables import KEYRING, Mode, customers, write


def _survey(path: Path, *columns: str, keys: object = KEYRING, **options: bool) -> Survey:
    request = filter_request(columns, options.pop("policy", None))
    return survey_file(str(path), request, KeyResolver(keys))


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


@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"not parquet at all", b"PAR1" + bytes(100) + b"PAR1", b"PARE" * 100],
    ids=["empty", "magic", "text", "zeros", "magics"],
)
def test_what_is_no_parquet_file_is_a_failure_of_that_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    found = _survey(path, "email")
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
def test_a_torn_tail_is_left_to_the_run(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(5), mode)
    good = path.read_bytes()
    torn = good + append_mark(len(good)) + bytes(500)
    path.write_bytes(torn)
    assert isinstance(_survey(path, "email").failure, FormatError)
    assert path.read_bytes() == torn


# --- a few files ------------------------------------------------------------------------------


def _lake(folder: Path, files: int, special: dict[int, pa.Table]) -> list[str]:
    usual = write(folder / "usual", pa.table({"id": [1, 2]})).read_bytes()
    for number in range(files):
        path = folder / f"{number:03}.parquet"
        if number in special:
            write(path, special[number])
        else:
            path.write_bytes(usual)
    (folder / "usual").unlink()
    return [str(path) for path in sorted(folder.glob("*.parquet"))]


def _opened_by(
    monkeypatch: pytest.MonkeyPatch, files: list[str], *columns: str
) -> tuple[list[str], SecureBloomError | None]:
    """The files that are looked at, and the error of the request."""
    seen: list[str] = []
    look = preflight.survey_file

    def counted(path: str, request: FilterRequest, resolver: KeyResolver) -> Survey:
        seen.append(path)
        return look(path, request, resolver)

    monkeypatch.setattr(preflight, "survey_file", counted)
    try:
        check_few(files, filter_request(columns, None), KeyResolver(None))
    except SecureBloomError as error:
        return seen, error
    return seen, None


def test_a_few_files_from_all_over_the_run_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _lake(tmp_path, 40, {})
    seen, error = _opened_by(monkeypatch, files, "id")
    assert error is None
    assert seen == files[::5]


def test_a_column_is_looked_for_until_a_file_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _lake(tmp_path, 40, {13: pa.table({"id": [1], "late": [2]})})
    seen, error = _opened_by(monkeypatch, files, "late")
    assert error is None
    assert seen[-1] == files[13]
    assert len(seen) == len(set(seen)) < 20


def test_a_column_that_no_file_has_is_told_before_any_is_written(tmp_path: Path) -> None:
    files = _lake(tmp_path, 40, {3: pa.table({"id": [1], "name": ["x"]})})
    before = [Path(file).read_bytes() for file in files]
    with pytest.raises(PolicyError, match="there is no column nmae") as caught:
        sb.add_bloom_filters(tmp_path, columns=["id", "nmae"], jobs=1)
    assert caught.value.hint == "did you mean name"
    assert [Path(file).read_bytes() for file in files] == before


def test_what_only_another_file_shows_fails_that_file(tmp_path: Path) -> None:
    _lake(tmp_path, 40, {7: pa.table({"id": [True, False]})})
    report = sb.add_bloom_filters(tmp_path, columns=["id"], jobs=1)
    assert [file.status for file in report.files].count("added") == 39
    (failed,) = report.failed
    assert failed.path.endswith("007.parquet")
    assert "BOOLEAN" in str(failed.error)
