"""How long work may run."""
