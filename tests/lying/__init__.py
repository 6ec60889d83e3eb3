"""Files of which one field says what is not so, and what our verbs make of them."""
