"""The contact sheet: all pictures of a gallery on one."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.image import imread

NAME = "contact-sheet.png"
COLUMNS = 6
WIDTH = 3.0
RESOLUTION = 60


def contact_sheet(names: Sequence[str], folder: Path) -> bytes:
    """The pictures ``NAME.png`` of a folder, each under its name, as one PNG."""
    rows = math.ceil(len(names) / COLUMNS)
    columns = min(COLUMNS, len(names))
    figure = Figure(figsize=(WIDTH * columns, WIDTH * 0.7 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for place, name in zip(axes, names, strict=False):
        place.imshow(imread(folder / f"{name}.png"))
        place.set_title(name, size=8)
    for place in axes:
        place.set_axis_off()
    data = io.BytesIO()
    figure.savefig(data, dpi=RESOLUTION, format="png", metadata={"Software": None})
    return data.getvalue()
