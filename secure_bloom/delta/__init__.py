"""Write to Delta tables: write new files beside the old ones, and commit to the table's log."""
