"""Find the columns that gain by a filter: tried on a part of the table, before any write."""
