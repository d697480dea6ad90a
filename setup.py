"""Puts the samples and the schemas of the repository into the wheel, below ``release/samples``.

They are copied at the build, so that the repository has one copy of each, where its pages and specs
name it. The description is the README without what works in the repository alone. All else is
declared in pyproject.toml.
"""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
SAMPLES = ("data/*.yaml", "data/*.parquet", "data/*.csv", "schemas/*.json", "schemas/tables/*.yaml")
INSIDE = Path("release", "samples")


class BuildWithSamples(build_py):
    """Builds the package and copies the samples into it."""

    def run(self) -> None:
        """Build as usual; an editable install reads the repository itself."""
        super().run()
        if self.editable_mode:
            return
        for target, source in self._samples().items():
            self.mkpath(str(target.parent))
            self.copy_file(str(source), str(target), preserve_mode=False)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """The files of the package and of the samples."""
        own = [] if self.editable_mode else map(str, self._samples())
        return [*super().get_outputs(include_bytecode), *own]

    def _samples(self) -> dict[Path, Path]:
        samples = {}
        for pattern in SAMPLES:
            for source in sorted(HERE.glob(pattern)):
                samples[Path(self.build_lib) / INSIDE / source.relative_to(HERE)] = source
        return samples


def description() -> str:
    """The README where packages are shown: there relative links and pictures lead nowhere."""
    text = (HERE / "README.md").read_text("utf-8")
    # A picture and its legend, the paragraph after it.
    text = re.sub(r"^!\[[^]]*\]\([^)]*\)\n\n\*.*?\*\n\n", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


setup(
    cmdclass={"build_py": BuildWithSamples},
    long_description=description(),
    long_description_content_type="text/markdown",
)
