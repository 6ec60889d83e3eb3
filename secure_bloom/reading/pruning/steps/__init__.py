"""The steps that rule row groups out, one module each.

A step takes a file and looks at the row groups that the steps before left.  Their order is that of
:class:`secure_bloom.reading.pruning.plan.Step`.
"""
