"""Prefect flows: the same stages as :mod:`release.pipeline`, one task a stage."""
