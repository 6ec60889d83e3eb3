"""Find the columns that gain from a filter, by trying filters on a part of the table in memory."""
