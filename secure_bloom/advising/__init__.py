"""Find the columns that gain from a filter, by trying filters on a part of the table in memory.

    sample          all footers are read, and some row groups chosen
    candidates      the columns of the sample, and why some cannot have a filter
    lookup_values   values that are there, and values that are not
    trial           lookups with and without a filter, in bytes and requests
    verdict         rules that turn a trial into a verdict and a reason
    table_advice    the report, and the policy that it recommends

The order of calls, in ``advisor``::

    sample = sample_table(paths, resolver)
    trial = trier.column(candidate, options)
    verdict, reason = decide(case)  # a ColumnCase of both
"""
