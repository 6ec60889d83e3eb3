"""The files of a table: footers, columns, partition folders, and their common schema."""
