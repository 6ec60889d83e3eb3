"""Add filters to files: plan them in memory, then write. This is the main job of the package.

    preflight      a few files are opened first: a misspelt column costs no write
    rewrite        the work of a run: one file is opened, planned, written; planned again if another
                   writer was faster
    rewrite_plan   every filter that a file lacks, and its new footer
    in_place       appends, and what a torn one leaves

The order of calls for one file::

    plan = plan_rewrite(file, keys, request)  # reads values, builds filters, edits the footer
    replace_tail(file, plan.keep, plan.tail)  # in the package storage

``docs/design/how-an-add-works.md`` names every module on the way.
"""
