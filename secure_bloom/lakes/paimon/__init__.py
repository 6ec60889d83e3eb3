"""Paimon tables: their snapshots, manifests, schemas and rows, and commits of new manifests."""
