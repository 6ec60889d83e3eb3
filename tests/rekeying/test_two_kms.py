"""Files from one KMS to another: a keyring, a real OpenBao, moto's AWS KMS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.file_keys import KeyMaterial
from secure_bloom.encryption.kms import KeyMisfitError
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.errors import KeyUnavailableError
from secure_bloom.rekeying.new_keys import TwoKms
from testing.openbao import OpenBao
from testing.recording_kms import EVERY_KEY
from testing.tables import customers, keyring_json

boto3 = pytest.importorskip("boto3", reason="needs the extra aws")
moto_server = pytest.importorskip("moto.server", reason="needs moto and flask")

REGION, FILES, KEY = "eu-central-1", 2, bytes(range(16))


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, openbao: OpenBao) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("VAULT_TOKEN", openbao.root)


Kms = Callable[[], sb.KeyPolicy]


@pytest.fixture
def kms(openbao: OpenBao, aws: str, tmp_path: Path) -> dict[str, Kms]:
    """A policy at each KMS, with master keys that are made for it."""

    def at_keyring() -> sb.KeyPolicy:
        keys = {name: bytes([len(name)]) * 16 for name in ("k_footer", "k_pii")}
        (tmp_path / "old.json").write_text(keyring_json(keys))
        (tmp_path / "old.json").chmod(0o600)
        return policy({"client": "keyring", "keyring": "old.json"}, "k_footer", "k_pii", tmp_path)

    def at_openbao() -> sb.KeyPolicy:
        # The names are those in the keyring: which KMS wrapped a key shows when it unwraps.
        for name in {"k_footer", "k_pii"} - openbao.key_names():
            openbao.make_key(name)
        return policy(openbao.table(), "k_footer", "k_pii")

    def at_aws() -> sb.KeyPolicy:
        client = boto3.client("kms", region_name=REGION, endpoint_url=aws)
        names = [client.create_key()["KeyMetadata"]["KeyId"] for _ in range(2)]
        return policy({"client": "aws", "region": REGION, "endpoint_url": aws}, *names)

    return {"keyring": at_keyring, "openbao": at_openbao, "aws": at_aws}


def policy(
    kms: dict[str, object], footer: str, column: str, base: Path | None = None, **encryption: bool
) -> sb.KeyPolicy:
    return sb.KeyPolicy(
        kms=kms,
        base=base or Path.cwd(),
        footer_key=footer,
        columns={"email": ColumnRule(path="email", key=column)},
        encryption=EncryptionOptions(**encryption),
    )


def lake(folder: Path, wanted: sb.KeyPolicy) -> Path:
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(customers(20, number), folder / f"{number}.parquet")
    assert not sb.reencrypt(folder, policy=wanted).failed
    return folder


VERBS = {"reencrypt": sb.reencrypt, "rotate": sb.rotate_keys}


WAYS = [("keyring", "openbao"), ("openbao", "aws"), ("aws", "openbao"), ("openbao", "keyring")]


@pytest.mark.parametrize(
    ("old", "new", "verb"),
    [
        # Each verb goes every second way in every run.
        pytest.param(*way, verb, marks=[pytest.mark.slow] * ((place + turn) % 2))
        for place, way in enumerate(WAYS)
        for turn, verb in enumerate(VERBS)
    ],
)
def test_files_come_from_one_kms_to_another(
    tmp_path: Path, kms: dict[str, Kms], old: str, new: str, verb: str
) -> None:
    before, after = kms[old](), kms[new]()
    folder = lake(tmp_path / "t", before)
    rows = sb.read_table(folder, policy=before)
    # A run that was cut short has done some of the files.
    first = VERBS[verb](folder / "0.parquet", policy=after, old_policy=before)
    assert [file.error for file in first.files] == [None]
    report = VERBS[verb](folder, policy=after, old_policy=before)
    done = "reencrypted" if verb == "reencrypt" else "rotated"
    assert [file.status for file in report.files] == ["unchanged", done], report.failed
    assert sb.read_table(folder, policy=after) == rows
    with pytest.raises(sb.SecureBloomError):
        sb.read_table(folder, policy=before)
    again = VERBS[verb](folder, policy=after, old_policy=before)
    assert {file.status for file in again.files} == {"unchanged"}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("twice", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_equal_names_of_keys_do_not_pass_for_the_new_kms(
    tmp_path: Path, kms: dict[str, Kms], verb: str, twice: bool, inside: bool
) -> None:
    encryption = EncryptionOptions(double_wrapping=twice, internal_storage=inside)
    before, after = (
        policy(
            dict(it.kms), "k_footer", "k_pii", it.base,
            double_wrapping=twice, internal_storage=inside,
        )
        for it in (kms["keyring"](), kms["openbao"]())
    )  # fmt: skip
    assert before.encryption == encryption
    folder = lake(tmp_path / "t", before)
    report = VERBS[verb](folder, policy=after, old_policy=before)
    assert not any(file.status == "unchanged" for file in report.files), report.failed
    (tmp_path / "old.json").unlink()
    assert sb.read_table(folder, policy=after).num_rows == FILES * 20


def test_a_keyring_that_is_given_is_the_old_side_too(tmp_path: Path, kms: dict[str, Kms]) -> None:
    before, after = kms["keyring"](), kms["openbao"]()
    folder = lake(tmp_path / "t", before)
    old = sb.Keyring.load(tmp_path / "old.json")
    assert {f.status for f in sb.reencrypt(folder, policy=after, keys=old).files} == {"reencrypted"}
    assert {f.status for f in sb.reencrypt(folder, policy=after, keys=old).files} == {"unchanged"}
    assert sb.read_table(folder, policy=after).num_rows == FILES * 20


@pytest.mark.parametrize("verb", VERBS)
def test_the_hint_names_the_old_policy(tmp_path: Path, kms: dict[str, Kms], verb: str) -> None:
    folder = lake(tmp_path / "t", kms["keyring"]())
    for wanted in (kms["openbao"](), kms["aws"]()):
        report = VERBS[verb](folder, policy=wanted)
        assert len(report.failed) == FILES
        assert all("--old-policy FILE" in str(file.hint) for file in report.failed)


def test_an_old_policy_goes_without_moves(tmp_path: Path, kms: dict[str, Kms]) -> None:
    old = kms["keyring"]()
    with pytest.raises(sb.PolicyError, match="which keys files have now"):
        sb.rotate_keys(tmp_path, policy=old, old_policy=old, moves={"k_pii": "k_footer"})


def test_the_new_kms_says_what_is_wrong_with_a_key_of_its_own() -> None:
    new = sb.Keyring(master_keys={"k_new": KEY})
    kms = TwoKms(sb.Keyring(master_keys={"k_old": KEY}), new)
    wrapped = new.wrap_key(KEY, "k_new")
    assert not kms.is_old(wrapped, "k_new")
    with pytest.raises(KeyMisfitError):
        TwoKms(new, sb.Keyring(master_keys={"k_new": bytes(16)})).unwrap_key(
            EVERY_KEY.wrap_key(KEY, "k_pii"), "k_new"
        )
    with pytest.raises(KeyUnavailableError, match="k_nowhere"):
        kms.unwrap_key(wrapped, "k_nowhere")


def test_key_material_tells_whose_it_is() -> None:
    old, new = (sb.Keyring(master_keys={"k": key}) for key in (KEY, bytes(16)))
    for keyring, is_old in ((old, True), (new, False)):
        material = KeyMaterial(
            is_footer_key=False, master_key_id="k", wrapped_dek=keyring.wrap_key(KEY, "k")
        )
        assert TwoKms(old, new).has_old(material) is is_old
        assert "wrappedDEK" in json.loads(material.serialize())
