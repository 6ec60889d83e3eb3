"""Describe what files contain, and which master keys open them, as far as keys are available.

The order of calls, each with the files of a listing and a resolver that describes::

    listing = list_tables(["out/"])
    resolver = Access.of(keys, policy).describing_resolver()
    inspect_files(listing, resolver)  # footers, columns, filters: an InspectReport
    find_key_use(listing, resolver, policy, only=())  # master keys: a KeyUseReport

A file that cannot be read is in the report with its error.
"""
