"""The public functions of the package, one for each verb.

Each function decides whether a request works on files or on the table that a path means.  The
command line and the jobs on Spark call these functions.

    add         add_bloom_filters         files, or a Delta or Iceberg table
    rekey       reencrypt, rotate_keys    files, or a Delta table
                decrypt                   files, or a Delta table -> files in a folder
    open_table  open_table                files, or any table, kept open to be asked
    read        read_table, explain, ...  one question to an open table
    probe       probe                     one question to an open table
    inspect     inspect, keys_used        files, or any table
    audit       audit                     files, or any table
    advise      advise                    files, or any table

A function that reads gets the files from ``lakes.list_tables``, and calls the package of its verb
for the work.  A function that writes chooses the target, and passes it to the loop of ``runs`` with
the work of its verb::

    run(open_work, target, LocalRunner(jobs=jobs), progress)
        files         lakes.plain_files.FilesTarget
        Delta table   lakes.delta.table_run.TableRun      -> new files, a commit of the log
        Iceberg table lakes.iceberg.snapshot_run.IcebergRun -> new files, a snapshot
"""
