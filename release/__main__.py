"""``python -m release`` is ``dp-release``."""

from release.cli.main import process

process()
