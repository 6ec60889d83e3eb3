"""The audit: does every file on disk obey the key-to-column policy.

    sources (policy, files, folders)  x  checks  ->  findings

Each subject has its module of checks; :mod:`~secure_bloom.auditing.rules` is the table of
everything that they can find.
"""
