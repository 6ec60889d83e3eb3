"""The checks of an audit: one module for each subject, from the policy itself to stray copies."""
