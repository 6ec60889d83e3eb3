"""The KMS interface of the Parquet ecosystem, and the functions by which other rooms call a KMS.

:class:`NamedKeys` asks a client only for the master keys that a policy names.  A file itself says
which master key wrapped its keys, and anybody can write a file. A forged file under a master key of
another account would open if the caller's rights include that key.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol, runtime_checkable

from secure_bloom.calling.options import OTHER_TABLE
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


# isinstance looks for the methods alone: pyarrow's clients are no subclasses of this one.
@runtime_checkable
class KmsClient(Protocol):
    """Wraps and unwraps keys under master keys that stay inside the KMS.

    The methods are those of ``pyarrow.parquet.encryption.KmsClient``, so pyarrow's clients can be
    used unchanged. One client serves several threads.
    """

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` encrypted under the master key, as text."""

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key that :meth:`wrap_key` wrapped."""


@runtime_checkable
class KeyInventory(Protocol):
    """A KMS client that can say, without using a master key, whether the KMS has it."""

    def has_key(self, master_key_id: str) -> bool:
        """Return whether ``master_key_id`` names a master key of this client."""


@runtime_checkable
class KeyRewrapper(Protocol):
    """A KMS client that rewraps keys inside the KMS, under the newest version of a master key."""

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        """Return the key wrapped again, under the newest version of the same master key."""


@runtime_checkable
class KeyVersions(Protocol):
    """A KMS client whose master keys have versions, and whose wrapped keys name their version."""

    def key_version(self, wrapped_key: str) -> str:
        """Return the version of the master key that wrapped this key. Makes no call."""


@runtime_checkable
class KeyMover(Protocol):
    """A KMS client that rewraps keys under another master key, inside the KMS."""

    def move_key(self, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
        """Return the key wrapped again, under another master key."""


def wrap_with(kms: KmsClient, key: bytes, master_key_id: str) -> str:
    """Return ``key`` wrapped by ``kms``. Raises KeyUnavailableError when ``kms`` refuses.

    pyarrow's clients may return ``bytes``. These are decoded as text.
    """
    check_key_size(key)
    try:
        wrapped: object = kms.wrap_key(key, master_key_id)
        text = wrapped.decode() if isinstance(wrapped, bytes) else wrapped
    # A missing key and a KMS that is away are these two.  A second error around them would hide
    # the difference.
    except (KeyUnavailableError, KmsUnavailableError):
        raise
    except Exception as exc:
        raise _failure(kms, "wrap", master_key_id, exc) from exc
    return _checked_text(kms, "wrap_key", text, master_key_id)


def rewrap_with(kms: KmsClient, wrapped_key: str, master_key_id: str) -> str:
    """Return ``wrapped_key``, rewrapped under the newest version of its master key.

    A client that cannot rewrap unwraps the key and wraps it again. Raises KeyUnavailableError when
    it refuses.
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
    """Return ``wrapped_key``, rewrapped under another master key.

    If ``kms`` cannot move keys, the key is unwrapped and wrapped again in this process. Raises
    KeyUnavailableError when ``kms`` refuses.
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
    """Return the key that ``kms`` unwraps.

    Raises KeyUnavailableError when ``kms`` refuses, or returns a key that is no AES key.
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
    """The master key is available, but the wrapped key does not authenticate under it."""


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
    """Return the error with which master key ``name`` fails to wrap and unwrap.

    Return None if it works. Raises KmsUnavailableError, because an outage says nothing about the
    key.
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
    """A KMS client that asks another client, but only for the master keys ``names``.

    It has the optional methods (:class:`~.client.KeyInventory` and others) that the other client
    has. Each method raises KeyNotNamedError for a key that is not in ``names``. ``way_out`` is
    the end of the error's hint.
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
        """Return ``key_bytes`` as the other client wraps it."""
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
                f"the policy; {OTHER_TABLE}; else somebody else wrote the file; {self._way_out}",
            )
