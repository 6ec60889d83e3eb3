"""What README promises: a file for each bullet, a test for each sentence of it."""
