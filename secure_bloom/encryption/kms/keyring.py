"""Keys that the caller gives: a keyring (a JSON file of keys that acts as a KMS), or data keys.

A keyring wraps keys as the local KMSs of parquet-java and pyarrow do: base64(nonce | ciphertext |
tag), AES-GCM under the master key, with the UTF-8 text of the master key id as AAD.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import stat
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from secure_bloom.calling.arguments import check_fields, checked_arguments
from secure_bloom.calling.close_names import near_file
from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import check_key_size
from secure_bloom.encryption.configuration import ConfigTable, close_match
from secure_bloom.encryption.kms.client import WRAPPED_ELSEWHERE, misfit
from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    PolicyError,
    located,
    refused_by_system,
)
from secure_bloom.reports.text import shell_word
from secure_bloom.running.bounded_documents import parsed_json, read_bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplicitKeys:
    """Data keys given for the footer, for columns, or for the names that files give to keys.

    ``columns`` maps a dotted path (``address.zip``) to a key. ``data_keys`` maps the UTF-8 text of
    a file's ``key_metadata`` to a key. ``aad_prefix`` is for files that do not store their AAD
    prefix. Raises PolicyError for a key that does not have 16, 24 or 32 bytes.
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
    """Raise PolicyError, naming the key, for a key that does not have a size of AES."""
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


_VERSION = 1
_KEY_BITS = (128, 192, 256)
_OPEN_TO_OTHERS = stat.S_IRGRP | stat.S_IROTH


