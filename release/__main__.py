"""``python -m release`` is ``dp-release``."""

from release.cli import main

main()
