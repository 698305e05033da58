"""The programs that building and running need, and what Debian calls their packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from firmware.errors import FirmwareError
from unix_port import processes


@dataclass(frozen=True)
class Tool:
    """A program and the Debian packages that bring it."""

    program: str
    packages: tuple[str, ...]


MAKE = Tool("make", ("make",))
GCC = Tool("arm-none-eabi-gcc", ("gcc-arm-none-eabi", "libnewlib-arm-none-eabi"))
RISCV_GCC = Tool("riscv64-unknown-elf-gcc", ("gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf"))
RISCV_QEMU = Tool("qemu-system-riscv32", ("qemu-system-misc",))
QEMU = Tool("qemu-system-arm", ("qemu-system-arm",))
HOST_CC = Tool("cc", ("gcc", "libc6-dev"))

ALL = (MAKE, GCC, QEMU, RISCV_GCC, RISCV_QEMU, HOST_CC)

INSTALL_TIMEOUT_S = 900


def missing(tools: Iterable[Tool] = ALL) -> list[Tool]:
    """Those of `tools` that are not on PATH."""
    return [tool for tool in tools if shutil.which(tool.program) is None]


def need(*tools: Tool) -> None:
    """FirmwareError, with the command that installs them, unless all of `tools` are there."""
    absent = missing(tools)
    if absent:
        names = ", ".join(tool.program for tool in absent)
        raise FirmwareError(f"no {names} here; on Debian: apt-get install {' '.join(packages(absent))}")


def packages(tools: Iterable[Tool]) -> list[str]:
    return [name for tool in tools for name in tool.packages]


def may_install() -> bool:
    """Whether this process can install packages: root on a system with apt."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(tools: Iterable[Tool] = ALL) -> list[str]:
    """Install what is missing of `tools`; returns the packages. FirmwareError where that cannot be."""
    wanted = packages(missing(tools))
    if not wanted:
        return []
    if not may_install():
        raise FirmwareError(f"not root on a Debian: ask for apt-get install {' '.join(wanted)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *wanted]):
        # One that is cut short leaves packages half installed, and nothing can be installed any more.
        run(["apt-get", "-qq", *words], timeout_s=INSTALL_TIMEOUT_S, env=env, finishes=True)
    return wanted


def make_environment() -> dict[str, str]:
    """This process's, less what a make that runs us (`make test`) tells its own children."""
    return {
        key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    }


def run(
    command: list[str],
    *,
    timeout_s: float,
    env: dict[str, str] | None = None,
    cwd: str | None = None,
    finishes: bool = False,
) -> str:
    """Stdout of a command that must succeed. FirmwareError with the last line it said.

    Neither the command nor what it starts outlives us, unless it `finishes` whatever ends us.
    """
    try:
        done = (subprocess.run if finishes else processes.run)(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError as error:
        raise FirmwareError(f"no {command[0]} here") from error
    except OSError as error:
        raise FirmwareError(f"{command[0]} does not start: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise FirmwareError(f"{command[0]} did not end within {timeout_s:g} s") from error
    if done.returncode != 0:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        # A compiler's first error says more than make's last line.
        first = next((line for line in said if "error" in line.lower()), said[-1] if said else "no word")
        raise FirmwareError(f"{' '.join(command[:3])}: exit status {done.returncode}: {first}")
    return done.stdout
