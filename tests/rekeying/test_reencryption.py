"""Files from one protection into another: the same rows, pages, indexes and verdicts afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.errors import FileChangedError
from secure_bloom.rekeying.reencryption import Reencryption
from secure_bloom.rekeying.rekey_report import RekeyedFile
from tests.rekeying.lake import KEYS, policy, rows, write_lake

_POLICIES = {
    "some columns": policy(),
    "signed": policy(mode="plaintext"),
    "CTR": policy(encryption='algorithm = "AES_GCM_CTR_V1"'),
    "uniform": policy(uniform=True, columns={}),
    "signed, CTR, uniform": policy(
        mode="plaintext", uniform=True, encryption='algorithm = "AES_GCM_CTR_V1"'
    ),
    "256 bits, single wrapping": policy(encryption="data_key_bits = 256\ndouble_wrapping = false"),
    "footer alone": policy(columns={}),
    "material outside": policy(encryption='key_material = "external"'),
}
_WHERE = "email = 'user777@example.com'"


class _Kms(pe.KmsClient):
    """The same keys for pyarrow."""

    def __init__(self, _: object) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, name: str) -> str:
        return KEYS.wrap_key(key, name)

    def unwrap_key(self, wrapped: str, name: str) -> bytes:
        return KEYS.unwrap_key(wrapped, name)


def by_pyarrow(path: Path) -> pa.Table:
    factory = pe.CryptoFactory(_Kms)
    properties = factory.file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    )
    return pq.ParquetFile(
        path, decryption_properties=properties, page_checksum_verification=True
    ).read()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake") / "plain"
    write_lake(folder)
    return folder


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("policies")
    found = {}
    for i, (name, text) in enumerate(_POLICIES.items()):
        found[name] = folder / f"{i}.toml"
        found[name].write_text(text)
    return found


def verdicts(folder: Path) -> list[object]:
    report = sb.probe(str(folder), "email", ["user777@example.com", "nobody"], keys=KEYS)
    return [
        [(group.filter, list(group.verdicts.values())) for group in file.row_groups]
        for file in report.files
    ]


def statistics_of(folder: Path) -> list[object]:
    report = sb.inspect(str(folder), keys=KEYS)
    return [[(g.row_group, g.rows) for g in file.row_groups] for file in report.files]


#: `test_any_protection_becomes_any_other_in_place` has them too.
_SLOW = ("signed", "CTR", "256 bits, single wrapping", "uniform")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in _SLOW)) for name in _POLICIES],
)
def test_a_plain_lake_comes_under_a_policy_and_back(
    name: str, lake: Path, policies: dict[str, Path], tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in lake.iterdir()}
    report = sb.reencrypt(str(lake), policy=policies[name], keys=KEYS, output=tmp_path / "sealed")
    assert [file.status for file in report.files] == ["reencrypted"] * 4, report.failed
    assert sb.audit(tmp_path / "sealed", policy=policies[name], keys=KEYS).findings == ()
    for path in sorted((tmp_path / "sealed").glob("*.parquet")):
        assert sb.read_table(path, keys=KEYS) == rows()
        # Of version 2 levels are in clear, as parquet-java writes them: not for pyarrow.
        if name != "material outside" and path.name.startswith("1.0"):
            assert by_pyarrow(path) == rows()
    assert verdicts(tmp_path / "sealed") == verdicts(lake)
    assert statistics_of(tmp_path / "sealed") == statistics_of(lake)
    plan = sb.explain(str(tmp_path / "sealed"), where=_WHERE, keys=KEYS)
    assert plan.rows == 4
    assert plan.row_groups_read < plan.row_groups
    opened = sb.decrypt(str(tmp_path / "sealed"), output=tmp_path / "clear", keys=KEYS)
    assert [file.status for file in opened.files] == ["decrypted"] * 4
    for path in sorted((tmp_path / "clear").glob("*.parquet")):
        assert pq.ParquetFile(path, page_checksum_verification=True).read() == rows()
        assert _pages(path) == _pages(lake / path.name)
    assert {path.name: path.read_bytes() for path in lake.iterdir()} == before


def _pages(path: Path) -> list[object]:
    """Statistics and sizes of every chunk, as pyarrow reads them."""
    metadata = pq.read_metadata(path)
    return [
        (chunk.path_in_schema, chunk.total_compressed_size, chunk.encodings, chunk.statistics)
        for group in range(metadata.num_row_groups)
        for chunk in (metadata.row_group(group).column(i) for i in range(metadata.num_columns))
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("signed", "some columns"),
        ("CTR", "uniform"),
        ("uniform", "signed, CTR, uniform"),
        ("256 bits, single wrapping", "material outside"),
        ("material outside", "some columns"),
        ("some columns", "some columns"),
    ],
)
def test_any_protection_becomes_any_other_in_place(
    old: str, new: str, lake: Path, policies: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "table"
    sb.reencrypt(str(lake), policy=policies[old], keys=KEYS, output=folder)
    report = sb.reencrypt(str(folder), policy=policies[new], keys=KEYS)
    wanted = "unchanged" if old == new else "reencrypted"
    assert {file.status for file in report.files} == {wanted}, report.failed
    assert sb.audit(folder, policy=policies[new], keys=KEYS).findings == ()
    assert all(sb.read_table(p, keys=KEYS) == rows() for p in folder.glob("*.parquet"))
    again = sb.reencrypt(str(folder), policy=policies[new], keys=KEYS)
    assert {file.status for file in again.files} == {"unchanged"}
    assert bool(list(folder.glob("_KEY_MATERIAL_FOR_*"))) == (new == "material outside")


def test_new_data_keys_are_made_on_request_and_the_layout_stays(
    lake: Path, policies: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "table"
    sb.reencrypt(str(lake), policy=policies["uniform"], keys=KEYS, output=folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    report = sb.reencrypt(str(folder), policy=policies["uniform"], keys=KEYS, new_data_keys=True)
    for file in report.files:
        assert file.status == "reencrypted"
        if not Path(file.path).stem.endswith(("snappy", "none")):
            # Without checksums, whose numbers take more or fewer bytes.
            assert file.bytes_after == file.bytes_before
        assert Path(file.path).read_bytes() != before[Path(file.path).name]
        assert sb.read_table(file.path, keys=KEYS) == rows()


def test_nothing_of_a_sensitive_column_stays_in_clear(
    lake: Path, policies: dict[str, Path], tmp_path: Path
) -> None:
    sb.reencrypt(str(lake), policy=policies["signed"], keys=KEYS, output=tmp_path / "signed")
    for path in (tmp_path / "signed").iterdir():
        assert b"user1234@example.com" not in path.read_bytes()
        assert b"user99" not in path.read_bytes()


def test_texts_of_the_footer_go_as_the_policy_says(lake: Path, tmp_path: Path) -> None:
    text = policy(mode="plaintext", more='drop_metadata = ["ARROW:schema"]')
    (tmp_path / "p.toml").write_text(text)
    source = next(lake.iterdir())
    assert b"ARROW:schema" in source.read_bytes()
    sb.reencrypt(str(source), policy=tmp_path / "p.toml", keys=KEYS, output=tmp_path / "out")
    assert b"ARROW:schema" not in (tmp_path / "out" / source.name).read_bytes()


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"write_page_index": True}])
@pytest.mark.parametrize("empty", [(0,), (0, 2), (2, 0, 2)], ids=str)
def test_row_groups_without_rows_are_reencrypted_and_decrypted(
    tmp_path: Path, empty: tuple[int, ...], options: dict[str, bool]
) -> None:
    """pyarrow writes one for a table without rows; its chunks name no data page."""
    table = pa.table({"email": ["a", "b"], "day": [1, None]})
    path = tmp_path / "x.parquet"
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        for count in empty:
            writer.write_table(table.slice(0, count))
    rows = pq.read_table(path)
    sb.add_bloom_filters(path, columns=["email"])
    for text in (policy(columns={"email": "k_pii"}), policy(uniform=True, columns={})):
        (tmp_path / "p.toml").write_text(text)
        (file,) = sb.reencrypt(path, policy=tmp_path / "p.toml", keys=KEYS).files
        assert file.error is None
        assert by_pyarrow(path).equals(rows)
        assert sb.read_table(path, keys=KEYS).equals(rows)
    assert sb.read_table(path, where="email = 'b'", keys=KEYS).num_rows == sum(empty) // 2
    (file,) = sb.decrypt(path, keys=KEYS, output=tmp_path / "clear").files
    assert file.error is None
    assert pq.read_table(tmp_path / "clear/x.parquet").equals(rows)


def test_every_damaged_module_is_told_with_its_place_and_nothing_is_written(
    lake: Path, policies: dict[str, Path], tmp_path: Path
) -> None:
    source = tmp_path / "one"
    sb.reencrypt(
        str(lake / "1.0-snappy.parquet"), policy=policies["uniform"], keys=KEYS, output=source
    )
    path = source / "1.0-snappy.parquet"
    whole = path.read_bytes()
    step = len(whole) // 40
    for at in range(5, len(whole) - 8, step):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        report = sb.reencrypt(str(path), policy=policies["signed"], keys=KEYS)
        (file,) = report.files
        assert file.status == "failed", at
        assert path.read_bytes() != whole
        assert [it.name for it in source.iterdir()] == [path.name]


def test_missing_keys_leave_files_as_they_were(
    lake: Path, policies: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "table"
    sb.reencrypt(str(lake), policy=policies["some columns"], keys=KEYS, output=folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    others = sb.Keyring(master_keys=dict.fromkeys(KEYS.master_keys, bytes(16)))
    report = sb.reencrypt(str(folder), policy=policies["uniform"], keys=others)
    assert {file.status for file in report.files} == {"failed"}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert all("does not fit" in str(file.error) for file in report.files)


def test_a_policy_that_encrypts_nothing_is_refused(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("[columns.email]\nbloom = true\n")
    with pytest.raises(sb.PolicyError, match="encrypts nothing"):
        sb.reencrypt(str(lake), policy=tmp_path / "p.toml", keys=KEYS)


def test_a_column_that_no_file_has_is_refused_before_anything_is_written(
    lake: Path, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(policy(columns={"emial": "k_pii"}))
    with pytest.raises(sb.PolicyError, match="emial"):
        sb.reencrypt(str(lake), policy=tmp_path / "p.toml", keys=KEYS, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_report_is_a_document(lake: Path, policies: dict[str, Path], tmp_path: Path) -> None:
    report = sb.reencrypt(
        str(lake), policy=policies["some columns"], keys=KEYS, output=tmp_path / "out"
    )
    document = json.loads(json.dumps(report.to_dict()))
    file = document["files"][0]
    assert file["footer_before"] == "plaintext"
    assert file["footer"] == "encrypted"
    assert file["master_keys"] == ["k_footer", "k_pii"]
    columns = {column["column"]: column for column in file["columns"]}
    assert columns["email"] == {"column": "email", "key_before": None, "key": "k_pii"}
    assert columns["id"]["key"] is None


@pytest.mark.parametrize(("losses", "status"), [(1, "reencrypted"), (2, "failed")])
def test_a_file_that_another_writer_replaced_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: int, status: str
) -> None:
    file, genuine, lost = write_lake(tmp_path / "plain")[0], Reencryption._reencrypt, []
    (tmp_path / "policy.toml").write_text(policy())

    def losing(self: Reencryption, path: str, target: str | None) -> RekeyedFile:
        if len(lost) < losses:
            lost.append(path)
            raise FileChangedError("the file was changed after it was read")
        return genuine(self, path, target)

    monkeypatch.setattr(Reencryption, "_reencrypt", losing)
    report = sb.reencrypt(file, policy=tmp_path / "policy.toml", keys=KEYS)
    assert [it.status for it in report.files] == [status]
    assert lost == [str(file)] * losses