class KeyringPermissionWarning(UserWarning):
    """The keyring file can be read by its group or by others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """Keys held in memory. A :class:`~.client.KmsClient` for its ``master_keys``.

    ``master_keys`` (id -> key) wrap and unwrap. ``data_keys`` are found by the UTF-8 text of a
    file's ``key_metadata``. ``explicit`` serves files that store no key metadata.  Keys have 16, 24
    or 32 bytes, else PolicyError is raised.

    A pickled keyring holds its keys in clear. Runs over many small files send it to their own
    worker processes in this form, over a socket. Do not store a pickled keyring or send it
    elsewhere.
    """

    master_keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    data_keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    explicit: ExplicitKeys | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        check_keys("master key", self.master_keys)
        check_keys("data key", self.data_keys)

    @classmethod
    @checked_arguments
    def load(cls, path: str | PathLike[str]) -> Keyring:
        """Return the keyring in a JSON file.

        Raises PolicyError with the path if the file does not exist or is not a keyring.  Warns,
        once for each file and process, when its group or others may read the file.
        """
        with located(path=os.fspath(path)):
            return _keyring(ConfigTable.of("the keyring", _read_json(Path(path).expanduser())))

    @checked_arguments
    def has_key(self, master_key_id: str) -> bool:
        """Return whether ``master_key_id`` is one of ``master_keys``."""
        return master_key_id in self.master_keys

    @checked_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` wrapped, in base64. Raises KeyUnavailableError for an unknown id."""
        master_key = self._master_key(master_key_identifier)
        # The id is the AAD: key material that names another master key fails its tag.
        sealed = cipher.seal(key_bytes, master_key, master_key_identifier.encode())
        return base64.b64encode(sealed).decode("ascii")

    @checked_arguments
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key that :meth:`wrap_key` wrapped.

        Raises KeyUnavailableError for an unknown id or a master key that does not fit, FormatError
        when ``wrapped_key`` does not have the wrapped form.
        """
        master_key = cipher.prepare(self._master_key(master_key_identifier))
        try:
            # Without `validate` Python skips foreign characters, and altered text would pass for
            # the same.
            sealed = base64.b64decode(wrapped_key, validate=True)
        except ValueError as exc:
            raise FormatError(
                "a wrapped key is not base64, so no keyring has wrapped it", hint=WRAPPED_ELSEWHERE
            ) from exc
        try:
            return cipher.unseal(sealed, master_key, master_key_identifier.encode())
        except IntegrityError as exc:
            raise misfit(master_key_identifier) from exc

    def _master_key(self, master_key_id: str) -> bytes:
        if master_key_id not in self.master_keys:
            raise KeyUnavailableError(
                f"master key {master_key_id!r} is not in the keyring",
                hint=close_match(master_key_id, self.master_keys),
            )
        return self.master_keys[master_key_id]


def new_keyring(path: Path, names: Collection[str], *, bits: int = 128) -> None:
    """Write a keyring with a new random master key for each name, readable by its owner alone.

    Raises PolicyError if there is no name, if a name is empty, and for a size that AES does not
    have. Also raises PolicyError if the file exists, because its keys may be the only ones that
    open a table.
    """
    content = _json_text({"version": _VERSION, "master_keys": _random_keys(names, bits)})
    with located(path=os.fspath(path)):
        try:
            _write_new(path, content)
        except FileExistsError as exc:
            raise PolicyError(
                "there is a file already",
                hint="a keyring is never replaced; keys are added to it by --add NAME",
            ) from exc
        except OSError as exc:
            raise refused_by_system(exc, f"the keyring cannot be written: {exc.strerror}") from exc


def add_master_keys(path: Path, names: Collection[str], *, bits: int = 128) -> None:
    """Add a new random master key for each name to a keyring file.

    Other keys and the file's mode stay.  The file is replaced atomically, and runs that add keys at
    the same time wait for each other.  Raises PolicyError, and changes nothing, if the keyring has
    one of the names already: that key may be the only one that opens a table.
    """
    new = _random_keys(names, bits)
    # The file that a link leads to is replaced, and not the link.
    place = Path(os.path.realpath(path))
    with located(path=os.fspath(path)):
        try:
            with _locked(place) as file:
                _replace(place, file, _with_keys(_json_of(read_bounded(file, "the keyring")), new))
        except FileNotFoundError:
            raise PolicyError(
                "no such keyring",
                hint="make it: secure-bloom keys new FILE " + " ".join(sorted(new)),
            ) from None
        except OSError as exc:
            raise refused_by_system(exc, f"the keyring cannot be changed: {exc.strerror}") from exc


def _with_keys(content: object, new: Mapping[str, str]) -> bytes:
    keyring = _keyring(ConfigTable.of("the keyring", content))
    there = sorted(keyring.master_keys.keys() & new.keys())
    if there:
        raise PolicyError(
            f"the keyring has these keys already: {', '.join(there)}",
            hint="a key is never replaced: give the new key another name",
        )
    # The table is one: `_keyring` has refused anything else.
    entries = dict(ConfigTable.of("the keyring", content).entries)
    old = ConfigTable.of("'master_keys'", entries.get("master_keys", {})).entries
    return _json_text({**entries, "master_keys": {**old, **new}})


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """Yield the file at the path, locked for this run alone.

    If another run replaced the file while this one waited for the lock, the new file is opened.
    """
    import fcntl

    while True:
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # Another run may have replaced the file while this one waited for the lock.
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield file
                return


def _replace(path: Path, old: BinaryIO, content: bytes) -> None:
    """Replace an open file by ``content``, with the same mode and owner."""
    import tempfile

    before = os.fstat(old.fileno())
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".keyring-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            # The new name is on disk before anybody encrypts under the new key.
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        Path(name).unlink(missing_ok=True)


def _random_keys(names: Collection[str], bits: int) -> dict[str, str]:
    """Return a new key for each name, in base64.

    Raises PolicyError for an empty name or a wrong size.
    """
    if not names:
        hint = "name keys, or give a policy that names them"
        raise PolicyError("no master key is named", hint=hint)
    if not all(name.strip() for name in names):
        raise PolicyError("a master key's name is empty")
    if bits not in _KEY_BITS:
        raise PolicyError(f"a key of {bits} bits, it must have 128, 192 or 256")
    return {name: base64.b64encode(os.urandom(bits // 8)).decode("ascii") for name in sorted(names)}


def _json_text(content: Mapping[str, object]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def _write_new(path: Path, content: bytes) -> None:
    """Create the file with all of ``content`` or not at all. Never replaces a file."""
    import tempfile

    # mkstemp makes files of mode 0600.  In the same folder, as a link cannot cross file systems.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".keyring-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            # The keyring is on disk before it has its name: after a power failure it is whole or is
            # not there.
            file.flush()
            os.fsync(file.fileno())
        # A link fails where the name is taken.  A rename would replace keys that may be the only
        # ones.
        os.link(name, path)
    finally:
        # The content stays under the name that was linked.
        Path(name).unlink()


def _read_json(path: Path) -> object:
    try:
        with path.open("rb") as file:
            # Windows has lists of users instead, which these bits do not show.
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & _OPEN_TO_OTHERS:
                _warn_of_open_keyring(str(path.absolute()))
            content = read_bounded(file, "the keyring")
    except OSError as exc:
        made = f"to make it: secure-bloom keys new {shell_word(str(path))} --policy POLICY"
        hint = near_file(path) or made if isinstance(exc, FileNotFoundError) else None
        message = f"the keyring cannot be read: {exc.strerror}"
        raise refused_by_system(exc, message, hint=hint) from exc
    return _json_of(content)


def _json_of(content: bytes) -> object:
    # The cause is left out: it holds the text of the file, which is keys.
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise PolicyError("the keyring is not UTF-8 text") from None
    try:
        # The last of two equal names would win without a word, and one of the keys would be lost.
        return parsed_json(text, "the keyring", object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        hint = (
            "a policy (TOML) is given by --policy" if text.lstrip().startswith(("[", "#")) else None
        )
        raise PolicyError("the keyring is not JSON", hint=hint) from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise PolicyError("a name occurs twice in one object of the keyring")
    return entries


# The cache makes this one warning a file and process.  Python's own filter counts by the line that
# warns, which is the same for all files.
@functools.cache
def _warn_of_open_keyring(path: str) -> None:
    warnings.warn(
        f"other users may read the keyring: chmod 600 {path}",
        KeyringPermissionWarning,
        # Five frames up is whoever called `load`.
        stacklevel=5,
    )


def _keyring(table: ConfigTable) -> Keyring:
    table.allow({"version", "master_keys", "data_keys", "explicit"})
    version = table.get("version", int)
    # Refused rather than guessed: another version may mean other keys by the same options.
    if version != _VERSION:
        got = "not given" if version is None else version
        raise PolicyError(f"the version of the keyring is {got}, it must be {_VERSION}")
    explicit = table.table("explicit", "'explicit'")
    return Keyring(
        master_keys=_keys(table, "master_keys"),
        data_keys=_keys(table, "data_keys"),
        explicit=None if explicit is None else _explicit(explicit),
    )


def _explicit(table: ConfigTable) -> ExplicitKeys:
    table.allow({"footer", "columns", "aad_prefix"})
    aad_prefix = table.text("aad_prefix")
    return ExplicitKeys(
        footer=_key(table, "footer") if "footer" in table.entries else None,
        columns=_keys(table, "columns"),
        # The prefix becomes bytes, because it is a part of the AAD (Encryption.md 4.4.1).
        aad_prefix=None if aad_prefix is None else aad_prefix.encode(),
    )


def _keys(parent: ConfigTable, word: str) -> dict[str, bytes]:
    table = parent.table(word, repr(word))
    if table is None:
        return {}
    return {name: _key(table, name) for name in table.entries}


def _key(table: ConfigTable, name: str) -> bytes:
    text = table.text(name)
    if text is not None and text.startswith("vault:v"):
        raise PolicyError(
            f"key {name!r} of {table.name} is wrapped by Vault or OpenBao: a keyring has the keys "
            "themselves",
            hint='files under keys of Vault are opened by a policy: client = "vault" in [kms]',
        )
    try:
        # The error is not chained: the text that it is about is a key.
        return base64.b64decode(text or "", validate=True)
    except ValueError:
        raise PolicyError(
            f"key {name!r} of {table.name} is not base64",
            hint="`openssl rand -base64 16` makes a key of 16 bytes",
        ) from None
