"""What is measured: one module a suite."""
