"""Configure a Spark session that writes and reads a policy's tables.

parquet-java does the encryption. It reads the keys of the columns from `parquet.encryption.*`
properties and asks a KMS class to wrap and unwrap them.  All of this fits into the session's
configuration.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from secure_bloom.auditing.checks.session_properties import check_properties
from secure_bloom.auditing.rules.policy_rules import SPARK_COLUMN_UNKNOWN
from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.spark_columns import check_spark_columns
from secure_bloom.encryption.spark_ddl import spark_leaves
from secure_bloom.encryption.spark_properties import CRYPTO_FACTORY, FACTORY_CLASS
from secure_bloom.errors import located
from secure_bloom.spark.jobs_of_call import context_of
from secure_bloom.spark.kms import kms_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

#: What parquet-java reads when it writes, of what a policy says.
_WRITTEN = ("footer.key", "column.keys", "uniform.key", "complete.columns", "plaintext.footer")
_STRENGTH = ("algorithm", "data.key.length.bits")


@checked_arguments
def session_config(
    policy: KeyPolicy | str | os.PathLike[str],
    *,
    writes: bool = True,
    kms_client_class: str | None = None,
    schema: StructType | None = None,
    table: str | os.PathLike[str] | None = None,
) -> dict[str, str]:
    """Return the configuration for `SparkSession.builder.config(map=...)` under ``policy``.

    ``policy`` is a :class:`KeyPolicy` or the path of a `policy.toml`.  Keyrings, Vault and OpenBao
    are served by Java classes of this package.  For another `[kms]`, name your own class in
    ``kms_client_class``, and add its jar to `spark.jars`.  The result is empty for a policy that
    encrypts nothing.  ``schema`` is the schema of the table to be written, if available.  With it,
    a column that Spark cannot encrypt by its name is refused here, and not by a task.  If the
    policy has several tables, ``table`` is the path or address of the one that the session writes.
    Without ``table`` the session can only read, with ``writes=False``.  Raises
    :class:`PolicyError` for that column, and if no class serves the policy's KMS. Raises
    :class:`SparkUnavailableError` without Java.

    Things to know:

    - With ``writes`` every Parquet write of the session is encrypted, and parquet-java refuses
      tables that lack one of the policy's columns ("Encrypted column [email] not in file schema
      column list").  If a session writes other tables, too, pass ``writes=False``, which is enough
      to read, and give each encrypted write `.options(**policy.spark_properties())`.  To write one
      plain table in an encrypting session, give that write an empty `parquet.encryption.footer.key`
      and an empty `parquet.encryption.column.keys`.
    - `spark.jars` and `spark.hadoop.*` are read when the session starts.  Keyring, token and CA
      files must have the same path on every executor's machine.  Add your own jars to
      `spark.jars` with a comma.
    - No secret is part of the configuration: with Vault or OpenBao the driver and each executor
      need VAULT_TOKEN or BAO_TOKEN in their environment, or the files that `[kms]` names.
    - Python workers run `$PYSPARK_PYTHON`, else the `python3` on PATH: where `secure_bloom` is
      installed elsewhere, as in a virtual environment, set that variable before the session
      starts.  This configuration cannot set it, because a Python driver ignores
      `spark.pyspark.python`.
    - The JVM keeps unwrapped keys for ten minutes (`parquet.encryption.cache.lifetime.seconds`):
      a changed keyring is used only after that.
    """
    loaded = policy if isinstance(policy, KeyPolicy) else KeyPolicy.load(policy)
    loaded = loaded if table is None else loaded.for_table(table)
    if loaded.footer_key is None:
        return {}
    properties = {FACTORY_CLASS: CRYPTO_FACTORY}
    if writes:
        leaves = None if schema is None else spark_leaves(schema.jsonValue())
        loaded = loaded if leaves is None else loaded.for_columns(leaves)
        properties = loaded.spark_properties()
        with located(path=loaded.source):
            check_spark_columns(loaded, leaves)
    return {
        **{f"spark.hadoop.{name}": value for name, value in properties.items()},
        **kms_config(loaded, kms_client_class),
    }


def warn_of_other_policy(spark: SparkSession, policy: KeyPolicy | None) -> None:
    """Warn if the session encrypts its writes in another way than the policy says.

    A session keeps the configuration with which it started, also if ``getOrCreate`` is called with
    another one. No warning is given for a session whose writes name their keys themselves, for a
    policy with several tables, and for Spark Connect, which does not show the configuration.
    """
    if policy is None or policy.footer_key is None or policy.tables or context_of(spark) is None:
        return
    names = [FACTORY_CLASS, *(f"parquet.encryption.{it}" for it in (*_WRITTEN, *_STRENGTH))]
    session: Any = spark
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    found = {name: value for name in names if (value := hadoop.get(name))}
    if not found.keys() & {f"parquet.encryption.{it}" for it in ("footer.key", "uniform.key")}:
        return
    # A session may write columns of other tables, too.
    wrong = [it for it in check_properties(found, policy, {}) if it.id != SPARK_COLUMN_UNKNOWN.id]
    if wrong:
        more = "" if len(wrong) == 1 else f", and {len(wrong) - 1} more"
        warnings.warn(
            f"the session writes otherwise than the policy {policy.source or 'of this call'}: "
            f"{wrong[0].message}{more}. A session keeps the configuration with which it started: "
            "start another one with session_config of this policy",
            stacklevel=6,
        )
