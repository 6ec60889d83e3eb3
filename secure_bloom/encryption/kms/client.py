"""The KMS interface of the Parquet ecosystem, and the functions that call a KMS for all others.

:class:`NamedKeys` asks a client only for the master keys that a policy names.  A file says which
master key wrapped its keys, and anybody can write a file: one under a master key of another account
opens wherever the caller's rights reach, and its rows are forged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol, runtime_checkable

from secure_bloom.encryption.cipher import check_key_size
from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    KmsUnavailableError,
    SecureBloomError,
)

#: The hint about a wrapped key that has the form of another KMS.
WRAPPED_ELSEWHERE: Final = (
    "another KMS wrapped it: name that one in [kms], or bring the files from there to this one: "
    "reencrypt or rotate with --old-policy FILE, a policy that names that KMS"
)
#: The shortest kind of key is tried.
_TRIAL_BYTES: Final = 16


# isinstance looks for the methods alone: pyarrow's clients are no subclasses of ours.
@runtime_checkable
class KmsClient(Protocol):
    """Wraps and unwraps keys under master keys that stay inside the KMS.

    The methods are those of ``pyarrow.parquet.encryption.KmsClient``: its objects fit unchanged.
    One client serves several threads.
    """

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """``key_bytes`` encrypted under the master key, as text."""

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key that :meth:`wrap_key` wrapped."""


@runtime_checkable
class KeyInventory(Protocol):
    """A KMS client that can say, without using a key, whether it has it."""

    def has_key(self, master_key_id: str) -> bool:
        """Return whether ``master_key_id`` names a master key of this client."""


@runtime_checkable
class KeyRewrapper(Protocol):
    """A KMS client that renews wrapped keys without giving them out."""

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        """Return the key wrapped anew, under the newest version of the same master key."""


@runtime_checkable
class KeyVersions(Protocol):
    """A KMS client whose master keys have versions, and whose wrapped keys name theirs."""

    def key_version(self, wrapped_key: str) -> str:
        """Return the version of the master key that wrapped this key, found without a call."""


