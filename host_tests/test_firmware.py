"""The firmware tool: where its source comes from, what it says when it has none, and its cache."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import qemu_fixtures

import firmware
from firmware import cache, debian, make, source, tools
from unix_port import compiled

DEB822 = """\
Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: https://vendor.example/node_20.x
Suites: nodistro
Components: main

Types: deb
URIs: https://download.docker.example/linux/debian
Suites: bookworm
Components: stable

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: sid
Components: main

Types: deb deb-src
URIs: http://inline.example/debian/
Suites: sid
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY
 -----END PGP PUBLIC KEY BLOCK-----
"""

ONE_LINE = """\
# deb http://comment.example/debian sid main
deb [arch=amd64 signed-by=/key.gpg] https://one.example/debian bookworm main contrib # why not
deb http://snapshot.example/archive/debian/20250520T000000Z bookworm main
deb http://one.example/debian-security bookworm-security main
deb https://vendor.example/apt stable main
deb cdrom:[Debian]/ bookworm main
"""


def test_the_mirrors_of_a_machine(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(ONE_LINE)
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "more.list").write_text(ONE_LINE)
    (tmp_path / "sources.list.d" / "old.sources.disabled").write_text(DEB822.replace("mirror", "old"))
    found = debian.mirrors(tmp_path)
    assert [mirror.uri for mirror in found] == [
        "https://one.example/debian",
        "http://snapshot.example/archive/debian/20250520T000000Z",
        "http://mirror.example/debian",
        "http://inline.example/debian/",
    ]
    assert [mirror.signed_by for mirror in found[:3]] == [
        "/key.gpg",
        "",
        "/usr/share/keyrings/debian-archive-keyring.gpg",
    ]
    assert found[3].signed_by.startswith("-----BEGIN PGP")
    assert found[3].signed_by.endswith("\n -----END PGP PUBLIC KEY BLOCK-----")


def test_a_machine_without_a_debian_mirror(tmp_path: Path) -> None:
    with pytest.raises(firmware.FirmwareError, match="names no Debian archive: .*MICROPYTHON_SRC"):
        debian.fetch(tmp_path / "source", etc=tmp_path)


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("1.26.1+ds-1", (1, 26, 1)), ("2:1.25-3", (1, 25)), ("1.9.4", (1, 9, 4)), ("unknown", ())],
)
def test_versions_are_compared_as_numbers(version: str, numbers: tuple) -> None:
    assert debian.parse(version) == numbers


class Answers(debian.Apt):
    """apt, where every suite has another version."""

    versions = {"forky": None, "sid": "1.22.1+ds-1", "trixie": "1.25.0+ds-4"}  # noqa: RUF012

    def version(self, mirror: debian.Mirror, suite: str) -> str | None:
        return self.versions[suite]

    def fetch(self, package: debian.Package) -> Path:
        folder = self.place / f"micropython-{debian.parse(package.version)}"
        (folder / "py").mkdir(parents=True)
        (folder / "py" / "mpconfig.h").write_text("")
        tarball = self.place / "micropython_1.orig.tar.gz"
        subprocess.run(["tar", "czf", tarball, "-C", self.place, folder.name], check=True)
        return tarball


def test_the_first_suite_that_is_new_enough_is_taken(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(debian, "Apt", Answers)
    monkeypatch.setattr(debian.shutil, "which", lambda name: name)
    (tmp_path / "sources.list").write_text(ONE_LINE)
    package = debian.fetch(tmp_path / "source", etc=tmp_path)
    assert (package.suite, package.version) == ("trixie", "1.25.0+ds-4")
    assert (tmp_path / "source" / "py" / "mpconfig.h").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "sources.list"]
    with pytest.raises(firmware.FirmwareError, match=r"no micropython 1\.25 .*forky: none; sid: 1\.22\.1"):
        debian.fetch(tmp_path / "other", suites=("forky", "sid"), etc=tmp_path)


def test_apt_works_on_lists_of_its_own(tmp_path: Path, monkeypatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(tools, "run", lambda command, **how: seen.append(command) or "Version: 9\n")
    apt = debian.Apt(tmp_path / "apt")
    assert apt.version(debian.Mirror("http://m/debian", "/key.gpg"), "sid") is None  # nothing says Debian
    (tmp_path / "apt" / "lists" / "m_InRelease").write_text("Origin: Debian\nSuite: sid\n")
    assert apt.version(debian.Mirror("http://m/debian", "/key.gpg"), "sid") == "9"
    for command in seen:
        given = dict(word.split("=", 1) for word in command if "=" in word)
        for name in ("Dir::Etc::SourceParts", "Dir::State::Lists", "Dir::Cache"):
            assert given[name].startswith(str(tmp_path)), name
        assert given["Dir::Etc::SourceList"] == "/dev/null"
    entry = (tmp_path / "apt" / "sources.list.d" / "debian.sources").read_text()
    assert entry.splitlines() == [
        "Types: deb-src",
        "URIs: http://m/debian",
        "Suites: sid",
        "Components: main",
        "Signed-By: /key.gpg",
    ]


def checkout(folder: Path, version: tuple[int, int, int] = (1, 28, 0)) -> Path:
    """What a checkout of MicroPython shows of itself."""
    for part in ("py", "ports/qemu", "mpy-cross"):
        (folder / part).mkdir(parents=True)
    names = ("MAJOR", "MINOR", "MICRO")
    lines = [f"#define MICROPY_VERSION_{name} {number}\n" for name, number in zip(names, version)]
    (folder / "py" / "mpconfig.h").write_text("".join(lines))
    (folder / "ports" / "qemu" / "Makefile").write_text("all:\n")
    return folder


def test_a_checkout_that_is_named(tmp_path: Path, monkeypatch) -> None:
    folder = checkout(tmp_path / "micropython")
    monkeypatch.setenv(source.SOURCE_ENV, str(folder))
    found = firmware.find_source()
    assert (found.path, found.version, found.origin) == (folder, "1.28.0", str(folder))
    assert firmware.find_source().key == found.key
    (folder / "ports" / "qemu" / "build-MPS2_AN385").mkdir()
    (folder / "ports" / "qemu" / "build-MPS2_AN385" / "main.o").write_text("")
    assert firmware.find_source().key == found.key, "what a build leaves is no source"
    (folder / "py" / "new.c").write_text("")
    assert firmware.find_source().key != found.key


def fifo(header: Path) -> None:
    header.unlink()
    os.mkfifo(header)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (Path.unlink, "no readable py/mpconfig.h"),
        (fifo, "no readable py/mpconfig.h"),
        (lambda header: header.write_bytes(bytes(range(128, 256))), "tells no version"),
        (lambda header: header.write_text("#define MICROPY_VERSION_MAJOR 1\n"), "tells no version"),
        (
            lambda header: (header.parents[1] / "ports/qemu/Makefile").unlink(),
            "MicroPython 1.28.0, but without ports/qemu/Makefile",
        ),
        (
            lambda header: header.write_text(header.read_text().replace("28", "24")),
            "MicroPython 1.24.0; 1.25 or newer is needed",
        ),
    ],
    ids=["absent", "a pipe", "bytes", "half a version", "no makefile", "old"],
)
def test_what_is_no_checkout(damage: Callable[[Path], object], why: str, tmp_path: Path, monkeypatch) -> None:
    folder = checkout(tmp_path / "micropython")
    damage(folder / "py" / "mpconfig.h")
    monkeypatch.setenv(source.SOURCE_ENV, str(folder))
    with pytest.raises(firmware.FirmwareError) as refused:
        firmware.find_source()
    assert str(refused.value).startswith(f"{source.SOURCE_ENV}={folder}: ")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_checkout_whose_name_is_no_text_or_no_file(tmp_path: Path, monkeypatch) -> None:
    folder = checkout(tmp_path / "\udcff")
    monkeypatch.setenv(source.SOURCE_ENV, str(folder))
    assert firmware.find_source().version == "1.28.0"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    monkeypatch.setenv(source.SOURCE_ENV, str(loop))
    with pytest.raises(firmware.FirmwareError, match="not a checkout"):
        firmware.find_source()


def test_a_fetched_source_that_is_damaged_is_fetched_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv(source.SOURCE_ENV, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fetch(target: Path) -> debian.Package:
        checkout(target)
        return debian.Package(debian.Mirror("http://m/debian", ""), "sid", "1.28.0+ds-1")

    monkeypatch.setattr(debian, "fetch", fetch)
    first = firmware.find_source()
    assert (first.path.name, first.version, first.key) == ("fetch-0", "1.28.0", "1.28.0+ds-1")
    assert firmware.find_source() == first
    (first.path / "py" / "mpconfig.h").unlink()
    assert firmware.find_source().path.name == "fetch-1"
    shutil.rmtree(first.path)
    note = cache.folder() / "source" / "package.json"
    note.write_text('{"folder": ')
    assert firmware.find_source().path.name == "fetch-0"
    assert json.loads(note.read_text())["folder"] == "fetch-0"


def test_missing_tools_are_named(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools.missing() == list(tools.ALL)
    for call in (lambda: firmware.build(100_000), firmware.mpy_cross):
        with pytest.raises(
            firmware.FirmwareError, match=r"no make, .* here; on Debian: apt-get install make "
        ):
            call()
    with pytest.raises(firmware.FirmwareError, match="apt-get install make gcc-arm-none-eabi"):
        tools.install()


@pytest.mark.parametrize("heap", [0, 1000, 1 << 30])
def test_heaps_the_machine_has_not(heap: int) -> None:
    with pytest.raises(firmware.FirmwareError, match=f"a heap of {heap:,} bytes; the machine takes"):
        firmware.build(heap)


GCC = """#!/bin/sh
echo 1.2.3
"""

# Writes what make would, slowly enough that a second builder comes in between; fails if two are at it.
MAKE = """#!/bin/sh
for word; do case $word in BUILD=*) build=${word#BUILD=};; MICROPY_HEAP_SIZE=*) heap=${word#*=};; esac; done
echo "$heap" >> "{log}"
mkdir -p "$build"; mkdir "$build/busy" || exit 3
test ! -e "$build/main.o" || exit 4
sleep 0.2
test ! -e "{fail}" || { echo "x.c:1: error: spoilt" >&2; exit 2; }
echo "$heap" > "$build/firmware.elf"; touch "$build/main.o" "$build/other.o"
rmdir "$build/busy"
"""


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch) -> Path:
    """Stand-ins for make and the compiler, a source, an empty cache. Returns the log of make's calls."""
    programs = tmp_path / "bin"
    programs.mkdir()
    log = tmp_path / "log"
    text = MAKE.replace("{log}", str(log)).replace("{fail}", str(tmp_path / "fail"))
    for name, script in (("make", text), ("arm-none-eabi-gcc", GCC)):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(source.SOURCE_ENV, str(checkout(tmp_path / "micropython")))
    return log


def test_a_firmware_is_built_once_for_each_heap(workshop: Path) -> None:
    first = firmware.build(100_000)
    assert first.read_text() == "100000\n"
    assert firmware.build(100_000) == first
    assert firmware.build(200_000).read_text() == "200000\n"
    assert first.read_text() == "100000\n"
    assert workshop.read_text().split() == ["100000", "200000"]
    assert "1.28.0-" in str(first)
    assert "gcc1.2.3" in str(first)


@pytest.mark.parametrize("kind", ["a device", "a file", "a loop", "too long", "read-only"])
def test_a_cache_that_cannot_be_used(kind: str, workshop: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    place = {
        "a device": "/dev/null",
        "a file": str(tmp_path / "file"),
        "a loop": str(tmp_path / "loop"),
        "too long": str(tmp_path / ("x" * 300)),
        "read-only": "/proc",
    }[kind]
    monkeypatch.setenv("XDG_CACHE_HOME", place)
    for call in (lambda: firmware.build(100_000), firmware.mpy_cross, lambda: source._package(False)):
        with pytest.raises(firmware.FirmwareError) as refused, cache.usable():
            call()
        assert str(refused.value).startswith(f"the cache {place}/kvlab/firmware: ")
        assert str(refused.value).endswith("; XDG_CACHE_HOME names another place")
        assert "\n" not in str(refused.value)


def test_a_full_disk_is_called_so(workshop: Path, tmp_path: Path, monkeypatch) -> None:
    """Whoever meets it first: a compiler, whose own words may be any, or what copies its work."""
    (tmp_path / "fail").touch()
    monkeypatch.setattr(shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(9 << 20, 9 << 20, 0))
    with pytest.raises(firmware.FirmwareError, match="no space left on its disk; XDG_CACHE_HOME names"):
        firmware.build(100_000)
    (tmp_path / "fail").unlink()

    def refuse(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(firmware.FirmwareError, match="No space left on device; XDG_CACHE_HOME names"):
        firmware.build(100_000)


def test_a_make_that_makes_nothing(workshop: Path, tmp_path: Path) -> None:
    (tmp_path / "bin" / "make").write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(firmware.FirmwareError, match=r"succeeds and makes no firmware\.elf"):
        firmware.build(100_000)


def test_a_program_that_does_not_start(tmp_path: Path) -> None:
    program = tmp_path / "gcc"
    program.write_bytes(b"\0no program")
    program.chmod(0o755)
    with pytest.raises(firmware.FirmwareError, match="gcc does not start: Exec format error"):
        tools.run([str(program)], timeout_s=10)


def test_builders_wait_for_one_another(workshop: Path) -> None:
    made: list[Path] = []
    threads = [threading.Thread(target=lambda: made.append(firmware.build(100_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1
    assert workshop.read_text().split() == ["100000"]


def test_what_failed_or_was_killed_is_not_found(workshop: Path, tmp_path: Path) -> None:
    (tmp_path / "fail").touch()
    with pytest.raises(firmware.FirmwareError, match=r"^make .*: exit status 2: x\.c:1: error: spoilt$"):
        firmware.build(100_000)
    assert not list((tmp_path / "cache").rglob("*.elf"))
    (tmp_path / "fail").unlink()
    assert firmware.build(100_000).read_text() == "100000\n"  # from the start: "busy" is gone
    objects = next((tmp_path / "cache").rglob("objects"))
    assert (objects / "other.o").exists()
    (objects / "busy").mkdir()
    objects.with_name("objects.whole").unlink()
    assert firmware.build(200_000).read_text() == "200000\n"


def test_a_lock_keeps_another_process_out(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom firmware import cache\n"
        "with cache.lock(pathlib.Path(sys.argv[1])): print('in', flush=True)"
    )
    with cache.lock(tmp_path / "it"):
        other = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "it"], stdout=subprocess.PIPE, text=True
        )
        time.sleep(0.5)
        assert other.poll() is None
    assert other.communicate(timeout=20)[0] == "in\n"


def test_the_command_line(tmp_path: Path, workshop: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "firmware", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    done = run("--heap", "100000")
    assert done.returncode == 0
    assert Path(done.stdout.strip()).read_text() == "100000\n"
    assert done.stderr.startswith("MicroPython 1.28.0 from ")
    done = run("--heap", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "firmware: error: --heap 1: give 32,768 to 3,145,728 bytes\n"
    assert run("--heap", "x").returncode == 2


def test_the_real_one_is_there_and_tells_its_version(qemu) -> None:
    said = qemu.run("import sys\nprint('.'.join(str(n) for n in sys.implementation.version[:3]))")
    assert said.strip() == firmware.find_source().version


def test_mpy_cross_of_the_same_source_speaks_as_the_installed_one(tmp_path: Path) -> None:
    """.mpy files carry the format's version, and for native code a sub-version and the instruction set."""
    if tools.missing((tools.HOST_CC,)):
        qemu_fixtures.unavailable("no cc to build mpy-cross with")
    kernel = tmp_path / "kernel.py"
    kernel.write_text("@micropython.viper\ndef f(a: int) -> int:\n return a\n")
    headers = []
    for program in (make.mpy_cross(), compiled.compiler()):
        out = tmp_path / "out.mpy"
        subprocess.run([program, "-march=armv6m", "-o", out, kernel], check=True)
        headers.append(out.read_bytes()[:3])
    assert headers[0] == headers[1] == bytes([ord("M"), 6, 4 << 2 | 3])
