"""Rule row groups out before a row is decoded."""
