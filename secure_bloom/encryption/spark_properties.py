"""The Hadoop properties, as parquet-java reads them, that make Spark write as a policy says."""

from __future__ import annotations

from collections.abc import Mapping

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.errors import PolicyError

#: The Java package of our KMS clients.
JVM_PACKAGE = "secure_bloom.spark"
#: The property that names the class by which parquet-java encrypts and decrypts, and the class that
#: does it by properties. A reader needs no more: footers say which keys they want.
FACTORY_CLASS = "parquet.crypto.factory.class"
CRYPTO_FACTORY = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
#: parquet-java splits `parquet.encryption.column.keys` at these characters.
_SPARK_SEPARATORS = ",;:"


def spark_properties(
    footer_key: str,
    footer_mode: FooterMode,
    columns: Mapping[str, ColumnRule],
    encryption: EncryptionOptions,
    *,
    uniform: bool,
) -> dict[str, str]:
    """Return the properties, by names without the ``spark.hadoop.`` prefix.

    Raises PolicyError for rules that the properties cannot express.
    """
    # parquet-java takes the footer's key as it is: only spaces around it are lost.
    _check_spark_trims("the footer key", footer_key)
    return {
        FACTORY_CLASS: CRYPTO_FACTORY,
        **_keys(footer_key, columns, uniform=uniform),
        "parquet.encryption.plaintext.footer": _flag(footer_mode is FooterMode.SIGNED),
        "parquet.encryption.algorithm": str(encryption.algorithm),
        "parquet.encryption.data.key.length.bits": str(encryption.data_key_bits),
        "parquet.encryption.double.wrapping": _flag(encryption.double_wrapping),
        **_storage(encryption),
    }


def _storage(encryption: EncryptionOptions) -> dict[str, str]:
    # Inside is parquet-java's default.
    name = "parquet.encryption.key.material.store.internally"
    return {} if encryption.internal_storage else {name: _flag(False)}


def _keys(footer_key: str, columns: Mapping[str, ColumnRule], *, uniform: bool) -> dict[str, str]:
    # parquet-java refuses uniform.key together with footer.key or column.keys.
    if uniform and all(rule.key is None for rule in columns.values()):
        return {"parquet.encryption.uniform.key": footer_key}
    return {
        "parquet.encryption.footer.key": footer_key,
        "parquet.encryption.column.keys": _column_keys(columns),
        **({"parquet.encryption.complete.columns": "true"} if uniform else {}),
    }


def _column_keys(columns: Mapping[str, ColumnRule]) -> str:
    """Return ``k1:a,b;k2:c``, with keys and columns in alphabetical order."""
    paths: dict[str, list[str]] = {}
    # Sorted, so that one policy always gives one text: job configurations can be compared.
    for path, rule in sorted(columns.items()):
        if rule.key is not None:
            _check_spark_name("column", path)
            _check_spark_name("key", rule.key)
            paths.setdefault(rule.key, []).append(path)
    if not paths:
        raise PolicyError(
            "Spark cannot write an encrypted footer without an encrypted column",
            hint="give at least one column a key; or let Spark write it in clear, without this "
            "configuration, and then: secure-bloom reencrypt TABLE --policy FILE",
        )
    return ";".join(f"{key}:{','.join(paths[key])}" for key in sorted(paths))


def _check_spark_name(kind: str, name: str) -> None:
    if any(separator in name for separator in _SPARK_SEPARATORS):
        raise PolicyError(
            f"{kind} {name!r} cannot be named in parquet.encryption.column.keys, which is cut at "
            f"{' '.join(_SPARK_SEPARATORS)}",
            hint="an AWS key can go by its id or alias instead of its ARN",
        )
    _check_spark_trims(kind, name)


def _check_spark_trims(kind: str, name: str) -> None:
    if name != name.strip():
        raise PolicyError(f"{kind} {name!r} begins or ends with a space, which Spark cuts off")


def _flag(value: bool) -> str:
    return "true" if value else "false"
