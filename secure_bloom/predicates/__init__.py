"""Predicates: parse a caller's condition, bind it to a schema, evaluate it on rows.

    from_text, from_tuples, from_pyarrow   what a caller gives -> a tree of conditions
    tree                                   conditions under AND and OR, in any terms
    coercion, binding                      their values, as the types of a table's columns have them
    bound_request                          columns and predicate of one read
    decided                                whether the conditions known so far settle the predicate
    evaluation                             the rows of a table for which it is true

The order of calls::

    predicate = from_text("email = 'm@x' and day > 3")
    bound = bind(predicate, schema)
    table.filter(true_rows(bound, table))
"""
