"""What a session is told of the KMS of each client."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError, SparkUnavailableError
from secure_bloom.spark import kms
from secure_bloom.spark.kms import JVM_CLIENTS, kms_config

pytestmark = pytest.mark.spark


def _policy(folder: Path, client: str) -> KeyPolicy:
    path = folder / "policy.toml"
    path.write_text(f'[kms]\n{client}\n[footer]\nkey = "k"\n')
    return KeyPolicy.load(path)


def test_a_keyring_s_path_is_a_property_and_its_class_comes_along(
    spark_installed: None, tmp_path: Path
) -> None:
    (tmp_path / "ring.json").write_text('{"version": 1}')
    found = kms_config(_policy(tmp_path, 'client = "keyring"\nkeyring = "ring.json"'), None)
    assert str(tmp_path / "ring.json") in found.values()
    assert any(value.endswith("SecureBloomKms") for value in found.values())
    assert found["spark.jars"].endswith(".jar")


def test_a_class_of_ones_own_needs_no_java_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a client of Spark Connect, whose JVM is elsewhere."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    policy = _policy(tmp_path, 'client = "keyring"\nkeyring = "ring.json"')
    assert "org.example.Kms" in kms_config(policy, "org.example.Kms").values()
    with pytest.raises(SparkUnavailableError, match="Java was not found in JAVA_HOME"):
        kms_config(policy, None)


def test_a_client_of_one_s_own_needs_a_class_of_one_s_own(tmp_path: Path) -> None:
    policy = _policy(tmp_path, 'client = "package.module:Class"')
    with pytest.raises(PolicyError):
        kms_config(policy, None)
    assert "org.example.Kms" in kms_config(policy, "org.example.Kms").values()


@pytest.mark.parametrize("client", JVM_CLIENTS)
def test_every_client_has_its_source(client: str) -> None:
    assert Path(kms.__file__).with_name(f"{JVM_CLIENTS[client].name}.java").exists()
