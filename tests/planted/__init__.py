"""Planted errors: copies of the package with one mistake each, and who notices.

    python -m tests.planted [NAME ...]

Whoever trusts a release trusts the writer's arithmetic, unless another program checks it. Each
error of :mod:`tests.planted.errors` is a mistake that a programmer could make, as the text that it
replaces. The runner copies the package, makes the one change, publishes small specs with the copy,
and shows the releases to the same copy's verifier, to the clean one, which reproduces what it can,
and to ``dp_release_verify`` alone, which shares the forms of files with the writer and no more.
"""
