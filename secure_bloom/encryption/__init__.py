"""AES modules, the keys that open them, and the policy that says which key protects which column.

From the lowest part to the highest: ``cipher`` seals and opens modules; ``kms`` wraps and unwraps
keys; ``policy`` says which master key a column has; ``trust`` refuses files that are protected
less; ``file_keys`` finds the data keys of one file; ``access`` makes all of it from the arguments
of a caller::

    access = Access.of(None, "policy.toml")
    resolver = access.resolver()  # asks the KMS of the policy
    keys = resolver.for_file()
    key = keys.column_key("email", key_metadata).key
"""
