"""Debian's source package of MicroPython, over the mirror this machine is set up with.

Works on private lists: apt's own configuration, lists and packages stay as they are. No rights needed.
"""

from __future__ import annotations

import email
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firmware import tools
from firmware.errors import FirmwareError

PACKAGE = "micropython"

# Tried in this order: the first that answers and is not too old is taken.
SUITES = ("forky", "sid", "trixie")

LEAST = (1, 25)

UPDATE_TIMEOUT_S = 300

# .../debian, or one day of it on snapshot.debian.org; a vendor's own archive is named otherwise, or has
# no component "main", or does not answer for these suites as Debian.
_ARCHIVE = re.compile(r"(https?|ftp|mirror\+\w+|tor\+https?)://\S+/debian(/\d{8}T\d{6}Z)?/?$")

# deb [option=value ...] uri suite component ...
_ONE_LINE = re.compile(r"deb(?:-src)?\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)")


@dataclass(frozen=True)
class Mirror:
    """A Debian archive in apt's configuration. `signed_by`: path of a keyring, an embedded key, or ""."""

    uri: str
    signed_by: str


@dataclass(frozen=True)
class Package:
    """A source package: where it was found, and its version there."""

    mirror: Mirror
    suite: str
    version: str


def mirrors(etc: Path = Path("/etc/apt")) -> list[Mirror]:
    """The Debian archives in the configuration below `etc`, each once, in the order of its files."""
    found: list[Mirror] = []
    parts = etc / "sources.list.d"
    for path in (etc / "sources.list", *sorted(parts.glob("*.list")), *sorted(parts.glob("*.sources"))):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for mirror in _stanzas(text) if path.suffix == ".sources" else _lines(text):
            if mirror not in found:
                found.append(mirror)
    return found


def _lines(text: str) -> Iterator[Mirror]:
    """Archives of a one-line-style file."""
    for line in text.splitlines():
        entry = _ONE_LINE.match(line.split("#")[0].strip())
        if entry and _ARCHIVE.match(entry[2]) and "main" in entry[4].split():
            options = dict(word.split("=", 1) for word in (entry[1] or "").split() if "=" in word)
            yield Mirror(entry[2], options.get("signed-by", ""))


def _stanzas(text: str) -> Iterator[Mirror]:
    """Archives of a deb822-style file."""
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", plain):
        entry = email.message_from_string(stanza.strip() + "\n")
        if entry.get("Enabled", "yes").strip().lower() in ("no", "false", "0"):
            continue
        if "main" not in entry.get("Components", "").split():
            continue
        for uri in entry.get("URIs", "").split():
            if _ARCHIVE.match(uri):
                yield Mirror(uri, entry.get("Signed-By", "").strip())


class Apt:
    """apt with lists of its own in `place`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._sources = place / "sources.list.d"
        for folder in (self._sources, place / "lists" / "partial", place / "cache" / "archives" / "partial"):
            folder.mkdir(parents=True)
        self._options = [
            "Dir::Etc::SourceList=/dev/null",
            f"Dir::Etc::SourceParts={self._sources}",
            f"Dir::State::Lists={place / 'lists'}",
            f"Dir::Cache={place / 'cache'}",
            "Acquire::Languages=none",
            # The sandbox's user cannot write to a folder of ours.
            "APT::Sandbox::User=",
            "APT::Get::List-Cleanup=false",
        ]

    def run(self, program: str, *words: str) -> str:
        options = [word for option in self._options for word in ("-o", option)]
        return tools.run([program, *options, *words], timeout_s=UPDATE_TIMEOUT_S, cwd=str(self.place))

    def version(self, mirror: Mirror, suite: str) -> str | None:
        """Version of the source package in `suite`; None where the suite does not answer or has none."""
        entry = f"Types: deb-src\nURIs: {mirror.uri}\nSuites: {suite}\nComponents: main\n"
        if mirror.signed_by:
            entry += f"Signed-By: {mirror.signed_by}\n"
        (self._sources / "debian.sources").write_text(entry, encoding="utf-8")
        try:
            # Without this apt says "ok" of a suite that is not there and keeps what it had.
            self.run("apt-get", "-qq", "-o", "APT::Update::Error-Mode=any", "update")
            shown = self.run("apt-cache", "showsrc", "--only-source", PACKAGE)
        except FirmwareError:
            return None
        releases = [path.read_text(errors="replace") for path in (self.place / "lists").glob("*InRelease")]
        if not any(re.search(r"^Origin: Debian$", text, re.MULTILINE) for text in releases):
            return None
        versions = re.findall(r"^Version: (\S+)$", shown, re.MULTILINE)
        return max(versions, key=parse) if versions else None

    def fetch(self, package: Package) -> Path:
        """The upstream tarball, checked by apt against the signed index."""
        self.run("apt-get", "-qq", "source", "--download-only", f"{PACKAGE}={package.version}")
        tarballs = [path for path in self.place.glob(f"{PACKAGE}_*.orig.tar.*") if path.suffix != ".asc"]
        if len(tarballs) != 1:
            raise FirmwareError(f"{PACKAGE} {package.version} in {package.suite}: no upstream tarball")
        return tarballs[0]


def parse(version: str) -> tuple[int, ...]:
    """(1, 26, 1) of "1.26.1+ds-1"."""
    found = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def fetch(target: Path, suites: Sequence[str] = SUITES, etc: Path = Path("/etc/apt")) -> Package:
    """Unpack MicroPython from Debian into `target` (which must not exist); returns what it is.

    FirmwareError when the machine has no Debian mirror, or none of `suites` there has a version that
    is new enough.
    """
    if shutil.which("apt-get") is None:
        raise FirmwareError("no apt-get here: name a checkout of MicroPython in MICROPYTHON_SRC")
    known = mirrors(etc)
    if not known:
        raise FirmwareError(
            f"{etc} names no Debian archive: name a checkout of MicroPython in MICROPYTHON_SRC"
        )
    seen = []
    for mirror in known:
        for suite in suites:
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="apt-") as folder:
                apt = Apt(Path(folder))
                version = apt.version(mirror, suite)
                if version is None or parse(version) < LEAST:
                    seen.append(f"{suite}: {version or 'none'}")
                    continue
                package = Package(mirror, suite, version)
                _unpack(apt.fetch(package), target)
                return package
    raise FirmwareError(
        f"no {PACKAGE} {'.'.join(map(str, LEAST))} or newer in Debian ({'; '.join(seen)}):"
        " name a checkout of MicroPython in MICROPYTHON_SRC"
    )


def _unpack(tarball: Path, target: Path) -> None:
    """The content of the tarball's one folder as `target`, all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unpack-") as folder:
        with tarfile.open(tarball) as archive:
            archive.extractall(folder, filter="data")
        inside = list(Path(folder).iterdir())
        source = inside[0] if len(inside) == 1 else Path(folder)
        shutil.move(source, target)
