"""dp-release: differentially private tables with provably least noise and a log that re-proves it.

Import what you need from the modules; importing the package itself loads nothing. The stages are
in :mod:`release.pipeline`, the front door to noise laws is :func:`release.ladder.design`, and the
verifier is :func:`release.verify.verify`.
"""

from release.version import VERSION

__all__ = ["VERSION"]
