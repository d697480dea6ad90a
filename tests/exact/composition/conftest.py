"""What the rival accountant of these tests needs, before it is loaded."""

from __future__ import annotations

import sys

from absl import logging

# Its library closes the stream of its log as soon as Prefect, in whatever test of this process,
# sets logs up. That stream is standard error as it was at the import: pytest's own file of what a
# test prints, without which no later test runs. It never closes the real one.
logging.get_absl_handler().python_handler.stream = sys.__stderr__
