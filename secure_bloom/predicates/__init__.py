"""Predicates: parse a caller's condition, bind it to a schema, evaluate it on rows."""
