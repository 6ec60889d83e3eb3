"""Configure a Spark session that writes and reads a policy's tables.

parquet-java does the encryption. It reads the keys of the columns from `parquet.encryption.*`
properties and asks a KMS class to wrap and unwrap them.  All of this fits into the session's
configuration.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.spark_columns import check_spark_columns
from secure_bloom.encryption.spark_ddl import spark_leaves
from secure_bloom.encryption.spark_properties import CRYPTO_FACTORY, FACTORY_CLASS
from secure_bloom.errors import located
from secure_bloom.spark.kms import kms_config

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


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
    a column that Spark cannot encrypt by its name is refused here, and not by a task.  Of a policy
    with several tables, ``table`` is the path or address of the one that the session writes.
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
