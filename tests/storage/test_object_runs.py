"""The main job on an object store, end to end: add, probe and inspect by URI."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule
from testing import command_line
from testing.storage import Bucket
from testing.tables import KEYRING, Mode, crypto_factory, customers, keyring_json, read, write
from tests.storage.other_stores import replaced_right_before_a_write

ROWS = 300
KEYS = ["lake/day=1/part-0.parquet", "lake/day=2/part-0.parquet"]


@pytest.fixture
def lake(bucket: Bucket, tmp_path: Path, mode: Mode) -> Bucket:
    """Two objects of customers in ``lake/``, and what Spark leaves beside them."""
    for seed, key in enumerate(KEYS):
        path = write(tmp_path / "x.parquet", customers(ROWS, seed), mode, row_group_size=100)
        bucket.put(key, body=path.read_bytes())
        path.unlink()
    bucket.put("lake/_SUCCESS", "lake/day=1/.part-0.parquet.crc", body=b"")
    return bucket


def _rows(content: bytes, folder: Path, mode: Mode) -> pa.Table:
    path = folder / "fetched.parquet"
    path.write_bytes(content)
    return read(path, encrypted=mode is not Mode.PLAIN)


def _check(uri: str, files: int = 2) -> None:
    """Filters answer and are seen."""
    email = customers(ROWS, 0)["email"][0].as_py()
    probed = sb.probe(uri, "email", [email, "nobody"], keys=KEYRING)
    assert len(probed.files) == files
    assert not probed.failed
    said = [group.verdicts for file in probed.files for group in file.row_groups]
    assert {str(each["nobody"]) for each in said} == {"absent"}
    assert "maybe" in {str(each[email]) for each in said}
    inspected = sb.inspect(uri, keys=KEYRING)
    for file in inspected.files:
        assert file.error is None
        assert all(group.columns[0].bloom is not None for group in file.row_groups)


@pytest.mark.parametrize(
    ("mode", "scheme"),
    [
        (Mode.PLAIN, "s3"),
        (Mode.ENCRYPTED, "s3a"),
        *(
            pytest.param(mode, "s3", marks=pytest.mark.slow)
            for mode in (Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM)
        ),
    ],
)
def test_objects_get_filters(lake: Bucket, tmp_path: Path, mode: Mode, scheme: str) -> None:
    before = lake.objects()
    uri = lake.uri("lake", scheme)
    report = sb.add_bloom_filters(uri, columns=["email", "id"], keys=KEYRING)
    assert [(file.path, file.status) for file in report.files] == [
        (lake.uri(key, scheme), "added") for key in KEYS
    ]
    after = lake.objects()
    assert after.keys() == before.keys()
    for seed, key in enumerate(KEYS):
        assert _rows(after[key], tmp_path, mode).equals(customers(ROWS, seed))
        assert len(after[key]) == report.files[seed].bytes_after
    _check(uri)
    _check(lake.uri(KEYS[0], scheme), files=1)
    again = sb.add_bloom_filters(uri, columns=["email"], keys=KEYRING)
    assert {file.status for file in again.files} == {"unchanged"}
    replaced = sb.add_bloom_filters(uri, columns=["email"], keys=KEYRING, replace_filters=True)
    assert {f.action for file in replaced.files for f in file.filters} == {"replaced"}
    _check(uri)


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED])
def test_an_object_replaced_in_the_middle_of_a_run_is_planned_anew(
    lake: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (lake.objects()[key] for key in KEYS)
    replaced_right_before_a_write(monkeypatch, lambda: lake.put(KEYS[0], body=second))
    report = sb.add_bloom_filters(lake.uri(KEYS[0]), columns=["email"], keys=KEYRING)
    assert [file.status for file in report.files] == ["added"]
    found = lake.objects()[KEYS[0]]
    assert (first != second, len(found) > len(second)) == (True, True)
    assert _rows(found, tmp_path, Mode.ENCRYPTED).equals(customers(ROWS, 1))


@pytest.mark.parametrize("mode", [Mode.PLAIN])
def test_in_place_is_refused_with_a_hint(lake: Bucket) -> None:
    before = lake.objects()
    with pytest.raises(sb.UnsupportedFeatureError, match="objects cannot be extended") as caught:
        sb.add_bloom_filters(lake.uri("lake"), columns=["email"], in_place=True)
    assert "leave out --in-place" in str(caught.value.hint)
    assert lake.objects() == before


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED])
def test_output_goes_from_disk_to_store_and_back(
    lake: Bucket, bucket: Bucket, tmp_path: Path, mode: Mode
) -> None:
    down, up = tmp_path / "down", bucket.uri("up/again")
    there = sb.add_bloom_filters(lake.uri("lake"), columns=["email"], keys=KEYRING, output=down)
    assert not there.failed
    names = [key.removeprefix("lake/") for key in KEYS]
    assert sorted(str(p.relative_to(down)) for p in down.rglob("*.parquet")) == names
    back = sb.add_bloom_filters(down, columns=["email", "id"], keys=KEYRING, output=up)
    assert not back.failed
    objects = bucket.objects()
    assert [key for key in objects if key.startswith("up/")] == [f"up/again/{n}" for n in names]
    for seed, name in enumerate(names):
        assert _rows(objects[f"up/again/{name}"], tmp_path, mode).equals(customers(ROWS, seed))
    _check(str(down))
    _check(up)
    within = sb.add_bloom_filters(
        bucket.uri(KEYS[0]), columns=["email"], keys=KEYRING, output=bucket.uri("single")
    )
    assert not within.failed
    assert "single/part-0.parquet" in bucket.objects()


def test_key_material_outside_an_object_follows_it(bucket: Bucket, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    configuration = pe.EncryptionConfiguration(
        footer_key="k_footer", column_keys={"k_pii": ["email"]}, internal_key_material=False
    )
    properties = crypto_factory().file_encryption_properties(
        pe.KmsConnectionConfig(), configuration, str(path)
    )
    pq.write_table(customers(ROWS, 0), path, encryption_properties=properties)
    material = "_KEY_MATERIAL_FOR_x.parquet.json"
    for name in ("x.parquet", material):
        bucket.put(f"from/{name}", body=(tmp_path / name).read_bytes())
    for place in ("from", "to"):
        report = sb.add_bloom_filters(
            bucket.uri("from"),
            columns=["email"],
            keys=KEYRING,
            output=None if place == "from" else bucket.uri(place),
        )
        assert not report.failed
        objects = bucket.objects()
        assert objects[f"{place}/{material}"] == (tmp_path / material).read_bytes()
        _check(bucket.uri(place), files=1)


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED])
def test_the_command_line_takes_uris(lake: Bucket, tmp_path: Path) -> None:
    keyring = tmp_path / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)
    uri, email = lake.uri("lake", "s3a"), customers(ROWS, 0)["email"][0].as_py()

    def run(*words: str, code: int = 0) -> dict:
        done = command_line.run(*words, "--keyring", keyring, "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    added = run("add", uri, "--column", "email")
    assert [file["path"] for file in added["files"]] == [lake.uri(key, "s3a") for key in KEYS]
    assert len(run("probe", uri, "email", email)["files"]) == 2
    run("probe", uri, "email", "nobody", code=1)
    groups = run("inspect", uri)["files"][0]["row_groups"]
    assert groups[0]["columns"][0]["bloom"]["bytes"] > 0


@pytest.mark.parametrize("mode", [Mode.SIGNED])
def test_objects_are_audited(lake: Bucket) -> None:
    material = "lake/day=1/_KEY_MATERIAL_FOR_gone.parquet.json"
    bucket_before = lake.objects()
    lake.put(material, body=b"{}")
    rule = ColumnRule(path="email", key="k_pii")
    policy = sb.KeyPolicy(footer_key="k_footer", columns={"email": rule})
    report = sb.audit(lake.uri("lake"), policy=policy, keys=KEYRING, check_values=True)
    found = {(finding.id, finding.path) for finding in report.findings}
    in_clear = {
        (name, lake.uri(key))
        for name in ("footer-not-encrypted", "encoding-data-in-clear", "key-not-in-policy")
        for key in KEYS
    }
    assert found == {*in_clear, ("key-material-orphaned", lake.uri(material))}
    assert lake.objects() == {**bucket_before, material: b"{}"}
