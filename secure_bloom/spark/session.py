"""What a Spark session must be told to write and read a policy's tables.

parquet-java does the encryption; it learns the keys of the columns from `parquet.encryption.*`
properties and asks a KMS class to wrap and unwrap them.  All of it fits into the session's
configuration.
"""

from __future__ import annotations

import os
from pathlib import Path

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.spark.jvm import KMS_CLIENT_CLASS, kms_jar

#: Of a policy's properties, what a reader needs too: footers tell which keys they want.
READER_PROPERTIES = ("parquet.crypto.factory.class",)


def session_config(
    policy: KeyPolicy | str | os.PathLike[str],
    *,
    writes: bool = True,
    kms_client_class: str | None = None,
) -> dict[str, str]:
    """The configuration for `SparkSession.builder.config(map=...)` under ``policy``.

    ``policy`` is a :class:`KeyPolicy` or the path of a `policy.toml`.  The class that serves a
    `[kms]` other than "keyring" is named by ``kms_client_class``; bring its jar in `spark.jars`.
    The result is empty for a policy that encrypts nothing.  Raises :class:`PolicyError` when that
    name or the keyring's is missing, and what :func:`kms_jar` raises.

    Things to know:

    - With ``writes`` every Parquet write of the session is encrypted, and parquet-java refuses
      tables that lack one of the policy's columns ("Encrypted column [email] not in file schema
      column list").  Where a session writes other tables too, pass ``writes=False``, which is
      enough to read, and give each encrypted write `.options(**policy.spark_properties())`.  To
      write one plain table in an encrypting session, give that write an empty
      `parquet.encryption.footer.key` and an empty `parquet.encryption.column.keys`.
    - `spark.jars` and `spark.hadoop.*` count when the session starts; the keyring must lie under
      the same path on every executor's machine.  Jars of your own: join them to `spark.jars` with
      a comma.
    - Python workers run `$PYSPARK_PYTHON`, else the `python3` on PATH: where `secure_bloom` is
      installed elsewhere, as in a virtual environment, set that variable before the session
      starts.  No entry of this configuration can: a Python driver ignores `spark.pyspark.python`.
    - The JVM keeps unwrapped keys for ten minutes (`parquet.encryption.cache.lifetime.seconds`):
      a changed keyring counts after that.
    """
    loaded = policy if isinstance(policy, KeyPolicy) else KeyPolicy.load(policy)
    properties = loaded.spark_properties()
    if not properties:
        return {}
    wanted = properties.keys() if writes else READER_PROPERTIES
    return {
        **{f"spark.hadoop.{name}": properties[name] for name in wanted},
        **_kms_config(loaded, kms_client_class),
    }


def _kms_config(policy: KeyPolicy, kms_client_class: str | None) -> dict[str, str]:
    """The KMS client's class; for the keyring also its jar and the keyring's path."""
    if kms_client_class is not None:
        return {"spark.hadoop.parquet.encryption.kms.client.class": kms_client_class}
    if policy.kms.get("client") != "keyring":
        asked = policy.kms.get("client", "not given")
        raise PolicyError(
            f"client of [kms] is {asked}: Spark needs a Java class that asks this KMS",
            hint="name it: session_config(policy, kms_client_class=...), its jar in spark.jars",
        )
    return {
        "spark.jars": str(kms_jar()),
        "spark.hadoop.parquet.encryption.kms.client.class": KMS_CLIENT_CLASS,
        # Not kms.instance.url: parquet-java stores that one in the footer of every file.
        "spark.hadoop.secure_bloom.keyring": str(_keyring_path(policy)),
    }


def _keyring_path(policy: KeyPolicy) -> Path:
    keyring = policy.kms.get("keyring")
    if not isinstance(keyring, str):
        raise PolicyError('[kms] with client "keyring" names no keyring', hint='keyring = "PATH"')
    return policy.base / keyring
