"""Files that lie: real ones, of which one field says what is not so, and what verbs make of them."""
