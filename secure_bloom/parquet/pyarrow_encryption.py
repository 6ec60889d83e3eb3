"""Make the arguments with which pyarrow encrypts and decrypts files as a policy says.

pyarrow takes only a KMS client of its own class. :class:`PyarrowKms` makes a client of this package
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.kms import ExplicitKeys, KmsClient, unwrap_with, wrap_with
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import KeyUnavailableError, PolicyError, UnsupportedFeatureError


class PyarrowKms(pe.KmsClient):  # type: ignore[misc]
    """A pyarrow KMS client that wraps and unwraps by ``kms``.

    Use it as ``CryptoFactory(lambda _: PyarrowKms(kms))`` of ``pyarrow.parquet.encryption``.
    Without ``kms`` every key is missing.  Raises KeyUnavailableError if the KMS refuses,
    KmsUnavailableError if it is down.
    """

    @checked_arguments
    def __init__(self, kms: KmsClient | None) -> None:
        super().__init__()
        self._kms = kms

    @checked_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` wrapped under the master key."""
        return wrap_with(self._found(master_key_identifier), key_bytes, master_key_identifier)

    @checked_arguments
    def unwrap_key(self, wrapped_key: str | bytes, master_key_identifier: str) -> bytes:
        """Return the key that :meth:`wrap_key` wrapped."""
        # pyarrow hands over bytes, although its own description says text.
        text = wrapped_key.decode() if isinstance(wrapped_key, bytes) else wrapped_key
        return unwrap_with(self._found(master_key_identifier), text, master_key_identifier)

    def _found(self, master_key_id: str) -> KmsClient:
        if self._kms is None:
            raise KeyUnavailableError(f"there is no KMS for master key {master_key_id!r}")
        return self._kms


@dataclass(frozen=True, slots=True, kw_only=True)
class PyarrowEncryption:
    """The arguments of pyarrow's readers and writers, made from a policy.

    ``factory``, ``connection`` and ``configuration`` are pyarrow objects, as
    ``pyarrow.dataset.ParquetEncryptionConfig`` takes them.
    """

    factory: pe.CryptoFactory
    connection: pe.KmsConnectionConfig
    configuration: pe.EncryptionConfiguration

    def encryption_properties(self) -> pe.FileEncryptionProperties:
        """Return properties for one ``pq.write_table(..., encryption_properties=...)``.

        Each call makes new data keys, so no two files share a key.
        """
        return self.factory.file_encryption_properties(self.connection, self.configuration)

    def decryption_properties(self) -> pe.FileDecryptionProperties:
        """Return properties for any number of ``pq.read_table(..., decryption_properties=...)``."""
        return self.factory.file_decryption_properties(self.connection)


@checked_arguments
def pyarrow_encryption(
    policy: GivenPolicy, schema: pa.Schema, *, keys: GivenKeys = None
) -> PyarrowEncryption:
    """Return the arguments for pyarrow to write and read tables of ``schema`` under ``policy``.

    Args:
        policy: A KeyPolicy, or the path of one. Of several tables, give that of the table:
            ``policy.for_table(PATH)``.
        schema: The schema of the table.
        keys: A keyring or KMS client; by default the KMS of ``policy``.

    Returns:
        An object that makes pyarrow's encryption and decryption properties.

    Raises:
        PolicyError: The policy encrypts nothing, or names a column that ``schema`` lacks.
        UnsupportedFeatureError: The policy wants key material in files of its own, which pyarrow
            cannot write.

    Example:
        >>> encryption = pyarrow_encryption("keys/policy.toml", table.schema)  # doctest: +SKIP
        >>> properties = encryption.encryption_properties()  # doctest: +SKIP
        >>> pq.write_table(table, "x.parquet", encryption_properties=properties)  # doctest: +SKIP
    """
    access = Access.of(keys, policy)
    loaded = access.policy
    if loaded is None or loaded.footer_key is None:
        raise PolicyError("the policy encrypts nothing", hint="write without encryption properties")
    if loaded.tables:
        raise PolicyError(
            f"the policy has several tables: {', '.join(loaded.tables)}",
            hint="give that of one: policy.for_table(PATH)",
        )
    if not loaded.encryption.internal_storage:
        raise UnsupportedFeatureError("pyarrow writes no key material beside files")
    kms = access.key_source()
    if isinstance(kms, ExplicitKeys):
        raise PolicyError("explicit keys cannot wrap keys", hint="give a keyring or a KMS client")
    return PyarrowEncryption(
        factory=pe.CryptoFactory(lambda _: PyarrowKms(kms)),
        connection=pe.KmsConnectionConfig(),
        configuration=_configuration(loaded, schema),
    )


def _configuration(policy: KeyPolicy, schema: pa.Schema) -> pe.EncryptionConfiguration:
    column_keys = _column_keys(policy, schema)
    options = policy.encryption
    # pyarrow encrypts either some columns under their own keys or all under the footer's.
    is_uniform = set(column_keys) == {policy.footer_key} and policy.uniform
    protection = {"uniform_encryption": True} if is_uniform else {"column_keys": column_keys}
    return pe.EncryptionConfiguration(
        footer_key=policy.footer_key,
        plaintext_footer=policy.footer_mode is FooterMode.SIGNED,
        encryption_algorithm=str(options.algorithm),
        double_wrapping=options.double_wrapping,
        data_key_length_bits=options.data_key_bits,
        internal_key_material=True,
        **protection,
    )


def _column_keys(policy: KeyPolicy, schema: pa.Schema) -> dict[str, list[str]]:
    """Return master key -> the leaves under it, by pyarrow's names."""
    # pyarrow itself is asked, because its versions differ in how they name lists and maps.
    written = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([], schema), written)
    parquet = pq.ParquetFile(pa.BufferReader(written.getvalue())).schema
    leaves = [parquet.column(number).path.split(".") for number in range(len(parquet))]
    policy = policy.for_columns(leaves)
    for rule in policy.columns.values():
        path = rule.path.split(".")
        if rule.key is not None and not any(leaf[: len(path)] == path for leaf in leaves):
            raise PolicyError("the schema has no such column", column=rule.path)
    clear = [tuple(leaf) for leaf in leaves if policy.key_for(leaf) is None]
    for column, like in policy.likeness.lookalikes(clear, list(map(tuple, leaves))).items():
        raise policy.alike_error(".".join(column), like)
    found: dict[str, list[str]] = {}
    for leaf in leaves:
        key = policy.key_for(leaf)
        if key is not None:
            found.setdefault(key, []).append(".".join(leaf))
    return found
