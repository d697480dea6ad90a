"""The outbox: what was told already, and what a channel has not taken yet.

Runs of many processes and machines may see one end. What was told is remembered in ``OUT``, so that
it is told once; what a channel did not take is sent by later runs, whatever happens to this one.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from release.operate.notices.channels import Channel, read_channels
from release.operate.notices.notice import LASTING, End, Notice
from release.spec.named import by_name, names_of

FILE = ".notices"
MOST_TOLD = 4096
"""Notices that are remembered; of an older one a second copy would be sent."""
TRIES = 30
"""Runs in which a notice is offered to a channel before it is given up."""


@dataclass
class _Waiting:
    """A notice, the channels that have not taken it, and how often it was offered."""

    notice: Notice
    names: list[str]
    tries: int = 0


@dataclass
class _Box:
    """The content of the file: keys of notices, oldest first, with their end and subject."""

    told: dict[str, list[str]] = field(default_factory=dict)
    waiting: list[_Waiting] = field(default_factory=list)
    descriptor: int | None = None

    def forget(self, ends: Collection[End], subject: str) -> None:
        """Take out what was told of some ends of a subject."""
        for key, (end, about) in list(self.told.items()):
            if end in ends and about == subject:
                del self.told[key]

    def save(self) -> None:
        """Write it, so that a process that is killed while it sends loses no notice."""
        if self.descriptor is None:
            return
        recent = dict(list(self.told.items())[-MOST_TOLD:])
        plain = {"told": recent, "waiting": [asdict(item) for item in self.waiting]}
        data = json.dumps(plain).encode()
        # Where the disk fails, a notice is rather sent twice than not at all.
        with suppress(OSError):
            os.pwrite(self.descriptor, data, 0)
            os.ftruncate(self.descriptor, len(data))


@dataclass(frozen=True)
class Outbox:
    """Sends notices about the releases of ``out`` to channels; without channels it does nothing.

    ``complain`` gets a line about a channel that fails. Nothing that fails here stops a release.
    """

    out: Path
    channels: tuple[Channel, ...] = ()
    complain: Callable[[str], object] = lambda line: None

    def tell(self, *notices: Notice) -> None:
        """Send those notices that were not told yet, and what is still waiting."""
        if not self.channels:
            return
        with self._opened() as box:
            names = names_of(self.channels)
            for notice in notices:
                finished = [End.FINISHED, notice.subject] in box.told.values()
                # That a crashed run's release is public was told as its end.
                is_new = notice.end is not End.RELEASED or not finished
                if notice.key not in box.told and is_new:
                    if notice.end is End.REFUSED:
                        # An earlier reason that comes back later is news again.
                        box.forget({End.REFUSED}, notice.subject)
                    box.told[notice.key] = [notice.end, notice.subject]
                    box.waiting.append(_Waiting(notice, names))
            # Before anything is sent: killed while it sends, a later run goes on from here.
            box.save()
            self._send(box)

    @property
    def is_begun(self) -> bool:
        """Whether anything was told before."""
        return bool(self.channels) and (self.out / FILE).exists()

    def over(self, ends: Collection[End], subject: str) -> None:
        """Forget lasting ends of a subject: their next occurrence is told anew."""
        if not self.channels or not (self.out / FILE).exists():
            return
        with self._opened() as box:
            box.forget(LASTING & set(ends), subject)

    def _send(self, box: _Box) -> None:
        channels = by_name(self.channels)
        failed: set[str] = set()
        for item in box.waiting:
            item.tries += 1
            untaken = []
            for name in item.names:
                # A channel that was taken out of the file is not waited for.
                if name not in channels:
                    continue
                # One that failed just now would let every further notice wait for its time-out.
                if name in failed:
                    untaken.append(name)
                elif not _is_taken(channels[name], item.notice):
                    untaken.append(name)
                    failed.add(name)
            item.names = untaken
        for name in sorted(failed):
            self.complain(f"{channels[name].kind}://… took no notice; later runs try it again")
        box.waiting = [item for item in box.waiting if item.names and item.tries < TRIES]

    @contextmanager
    def _opened(self) -> Iterator[_Box]:
        """The content of the file, which is written when the block ends; one process at a time."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.out / FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            yield _Box()
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            box = _read(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
            box.descriptor = descriptor
            yield box
            box.save()
        finally:
            os.close(descriptor)


def outbox(out: Path, path: Path | None, complain: Callable[[str], object]) -> Outbox:
    """The outbox of a folder, with the channels of a file; none of them is asked anything.

    Raises:
        SpecError: the file is none.
    """
    return Outbox(out, () if path is None else read_channels(path), complain)


def _is_taken(channel: Channel, notice: Notice) -> bool:
    # A channel's library may raise anything, and a release must not end by it.
    with suppress(Exception):
        return channel.send(notice)
    return False


def _read(data: bytes) -> _Box:
    # A file that a crash has cut short is begun anew: its notices may be told twice.
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        plain: dict[str, Any] = json.loads(data)
        waiting = []
        for item in plain["waiting"]:
            notice = Notice(**{**item["notice"], "end": End(item["notice"]["end"])})
            waiting.append(_Waiting(notice, list(item["names"]), int(item["tries"])))
        recent = {}
        for key, words in plain["told"].items():
            recent[str(key)] = list(map(str, words))
        return _Box(recent, waiting)
    return _Box()
