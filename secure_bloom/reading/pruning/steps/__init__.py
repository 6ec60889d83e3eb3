"""The steps that rule row groups out, with one module for each.

A step takes a file and checks the row groups that the steps before it left.  The order of steps is
that of :class:`secure_bloom.reading.pruning.plan.Step`.
"""
