"""Change keys: rotate master keys, re-encrypt files, write files in clear.

No page is decoded or decompressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.rekeying.rekey_report import RekeyReport
    from secure_bloom.rekeying.run import decrypt, reencrypt, rotate_keys

_HOMES = {
    "rekey_report": ["RekeyReport"],
    "run": ["decrypt", "reencrypt", "rotate_keys"],
}

__all__ = ["RekeyReport", "decrypt", "reencrypt", "rotate_keys"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
