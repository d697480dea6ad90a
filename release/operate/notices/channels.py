"""Channels: a webhook, a mailbox, a file or a block of Prefect's, to which notices are sent.

A file of channels has an address on each line. Addresses hold tokens and passwords, so the file is
private, and neither a spec, a log, a ledger nor a parameter of a run has them.

========================================  ==========================================================
``file:///var/log/notices.jsonl``         one JSON object a line; ours, and needs nothing
``prefect://slack-webhook/ops``           a notification block of the Prefect server
``json://host/path``, ``mailto://…``, …   everything else that Apprise knows
========================================  ==========================================================
"""

from __future__ import annotations

import json
import logging
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dp_release_verify.digests import sha256
from release.errors import SpecError
from release.operate.notices.notice import Notice
from release.operate.plug_ins import plug_in
from release.records.keys.files import forbidden_mode

VARIABLE = "DP_RELEASE_NOTIFY"
"""The variable that names the file of channels where no option does."""
_LONGEST = 2**16
_FIELD = "--notify"


@dataclass(frozen=True, repr=False)
class Channel(ABC):
    """Where notices go; its representation shows no address."""

    address: str

    @property
    def name(self) -> str:
        """A digest that tells channels apart and does not show their secrets."""
        return sha256(self.address.encode())[:16]

    @property
    def kind(self) -> str:
        """The scheme of the address, which may be shown."""
        return self.address.partition(":")[0]

    @abstractmethod
    def check(self) -> None:
        """Check what can be checked without sending anything.

        Raises:
            SpecError: the address is wrong, or what it needs is not installed.
        """

    @abstractmethod
    def send(self, notice: Notice) -> bool:
        """Send a notice; whether it was taken. May raise what its library raises."""


class FileChannel(Channel):
    """A file to which a line is appended."""

    @property
    def _path(self) -> Path:
        return Path(urlsplit(self.address).path)

    def check(self) -> None:
        """Check that the folder of the file is there.

        Raises:
            SpecError: it is not.
        """
        if not self._path.is_absolute() or not self._path.parent.is_dir():
            raise SpecError(_FIELD, f"{self.address}: no such folder; write file:///FOLDER/FILE")

    def send(self, notice: Notice) -> bool:
        """Append a JSON object in one write, so that several runs can share a file."""
        plain = {"end": notice.end, "subject": notice.subject}
        line = json.dumps({**plain, "title": notice.title, "body": notice.body}) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        try:
            return os.write(descriptor, line.encode()) == len(line.encode())
        finally:
            os.close(descriptor)


class PrefectChannel(Channel):
    """A notification block on the Prefect server of the environment."""

    @property
    def _block(self) -> str:
        return self.address.removeprefix("prefect://")

    @cached_property
    def _plug_in(self) -> Callable[..., Any]:
        absent = SpecError(_FIELD, "prefect:// needs Prefect; pip install 'dp-release[flows]'")
        load: Callable[..., Any] = plug_in("dp_release.notifier", absent)
        return load

    def check(self) -> None:
        """Load the block.

        Raises:
            SpecError: the server has none of this name, or it cannot notify.
        """
        try:
            self._plug_in(self._block)
        except SpecError:
            raise
        # Of the scheduler's client, whose exceptions this module does not know.
        except Exception as error:
            kind = type(error).__name__
            raise SpecError(_FIELD, f"{self.address}: no Prefect server answers ({kind})") from None

    def send(self, notice: Notice) -> bool:
        """Notify by the block; raises where its server does not answer."""
        self._plug_in(self._block)(notice.body, notice.title)
        return True


class AppriseChannel(Channel):
    """An address of Apprise: a webhook, e-mail, or one of a hundred services."""

    def check(self) -> None:
        """Check that Apprise knows the address.

        Raises:
            SpecError: it does not, or is not installed.
        """
        self._opened()

    def send(self, notice: Notice) -> bool:
        """Send it by Apprise, which waits for seconds at most and raises nothing."""
        return bool(self._opened().notify(body=notice.body, title=f"dp-release: {notice.title}"))

    def _opened(self) -> Any:
        try:
            import apprise
        except ImportError as error:
            raise SpecError(_FIELD, "needs Apprise; pip install 'dp-release[notify]'") from error
        # Its log shows whole addresses, and the rest of an address may be a password.
        logging.getLogger("apprise").disabled = True
        opened = apprise.Apprise()
        if not opened.add(self.address):
            raise SpecError(_FIELD, f"{self.kind}://… is no address that Apprise knows")
        return opened


def channel(address: str) -> Channel:
    """The channel of an address."""
    kinds = {"file": FileChannel, "prefect": PrefectChannel}
    return kinds.get(address.partition(":")[0], AppriseChannel)(address)


def read_channels(path: Path) -> tuple[Channel, ...]:
    """The channels of a file: an address on each line; empty lines and those with # are left out.

    Raises:
        SpecError: there is no such file, others may read it, or it names no channel.
    """
    try:
        # Opened without waiting: a path may lead to a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(_LONGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(_FIELD, f"{path}: no text file of addresses there") from error
    if mode & forbidden_mode(path):
        raise SpecError(_FIELD, f"{path}: others may read its passwords; chmod 600")
    lines = map(str.strip, text.splitlines())
    channels = tuple(channel(line) for line in lines if line and not line.startswith("#"))
    if not channels or not all("://" in own.address for own in channels):
        raise SpecError(_FIELD, f"{path}: write an address on each line, such as json://host/path")
    return channels
