"""Tables that add up over areas and attributes, published from one budget.

In the order of a release: ``spec`` (what is declared), ``measure`` (the true counts), ``strategy``
(which tables are measured, with how much noise), ``planning`` (what it would cost), ``estimate``
(exact arithmetic from noisy counts to numbers that add up), ``files`` (what is published), and for
readers ``report``, ``picture``, ``frames`` and ``facts``.
"""
