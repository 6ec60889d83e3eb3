"""Master keys in the transit engine of HashiCorp Vault or OpenBao.  Needs the extra ``vault``."""

from __future__ import annotations

from secure_bloom.encryption.keys.vault.client import VaultKmsClient
from secure_bloom.encryption.keys.vault.settings import WORDS, VaultSettings, check_words

__all__ = ["WORDS", "VaultKmsClient", "VaultSettings", "check_words"]
