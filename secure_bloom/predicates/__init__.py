"""Predicates: parse what a caller wrote, bind it to a schema, evaluate it on rows."""
