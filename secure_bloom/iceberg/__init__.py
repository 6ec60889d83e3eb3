"""Write to Iceberg tables: new data files, and a snapshot that replaces the old ones by them.

The order of calls of a run:

1. ``catalog.open_table`` loads the table and refuses what a commit could not carry. 2.
``live_files.chosen_files`` reads the manifests and picks data files. 3. ``add.add_to_table`` writes
a new data file for each of these that lacks filters. 4. ``commit.commit`` writes manifests and asks
the catalog for a snapshot ``replace``.  If another writer was faster, it checks again which old
files are still live, and tries again.

No row changes.  A new data file keeps the data sequence number of the old one, so the same equality
deletes apply to it.  Old files stay for time travel, until the table's own maintenance expires
their snapshots.
"""
