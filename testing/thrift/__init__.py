"""Thrift structures as trees that keep every field, and typed views on them: to forge files."""
