"""Mutation testing: changes one expression of the checked modules at a time and runs the tests.

    python -m tests.mutants [--sample N] [--seed N] [--tests PATH ...] [FILE OR FOLDER ...]

A mutant *survives* if every test still passes. Then a test is missing, or the mutant is equivalent:
no input tells it from the original. ``equivalent.toml`` lists the equivalent ones, each with the
reason. The command ends with status 1 if more than 5 % of the mutants survive without a reason.

One process imports everything and runs the tests once, to learn which test executes which line.
Then it forks a child for each mutant, and the child runs the tests of the changed lines. Inside a
function the child exchanges the code of the live function. Elsewhere it imports the package anew.
``out/mutants.jsonl`` stores each outcome at once. An outcome holds until its module changes, and
that of a survivor until a test changes.
"""
