"""AES modules, keys and KMS clients, and the policy, which names a key for each column."""
