"""The files of a table: footers, columns, folders, and the schema they share."""
