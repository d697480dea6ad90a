"""Who publishes a release, and what for, in words; a spec may leave each text out."""

from __future__ import annotations

from dp_release_verify import forms
from release.spec.declarations import ReleaseInfo


def release_title(about: forms.About | ReleaseInfo) -> str:
    """The title of a release; without one its id."""
    return about.title or about.id


def about_sentences(about: forms.About | ReleaseInfo, published: str) -> list[str]:
    """Who published it, when, what for; how it may be used, whom to ask; and what is not said.

    ``published`` is the day, empty before there is one.
    """
    said = []
    who = [text for text in (about.curator, about.period) if text is not None]
    if who:
        said.append(f"{', '.join(who)}.")
    purpose = f" for {about.purpose}" if about.purpose is not None else ""
    if published:
        said.append(f"Published {published}{purpose}.")
    if about.license is not None:
        said.append(f"License {about.license}.")
    if about.contact is not None:
        said.append(f"Questions: {about.contact}.")
    missing = [name for name in forms.ABOUT_TEXTS if getattr(about, name) is None]
    if missing:
        said.append(f"Not said: {', '.join(missing)}.")
    return said
