"""Planted errors: copies of the package with one mistake each, and who notices.

    python -m tests.planted [NAME ...]

Whoever trusts a release trusts the writer's arithmetic, unless another program checks it. Writer
and verifier of the package share code, so a mistake in a shared line can be *proved* by it. Each
error of :mod:`tests.planted.errors` is a mistake that a programmer could make, as the text that it
replaces. The runner copies the package, makes the one change, publishes small specs with the copy,
and shows the releases to the same copy's verifier, to the clean package's, and to
``standalone.py``, which shares no code with either.
"""
