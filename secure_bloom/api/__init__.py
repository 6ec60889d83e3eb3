"""The doors of the package: one public function for each verb.

A door has the signature and the documentation of its function, and decides whether a request works
on files or on the table that a path means.  The command line and the Spark step call the doors.

    add      files, or a Delta or Iceberg table -> new filters
    inspect  files or any table -> what they contain
    audit    files or any table -> findings
    advise   files or any table -> which columns gain
    rekey    the keys that files depend on

A door asks ``tables.list_tables`` for the files to read, and the room of its verb for the work::

    api.add.add_bloom_filters(paths, columns=..., policy=...)
        files          adding.run.add_to_files
        a Delta table  delta.add_run.open_run     -> new files, a commit of the log
        Iceberg        iceberg.add_run.open_run   -> new files, a snapshot of the catalog
"""
