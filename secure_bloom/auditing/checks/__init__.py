"""The checks of an audit: a module for each subject, from the policy itself to stray copies."""
