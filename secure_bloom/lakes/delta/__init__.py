"""Write to Delta tables: write new files beside the old ones, and commit to the table's log.

    selection     which of its live files a run takes
    writable      the table as a run opens it: what it refuses, and how its history names the run
    table_run     the run: new files, then one commit or several
    run_record    the names of new files, for the cleaning up after a kill
    actions       the actions of a commit
    log_commit    one version of the log, or a conflict by its name

The order of calls::

    table = open_run(open_table(folder), operation, TableSelection(where="day = 1"))
    with table.publishing(dry_run=False) as publication:
        for tasks in publication.batches():
            publication.publish(reports)  # of the files, which a runner has written

``runs.loop`` does this.
"""
