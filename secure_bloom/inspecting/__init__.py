"""Describe what files contain, and which master keys open them, as far as keys are available.

Each function takes a listing of files, and a resolver for files that are only described::

    listing = list_tables(["out/"])
    access = Access.of(keys, policy)
    resolver = access.describing_resolver()
    inspect_files(listing, resolver)  # footers, columns, filters: an InspectReport
    find_key_use(listing, None, resolver, access, ())  # master keys: a KeyUseReport

A file that cannot be read is in the report with its error.
"""