@runtime_checkable
class KeyMover(Protocol):
    """A KMS client that brings wrapped keys under another master key without giving them out."""

    def move_key(self, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
        """Return the key wrapped anew, under another master key."""


def wrap_with(kms: KmsClient, key: bytes, master_key_id: str) -> str:
    """Return ``key`` wrapped by ``kms``; KeyUnavailableError when it refuses.

    pyarrow's clients may answer with ``bytes``, which are text all the same.
    """
    check_key_size(key)
    try:
        wrapped: object = kms.wrap_key(key, master_key_id)
        text = wrapped.decode() if isinstance(wrapped, bytes) else wrapped
    # These two tell a missing key from a KMS that is away.  A second error around them would hide
    # it.
    except (KeyUnavailableError, KmsUnavailableError):
        raise
    except Exception as exc:
        raise _failure(kms, "wrap", master_key_id, exc) from exc
    return _checked_text(kms, "wrap_key", text, master_key_id)


def rewrap_with(kms: KmsClient, wrapped_key: str, master_key_id: str) -> str:
    """``wrapped_key`` renewed by ``kms``; one that cannot do it unwraps the key and wraps it again.

    Raises KeyUnavailableError when it refuses.
    """
    if not isinstance(kms, KeyRewrapper):
        return wrap_with(kms, unwrap_with(kms, wrapped_key, master_key_id), master_key_id)
    try:
        renewed: object = kms.rewrap_key(wrapped_key, master_key_id)
    except (KeyUnavailableError, KmsUnavailableError, FormatError):
        raise
    except Exception as exc:
        raise _failure(kms, "rewrap", master_key_id, exc) from exc
    return _checked_text(kms, "rewrap_key", renewed, master_key_id)


def moved_with(kms: KmsClient, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
    """``wrapped_key`` under another master key; by a KMS that cannot, unwrapped and wrapped here.

    Raises KeyUnavailableError when it refuses.
    """
    if not isinstance(kms, KeyMover):
        key = unwrap_with(kms, wrapped_key, old_master_key)
        return wrap_with(kms, key, new_master_key)
    try:
        moved: object = kms.move_key(wrapped_key, old_master_key, new_master_key)
    except (KeyUnavailableError, KmsUnavailableError, FormatError):
        raise
    except Exception as exc:
        raise _failure(kms, "move", old_master_key, exc) from exc
    return _checked_text(kms, "move_key", moved, new_master_key)


def _checked_text(kms: KmsClient, method: str, answer: object, master_key_id: str) -> str:
    if not isinstance(answer, str):
        raise KeyUnavailableError(
            f"{type(kms).__name__}.{method} returned {type(answer).__name__} for master key "
            f"{master_key_id!r}, wanted str"
        )
    return answer


def unwrap_with(kms: KmsClient, wrapped_key: str, master_key_id: str) -> bytes:
    """Return the key that ``kms`` unwraps, of a valid AES size.

    KeyUnavailableError when it refuses.
    """
    try:
        key: object = kms.unwrap_key(wrapped_key, master_key_id)
    except (KeyUnavailableError, KmsUnavailableError, FormatError):
        raise
    except Exception as exc:
        raise _failure(kms, "unwrap", master_key_id, exc) from exc
    # A foreign client may return base64 text, whose bytes AES would take for another key.
    if not isinstance(key, bytes):
        raise KeyUnavailableError(
            f"{type(kms).__name__}.unwrap_key returned {type(key).__name__} for master key "
            f"{master_key_id!r}, wanted bytes"
        )
    check_key_size(key)
    return key


class KeyMisfitError(KeyUnavailableError):
    """A master key is available, and the wrapped key does not authenticate under it."""


def misfit(master_key_id: str) -> KeyMisfitError:
    """Return the error for a wrapped key whose tag does not match under its master key."""
    return KeyMisfitError(
        f"master key {master_key_id!r} does not fit: it did not wrap this key, or the key "
        "material was altered",
        hint="give the keyring or the KMS that the file was written with; reencrypt and rotate "
        "take it by --old-policy FILE",
    )


def _failure(kms: KmsClient, verb: str, master_key_id: str, exc: Exception) -> SecureBloomError:
    if isinstance(exc, IntegrityError):
        return misfit(master_key_id)
    # A refusal by PermissionError is about a key; the rest of the system's errors is about the way.
    if isinstance(exc, OSError) and not isinstance(exc, PermissionError):
        reason = exc.strerror or type(exc).__name__
        return KmsUnavailableError(
            f"{type(kms).__name__} is not available, it failed to {verb} a key under master key "
            f"{master_key_id!r}: {reason}",
            hint="repeat the run when the KMS answers again: `secure-bloom keys check` shows it",
        )
    # The message has only the type of a foreign exception: its text may hold key bytes or tokens.
    return KeyUnavailableError(
        f"{type(kms).__name__} failed to {verb} a key under master key {master_key_id!r}: "
        f"{type(exc).__name__}",
        hint="the KMS's own error is the cause of this one (`__cause__`)",
    )


def try_master_key(kms: KmsClient, name: str) -> SecureBloomError | None:
    """Return why master key ``name`` does not serve; None where it does.

    Raises KmsUnavailableError, which is not about the key.
    """
    if isinstance(kms, KeyInventory) and not kms.has_key(name):
        return KeyUnavailableError(f"the KMS has no master key {name}")
    # A random one, so that nothing between here and the KMS can have kept the answer.
    key = os.urandom(_TRIAL_BYTES)
    try:
        found = unwrap_with(kms, wrap_with(kms, key, name), name)
    except (KeyUnavailableError, FormatError) as error:
        return error
    if found != key:
        return KeyUnavailableError(f"master key {name} unwraps another key than it wrapped")
    return None


#: The methods that a client may have, beside those of every client.
_OPTIONAL: Final = ("has_key", "rewrap_key", "move_key", "key_version")


class KeyNotNamedError(KeyUnavailableError):
    """A file names a master key that the policy does not name, so the KMS was not asked for it."""


@runtime_checkable
class KeySpelling(Protocol):
    """A KMS client that knows several spellings of one master key's id."""

    def canonical_id(self, master_key_id: str) -> str:
        """Return the same text for all spellings of one master key; no call to the KMS."""


class NamedKeys:
    """Another KMS client, asked for the master keys ``names`` alone.

    It has those optional methods (:class:`~.client.KeyInventory` and the like) that the other
    client has.  Each raises KeyNotNamedError for any other key; ``way_out`` ends its hint.
    """

    def __init__(self, kms: KmsClient, names: Collection[str], *, way_out: str) -> None:
        self._kms: Any = kms
        self._way_out = way_out
        self._canonical: Callable[[str], str] = (
            kms.canonical_id if isinstance(kms, KeySpelling) else str
        )
        self._names = frozenset(map(self._canonical, names))
        # As attributes of the instance: isinstance of a protocol looks for the methods there too.
        for method in _OPTIONAL:
            if hasattr(kms, method):
                setattr(self, method, getattr(self, f"_{method}"))

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """``key_bytes`` as the other client wraps it."""
        self._check(master_key_identifier)
        return wrap_with(self._kms, key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key as the other client unwraps it."""
        self._check(master_key_identifier)
        return unwrap_with(self._kms, wrapped_key, master_key_identifier)

    def _has_key(self, master_key_id: str) -> bool:
        self._check(master_key_id)
        return bool(self._kms.has_key(master_key_id))

    def _rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        self._check(master_key_identifier)
        return rewrap_with(self._kms, wrapped_key, master_key_identifier)

    def _move_key(self, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
        self._check(old_master_key)
        self._check(new_master_key)
        return moved_with(self._kms, wrapped_key, old_master_key, new_master_key)

    def _key_version(self, wrapped_key: str) -> str:
        return str(self._kms.key_version(wrapped_key))

    def _check(self, name: str) -> None:
        if self._canonical(name) not in self._names:
            raise KeyNotNamedError(
                f"the policy does not name master key {name!r}, so no KMS was asked for it",
                hint=f"if the key is yours, add [keys.{json.dumps(name, ensure_ascii=False)}] to "
                f"the policy; else the file was written by somebody else; {self._way_out}",
            )
