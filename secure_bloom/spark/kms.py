"""The JVM's KMS client for each client of ``[kms]``, and the properties that it needs.

Spark's pages and event logs show properties, so none holds a secret: tokens and other secrets come
from files or from the environment of each process.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from secure_bloom.encryption.configuration import ConfigTable
from secure_bloom.encryption.kms.aws import encryption_context
from secure_bloom.encryption.kms.providers import check_kms
from secure_bloom.encryption.kms.vault import VaultSettings
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.spark_properties import JVM_PACKAGE
from secure_bloom.errors import PolicyError
from secure_bloom.spark.jvm import java, kms_jar


@dataclass(frozen=True, slots=True, kw_only=True)
class JvmClient:
    """A Java source of this package, and how its properties are made from a [kms] table."""

    name: str
    properties: Callable[[ConfigTable, Path], dict[str, str]]


def kms_config(policy: KeyPolicy, kms_client_class: str | None) -> dict[str, str]:
    """Return the configuration of a session whose JVM asks the policy's KMS.

    ``kms_client_class`` is a class of the user, whose jar must be in ``spark.jars``. Raises
    PolicyError if neither that class nor this package supports the policy's client.
    """
    if kms_client_class is not None:
        return {"spark.hadoop.parquet.encryption.kms.client.class": kms_client_class}
    client, table = check_kms(policy.kms)
    if client not in JVM_CLIENTS:
        raise PolicyError(
            f"client of [kms] is {client}: Spark needs a Java class that asks this KMS",
            hint="name it: session_config(policy, kms_client_class=...), its jar in spark.jars; "
            "docs/keys.md has a template",
        )
    # Here and not by the JVM's own error.
    java()
    served = JVM_CLIENTS[client]
    properties = served.properties(table, policy.base)
    return {
        "spark.jars": str(kms_jar()),
        "spark.hadoop.parquet.encryption.kms.client.class": f"{JVM_PACKAGE}.{served.name}",
        **{f"spark.hadoop.secure_bloom.{name}": value for name, value in properties.items()},
    }


def _keyring(table: ConfigTable, base: Path) -> dict[str, str]:
    keyring = table.text("keyring")
    if keyring is None:
        raise PolicyError('[kms] with client "keyring" names no keyring', hint='keyring = "PATH"')
    # Not kms.instance.url: parquet-java stores that one in the footer of every file.
    return {"keyring": str(base / keyring)}


def _vault(table: ConfigTable, base: Path) -> dict[str, str]:
    settings = VaultSettings.of(table, base)
    given = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    return {f"vault.{word}": _java(value) for word, value in given.items() if value is not None}


def _aws(table: ConfigTable, _base: Path) -> dict[str, str]:
    given = {f"aws.{word}": table.entries.get(word) for word in ("region", "endpoint_url")}
    given["aws.retry_seconds"] = table.get("retry_seconds", int)
    context = encryption_context(table)
    given["aws.encryption_context"] = json.dumps(context) if context else None
    return {name: _java(value) for name, value in given.items() if value is not None}


def _java(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


JVM_CLIENTS: Mapping[str, JvmClient] = {
    "keyring": JvmClient(name="SecureBloomKms", properties=_keyring),
    "vault": JvmClient(name="SecureBloomVaultKms", properties=_vault),
    "aws": JvmClient(name="SecureBloomAwsKms", properties=_aws),
}
