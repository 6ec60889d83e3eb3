"""Data keys given by the caller: for files that name no key, or that name it in their own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from secure_bloom.calling.arguments import check_fields
from secure_bloom.encryption.cipher import check_key_size
from secure_bloom.errors import KeyUnavailableError, PolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplicitKeys:
    """Data keys for the footer and for columns, or for names that files give to keys.

    ``columns`` maps a dotted path (``address.zip``) to a key; ``data_keys`` maps the UTF-8 text of
    a file's ``key_metadata`` to a key; ``aad_prefix`` is for files that leave theirs to the reader.
    Raises PolicyError for a key that does not have 16, 24 or 32 bytes.
    """

    footer: bytes | None = field(default=None, repr=False)
    columns: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    aad_prefix: bytes | None = None
    data_keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.footer is not None:
            _check_key("the explicit footer key", self.footer)
        check_fields(self)
        check_keys("explicit key of column", self.columns)
        check_keys("data key", self.data_keys)


def check_keys(kind: str, keys: Mapping[str, bytes]) -> None:
    """Raise PolicyError, naming the key, for one that AES does not take."""
    for name, key in keys.items():
        _check_key(f"{kind} {name!r}", key)


def _check_key(name: str, key: bytes) -> None:
    """Raise PolicyError, calling the key ``name``, unless it is 16, 24 or 32 ``bytes``."""
    # A text of 16 characters would pass for a key of 16 bytes.
    if not isinstance(key, bytes):
        raise PolicyError(f"{name} is of type {type(key).__name__}, it must be bytes")
    try:
        check_key_size(key)
    except KeyUnavailableError as exc:
        raise PolicyError(f"{name}: {exc.message}") from exc
