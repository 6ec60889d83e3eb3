"""Write to Delta tables: new files beside the old ones, and a commit of the table's log."""
