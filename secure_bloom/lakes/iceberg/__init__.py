"""Write to Iceberg tables: new data files, and a snapshot that replaces the old ones by them.

    commit_table        opens a table for a commit, and refuses a table that a commit would damage
    live_files          the data files of a snapshot, and those that a run takes
    schema_fields       the columns of all schemas, of which some are secret
    writable            the table as a run opens it: what it refuses, and its summaries
    snapshot_run        the run: one new data file for each data file that changes; refuses a table
                        whose metadata must show secret values
    position_deletes    a new position delete file for a new data file
    replacing_snapshot  manifests and the snapshot ``replace``
    commit              asks the catalog; if another writer was faster, checks again which old files
                        are still live, and tries again

The order of calls::

    table = open_run(open_table("iceberg://lake/db.t"), Rewrite.of("add"), IcebergSelection())
    with table.publishing(dry_run=False) as publication:
        for tasks in publication.batches():
            publication.publish(reports)  # of the files, which a runner has written

No row changes. A new data file keeps the data sequence number of the old one, so the same
equality deletes apply to it, and it gets position deletes of its own. Old files stay for time
travel, until the table's own maintenance expires their snapshots.
"""
