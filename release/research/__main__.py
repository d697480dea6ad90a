"""``python -m release.research [FIGURE …] --out DIR``: the tables and figures of the sources."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from release.research.figures import chosen, reproduce, write_gallery


def main(arguments: list[str] | None = None) -> None:
    """Draw figures into a folder: a picture and a CSV file of each, and a page of all.

    Raises:
        ReleaseError: a figure that is not there, or a folder that cannot be written.
    """
    parser = argparse.ArgumentParser(prog="python -m release.research", description=__doc__)
    parser.add_argument("figure", nargs="*", help="figures by name; all where none is named")
    parser.add_argument("--list", action="store_true", help="print the names of all figures")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="the folder to draw into")
    parser.add_argument(
        "--spec",
        type=Path,
        default=Path("data/ami_levels.yaml"),
        help="whose table kadam-14 is for; it will be shown",
    )
    given = parser.parse_args(arguments)
    names = chosen(given.figure)
    if given.list:
        print("\n".join(names))  # noqa: T201 - for people
        return
    sheets = []
    for name in names:
        print(f"drawing {name}", file=sys.stderr, flush=True)  # noqa: T201 - for people
        sheets.append(reproduce(name, given.spec, given.out))
    print(f"{len(sheets)} figures in {write_gallery(sheets, given.out)}")  # noqa: T201 - for people


if __name__ == "__main__":
    from release.errors import ReleaseError

    try:
        main()
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - for people
        sys.exit(error.exit_status)
