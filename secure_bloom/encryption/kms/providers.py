"""Make the KMS client that a policy's ``[kms]`` table describes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from secure_bloom.encryption.configuration import ConfigTable, close_match
from secure_bloom.encryption.kms.client import KmsClient
from secure_bloom.encryption.kms.keyring import Keyring
from secure_bloom.errors import PolicyError


def kms_client(config: Mapping[str, object], base: Path) -> KmsClient:
    """Return the client that ``config``, a ``[kms]`` table, describes.

    Relative paths start at ``base``.  ``client`` is the name of a built-in client, such as
    ``vault``, or ``package.module:Class``.  A class is imported and called with the rest of the
    table, so a policy file must be trusted like code.  Raises PolicyError when the table is invalid
    or the class cannot be imported.
    """
    client, table = check_kms(config)
    if client in _PROVIDERS:
        return _PROVIDERS[client]().build(table, base)
    return _foreign_client(client, table)


def check_kms(config: Mapping[str, object]) -> tuple[str, ConfigTable]:
    """Return the name of the client in ``config``, and its table.

    Raises PolicyError if a table of a built-in client has an option that the client does not take.
    """
    table = ConfigTable(name="[kms]", entries=config)
    client = table.text("client")
    if client is None:
        raise PolicyError("[kms] names no client", hint=f"known: {', '.join(_PROVIDERS)}")
    if client in _PROVIDERS:
        provider = _PROVIDERS[client]()
        table.allow({"client", *provider.words})
        for word, kind in provider.words.items():
            # For its error alone: `text` also refuses an empty one.
            table.text(word) if kind is str else table.get(word, kind)
        if (table.get("retry_seconds", int) or 0) < 0:
            raise PolicyError("'retry_seconds' of [kms] is negative")
        provider.check(table)
    elif ":" not in client:
        raise PolicyError(
            f"[kms] has the unknown client {client!r}",
            hint=f"{close_match(client, _PROVIDERS)}; a class is written package.module:Class",
        )
    return client, table


def version_in(wrapped_key: str) -> str | None:
    """Return the version of the master key that a wrapped key's text names. Makes no call.

    Return None for a KMS whose wrapped keys name no version.
    """
    found = (provider().version_in(wrapped_key) for provider in _PROVIDERS.values())
    return next((version for version in found if version is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Provider:
    """A built-in client: the options of its table with their types, and how it is created.

    ``check`` raises PolicyError for options that contradict each other, before a client is created.
    ``version_in`` reads the version of the master key in the text of a wrapped key.
    """

    words: Mapping[str, type]
    check: Callable[[ConfigTable], object] = lambda _: None
    build: Callable[[ConfigTable, Path], KmsClient]
    version_in: Callable[[str], str | None] = lambda _: None


def _keyring() -> _Provider:
    return _Provider(words={"keyring": str}, build=_load_keyring)


def _load_keyring(table: ConfigTable, base: Path) -> KmsClient:
    path = table.text("keyring")
    if path is None:
        raise PolicyError('[kms] with client "keyring" names no keyring', hint='keyring = "PATH"')
    # Paths start at the policy's folder: a policy and its keyring move together.
    return Keyring.load(base / path)


# Each is imported when a policy names it.
def _aws() -> _Provider:
    from secure_bloom.encryption.kms.aws import WORDS, AwsKmsClient, encryption_context

    return _Provider(
        words=WORDS, check=encryption_context, build=lambda table, _: AwsKmsClient.of(table)
    )


def _gcp() -> _Provider:
    from secure_bloom.encryption.kms.gcp import WORDS, GcpKmsClient

    return _Provider(words=WORDS, build=lambda table, _: GcpKmsClient.of(table))


def _azure() -> _Provider:
    from secure_bloom.encryption.kms.azure import WORDS, AzureKmsClient, version_in

    return _Provider(
        words=WORDS, build=lambda table, _: AzureKmsClient.of(table), version_in=version_in
    )


def _vault() -> _Provider:
    from secure_bloom.encryption.kms import vault

    return _Provider(
        words=vault.WORDS,
        check=vault.check_words,
        build=lambda table, base: vault.VaultKmsClient(vault.VaultSettings.of(table, base)),
        version_in=vault.version_in,
    )


_PROVIDERS: Mapping[str, Callable[[], _Provider]] = {
    "keyring": _keyring,
    "aws": _aws,
    "gcp": _gcp,
    "azure": _azure,
    "vault": _vault,
}


_VERBS = ("wrap_key", "unwrap_key")


def _foreign_client(name: str, table: ConfigTable) -> KmsClient:
    options = {word: value for word, value in table.entries.items() if word != "client"}
    make = _imported(name)
    try:
        client = make(**options)
    # A class of this package, or one that raises its errors, has said what is wrong by itself.
    except PolicyError:
        raise
    except Exception as exc:
        # The type alone: the error's text may repeat the options, and those may hold tokens.
        raise PolicyError(
            f"{name} of [kms] cannot be made with {', '.join(sorted(options)) or 'no options'}: "
            f"{type(exc).__name__}",
            hint="every other option of [kms] is given to the class by name",
        ) from exc
    return client


def _imported(name: str) -> type[KmsClient]:
    module, _, attribute = name.partition(":")
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as exc:
        raise PolicyError(
            f"{name} of [kms] cannot be imported",
            hint="its package must be installed where the keys are unwrapped, executors included",
        ) from exc
    # The class is checked before the call: else a policy file could call any function of any
    # package.
    if not isinstance(found, type) or not all(hasattr(found, verb) for verb in _VERBS):
        raise PolicyError(f"{name} of [kms] is not a class with {' and '.join(_VERBS)}")
    return found
