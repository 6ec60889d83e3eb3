"""The address of a Vault or OpenBao server and the way to log in: from [kms], else the environment.

None of these settings is a secret.  Secrets are read when they are used, from the environment or
from files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from secure_bloom.encryption.configuration import ConfigTable
from secure_bloom.encryption.kms.calls import RETRY_SECONDS, is_this_machine
from secure_bloom.errors import PolicyError

#: The options of [kms] with client "vault", and their types.
WORDS: Mapping[str, type] = {
    "address": str,
    "namespace": str,
    "mount": str,
    "auth": str,
    "auth_mount": str,
    "token_file": str,
    "role": str,
    "role_id_file": str,
    "secret_id_file": str,
    "jwt_file": str,
    "ca_file": str,
    "allow_http": bool,
    "retry_seconds": int,
}
#: Ways to log in -> the options that only they take.
_AUTH_WORDS = {
    "token": frozenset({"token_file"}),
    "approle": frozenset({"role_id_file", "secret_id_file", "auth_mount"}),
    "kubernetes": frozenset({"role", "jwt_file", "auth_mount"}),
}
#: Kubernetes puts the token of a pod's service account here.
_POD_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path
_PATH = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultSettings:
    """One server, one transit engine and one way to log in. Paths are absolute.

    ``address`` has a scheme, a host, and optionally a port and a path.
    """

    address: str
    namespace: str | None = None
    mount: str = "transit"
    auth: str = "token"
    auth_mount: str = ""
    token_file: Path | None = None
    role: str | None = None
    role_id_file: Path | None = None
    secret_id_file: Path | None = None
    jwt_file: Path = Path(_POD_TOKEN)
    ca_file: Path | None = None
    retry_seconds: float = RETRY_SECONDS

    @classmethod
    def of(cls, table: ConfigTable, base: Path) -> VaultSettings:
        """Return the settings of a [kms] table, completed from the environment.

        Relative paths start at ``base``.  Raises PolicyError for an address that is missing or not
        protected by TLS, and for options that contradict each other.
        """
        auth = _auth(table)
        address = table.text("address") or environment("ADDR")
        if address is None:
            raise PolicyError(
                '[kms] with client "vault" names no address',
                hint='address = "https://HOST:8200", or set VAULT_ADDR or BAO_ADDR',
            )
        allow_http = table.get("allow_http", bool) or False
        seconds = table.get("retry_seconds", int)
        return cls(
            address=_checked_address(address, allow_http=allow_http),
            namespace=table.text("namespace") or environment("NAMESPACE"),
            mount=_mount(table, "mount") or "transit",
            auth=auth,
            auth_mount=_mount(table, "auth_mount") or auth,
            token_file=_path(table, "token_file", base),
            role=table.text("role"),
            role_id_file=_path(table, "role_id_file", base),
            secret_id_file=_path(table, "secret_id_file", base),
            jwt_file=_path(table, "jwt_file", base) or Path(_POD_TOKEN),
            ca_file=_ca_file(table, base),
            retry_seconds=RETRY_SECONDS if seconds is None else seconds,
        )

    @property
    def place(self) -> str:
        """The server's name in errors: without the path, which may be long, and never a secret."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"


def check_words(table: ConfigTable) -> None:
    """Raise PolicyError if the options of [kms] are wrong, whatever the environment adds."""
    _auth(table)
    for word in ("mount", "auth_mount"):
        _mount(table, word)
    address = table.text("address")
    if address is not None:
        _checked_address(address, allow_http=table.get("allow_http", bool) or False)


def environment(name: str) -> str | None:
    """Return ``VAULT_<name>``, or its twin ``BAO_<name>``, or None if both are missing or empty."""
    for prefix in ("VAULT_", "BAO_"):
        if value := os.environ.get(prefix + name, "").strip():
            return value
    return None


def _auth(table: ConfigTable) -> str:
    """Return the way to log in. Raises PolicyError if the table has options of another way."""
    auth = table.choice("auth", {name: name for name in _AUTH_WORDS}) or "token"
    # An option of another way would be passed over: the login would use other secrets than meant.
    other = frozenset().union(*_AUTH_WORDS.values()) - _AUTH_WORDS[auth]
    for word in sorted(other & table.entries.keys()):
        raise PolicyError(
            f"{word!r} of [kms] cannot be combined with auth {auth!r}",
            hint=f"auth {auth!r} takes {', '.join(sorted(_AUTH_WORDS[auth]))}",
        )
    if auth == "kubernetes" and table.text("role") is None:
        raise PolicyError("[kms] with auth 'kubernetes' names no role", hint='role = "NAME"')
    return auth


def _checked_address(address: str, *, allow_http: bool) -> str:
    parts = _split(address)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise _not_a_url()
    # A password in an address would be in errors, which name the server.
    if parts.username is not None or parts.query or parts.fragment:
        raise PolicyError("'address' of [kms] holds more than a scheme, a host, a port and a path")
    if parts.scheme == "http" and not (allow_http or is_this_machine(parts.hostname)):
        raise PolicyError(
            f"'address' of [kms] is {parts.scheme}://{parts.netloc}: without TLS, tokens and keys "
            "cross the network in clear",
            hint="use https; where something else protects the connection: allow_http = true",
        )
    return address.rstrip("/")


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        # urlsplit looks at the port only when it is asked for it.
        _ = parts.port
    except ValueError:
        raise _not_a_url() from None
    return parts


def _not_a_url() -> PolicyError:
    wanted = "wanted for example https://vault.example.com:8200"
    return PolicyError(f"'address' of [kms] is not a URL, {wanted}")


def _mount(table: ConfigTable, word: str) -> str | None:
    value = table.text(word)
    if value is None:
        return None
    # It becomes a part of each URL.
    if not _PATH.fullmatch(value) or {".", ".."} & set(value.split("/")):
        raise PolicyError(
            f"{word!r} of [kms] is not the path of a mount, wanted for example transit"
        )
    return value.strip("/")


def _ca_file(table: ConfigTable, base: Path) -> Path | None:
    named = _path(table, "ca_file", base)
    if named is None and (from_environment := environment("CACERT")) is not None:
        return Path(from_environment).absolute()
    return named


def _path(table: ConfigTable, word: str, base: Path) -> Path | None:
    value = table.text(word)
    return None if value is None else (base / Path(value).expanduser()).absolute()
