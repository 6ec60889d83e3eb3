"""Master keys in the transit engine of HashiCorp Vault or OpenBao.  Needs the extra ``vault``."""

from __future__ import annotations

from secure_bloom.encryption.kms.vault.client import VaultKmsClient, version_in
from secure_bloom.encryption.kms.vault.settings import WORDS, VaultSettings, check_words

__all__ = ["WORDS", "VaultKmsClient", "VaultSettings", "check_words", "version_in"]
