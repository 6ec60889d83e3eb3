"""AES modules, keys and KMS clients, and the policy that says which key protects which column."""
