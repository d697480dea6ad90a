"""Mechanisms that put the noise where the statistic is: on counts, ranks and sums, not on answers.

A mechanism on the answer sees a code alone, and has to blur how a table of ten thousand rows
answers as much as how one of ten does. A mechanism here sees the integers that decide the answer.
"""
