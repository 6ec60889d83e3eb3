"""A file may name any address as its KMS; no client of ours connects to it.

parquet-java before 1.18.1 hands that address to its KMS clients (CVE-2026-73334, CVE-2026-92287).
"""

from __future__ import annotations

import socket
from dataclasses import replace

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.file_keys.wrapping import KeyEncryptionKey, wrap_once, wrap_twice
from secure_bloom.encryption.kms import KmsClient

DEK = bytes(range(16))


def assert_no_visit(kms: KmsClient, master_key: str) -> None:
    """Open keys whose material names an attacker's server, and see that it gets no visit."""
    with socket.create_server(("127.0.0.1", 0)) as attacker:
        attacker.settimeout(0)
        url = f"http://127.0.0.1:{attacker.getsockname()[1]}"
        kek = KeyEncryptionKey.create(kms, master_key)
        for material in (
            wrap_once(DEK, kms, master_key, is_footer_key=True),
            wrap_twice(DEK, kek, is_footer_key=True),
        ):
            forged = replace(material, kms_instance_id=url, kms_instance_url=url).serialize()
            assert url.encode() in forged
            assert KeyResolver(kms).for_file().footer_key(forged).key == DEK
        try:
            attacker.accept()
        except BlockingIOError:
            return
    raise AssertionError("a client connected to the address that the file names")
