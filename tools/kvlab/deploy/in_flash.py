"""Models that lie in a board's flash before its storage, where `kvlab convert --uf2` puts them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlab.deploy.remote import Remote
from kvlab.models.image import HEADER_BYTES, MAGIC, VERSION

_AGENT = Path(__file__).with_name("agent_flash.py")
_HEAD = struct.Struct("<4sHHIII")


@dataclass(frozen=True)
class InFlash:
    """An image there. `whole`: as its checksum says; `readable`: the app takes it."""

    address: int
    head: bytes
    whole: bool

    @property
    def readable(self) -> bool:
        return self.whole and _HEAD.unpack(self.head)[:3] == (MAGIC, VERSION, HEADER_BYTES)

    @property
    def size(self) -> int:
        """As it says."""
        size: int = _HEAD.unpack(self.head)[3]
        return size

    def is_of(self, model: bytes) -> bool:
        """Whether it is this board image, by size and checksum."""
        return self.readable and self.head == model[: _HEAD.size]

    def figures(self, model: bytes) -> dict[str, Any]:
        return {
            "address": self.address,
            "bytes": self.size,
            "whole": self.whole,
            "readable": self.readable,
            "this_model": self.is_of(model),
        }


def find(remote: Remote) -> tuple[InFlash, ...]:
    """All that begin like one, nearest the storage first."""
    remote.link.run(_AGENT.read_text(encoding="utf-8"))
    found = []
    for line in remote.link.run("flash_images()").splitlines():
        address, head, whole = line.split()
        found.append(InFlash(int(address), bytes.fromhex(head), whole == "1"))
    return tuple(found)
