"""``python -m research SHEET … | --all | --list``: the tables and figures of the sources."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from research.figures import reproduce_all, select_figures, write_gallery

OUT = Path("out", "gallery")
SPEC = Path("data", "ami_levels.yaml")
"""The sample that kadam-14 is drawn for, in a checkout and below ``release/samples`` elsewhere."""


def default_spec() -> Path:
    """The sample of this checkout, or the one that the wheel has inside."""
    import release

    package = Path(release.__file__).parent
    inside = package / "samples" / SPEC
    return inside if inside.is_file() else package.parent / SPEC


def main(arguments: list[str] | None = None) -> None:
    """Draw sheets into a folder: a picture and a CSV file of each, a page, and a contact sheet.

    Raises:
        ReleaseError: a sheet that is not there, or a folder that cannot be written.
    """
    parser = argparse.ArgumentParser(prog="python -m research", description=__doc__)
    parser.add_argument("sheet", nargs="*", help="sheets by name")
    parser.add_argument("--all", action="store_true", help="all sheets")
    parser.add_argument("--list", action="store_true", help="print the names of the sheets")
    parser.add_argument("--out", type=Path, default=OUT, help=f"the folder to draw into ({OUT})")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes compute sheets (2)")
    parser.add_argument(
        "--spec",
        type=Path,
        default=default_spec(),
        help="whose table kadam-14 is for; it will be shown",
    )
    options = parser.parse_args(arguments)
    if not (options.sheet or options.all or options.list):
        parser.error("name sheets, or say --all or --list")
    names = select_figures(options.sheet)
    if options.list:
        print("\n".join(names))  # noqa: T201 - for people
        return
    sheets = []
    for sheet in reproduce_all(names, options.spec, options.out, options.jobs):
        print(f"{sheet.name}: {sheet.conclusion}", flush=True)  # noqa: T201 - for people
        sheets.append(sheet)
    page = write_gallery(sheets, options.out)
    print(f"{len(sheets)} sheets in {page}")  # noqa: T201 - for people


def run() -> None:
    """The command: errors are one line, with the exit status of their kind."""
    from release.errors import ReleaseError

    try:
        main()
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - for people
        sys.exit(error.exit_status)


if __name__ == "__main__":
    run()
