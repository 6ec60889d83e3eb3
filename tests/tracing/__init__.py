"""Leak search: planted values are found, clean files are not reported."""
