"""Master keys in the transit engine of HashiCorp Vault or OpenBao.  Needs the extra ``vault``."""

from __future__ import annotations

from secure_bloom.encryption.kms.vault.settings import WORDS, VaultSettings, check_words
from secure_bloom.encryption.kms.vault.transit import VaultKmsClient, version_in

__all__ = ["WORDS", "VaultKmsClient", "VaultSettings", "check_words", "version_in"]
