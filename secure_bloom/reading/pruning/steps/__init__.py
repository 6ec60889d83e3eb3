"""The steps that rule row groups out, one room each.

See :class:`secure_bloom.reading.pruning.plan.Step`.  A step takes a file and
judges the row groups that the steps before left.
"""
