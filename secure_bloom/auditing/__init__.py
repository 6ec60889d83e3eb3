"""The audit: does every file on disk obey the key-to-column policy.

    sources (policy, files, folders)  x  checks  ->  findings  ->  formats

    audit_plan   what is to be audited: files, policy, keys, options
    file_audit   one file, opened as far as the keys allow, then every check
    checks       a module of checks for each subject
    rules        the table of everything that they can find: id, severity, meaning, fix
    formats      the report for a terminal, a browser, CI

The order of calls::

    plan = plan_audit(paths, policy, keys, options)
    report = audit_files(plan)  # `file_audit` for each file, then what only all of them show
"""
