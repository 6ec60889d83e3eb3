"""Write to Iceberg tables: new data files, and one snapshot that puts them in the old ones' places.

The order of calls of a run:

1. ``catalog.open_table`` loads the table and refuses what a commit could not carry.
2. ``live_files.chosen_files`` reads the manifests and picks data files.
3. ``add.add_to_table`` writes a new data file for each picked one that lacks filters.
4. ``commit.commit`` writes manifests and asks the catalog for a snapshot ``replace``.  If another
   writer was faster, it looks again which old files are still live, and tries again.

No row changes.  A new data file keeps the data sequence number of the old one, so equality deletes
go on to apply to it.  Old files stay for time travel, until the table's own maintenance expires
their snapshots.
"""
