"""Device code calls machine, rp2 and the other modules of a board as their type stubs say.

The unix port has stand-ins for these modules, so running there proves nothing about their signatures. The
stubs are those of the oldest supported firmware: what came later is refused.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from fetched import need, pip

from kvlab.paths import ROOT
from unix_port import compiled

STUBS = {
    port: (f"micropython-{port}-stubs==1.24.1.post2", "micropython-stdlib-stubs==1.29.0.post2")
    for port in ("rp2", "esp32")
}
# Inline assembler is no Python: its instructions and registers are names of nothing.
FILES = [
    file
    for folder in (ROOT / "mpy_kv", ROOT / "boards" / "apps")
    for file in sorted(folder.rglob("*.py"))
    if compiled.suits(file, "xtensawin")
]

# Device code has no annotations, and rebinds names where a port lacks a module: not what is asked here.
OFF = ("assignment", "has-type", "misc", "no-redef", "var-annotated")

# (port, file, what mypy says of it) -> why it is right all the same
KNOWN = {
    ("rp2", "boards/apps/stories/storage.py", 'Argument 1 to "memoryview" has incompatible type "Flash"'): (
        "from 1.25 on a Flash has the buffer protocol, which no stub tells; before, the TypeError is caught"
    ),
    ("esp32", "boards/apps/stories/storage.py", 'stub for module named "rp2"'): "its ImportError is caught",
    ("esp32", "boards/apps/stories/clock.py", 'stub for module named "rp2"'): "its ImportError is caught",
    ("rp2", "boards/apps/stories/logged.py", 'stub for module named "esp32"'): "only where there is no rp2",
    ("esp32", "boards/apps/stories/logged.py", 'stub for module named "rp2"'): "its ImportError is caught",
    ("rp2", "boards/apps/bench/beside.py", 'stub for module named "esp32"'): "only where there is no rp2",
    ("rp2", "boards/apps/bench/beside.py", 'keyword argument "len"'): "the port has it since 1.15",
    ("esp32", "boards/apps/bench/beside.py", 'stub for module named "rp2"'): "its ImportError is caught",
    ("esp32", "boards/apps/bench/marker.py", 'stub for module named "rp2"'): "is a Pico's",
    ("rp2", "boards/apps/stories/telling.py", '"monotonic_ns"'): "only where there is no ticks_ms: CPython",
    ("esp32", "boards/apps/stories/telling.py", '"monotonic_ns"'): "only where there is no ticks_ms: CPython",
    **{
        (port, "boards/apps/bench/calls.py", 'library stub for module named "marks"'): "lies beside it"
        for port in STUBS
    },
    **{
        (port, "boards/apps/stories/beside.py", said): why
        for port in STUBS
        for said, why in (
            ('"monotonic_ns"', "only where there is no ticks_us: CPython"),
            ('library stub for module named "asyncio.core"', "the stubs have the package alone"),
        )
    },
    ("rp2", "mpy_kv/bus/rp2_dma.py", '"DMA" has no attribute "registers"'): "the port has it since 1.22",
    ("rp2", "mpy_kv/bus/rp2_dma.py", '"DMA" has no attribute "channel"'): "the port has it since 1.22",
    ("esp32", "mpy_kv/bus/rp2_dma.py", 'stub for module named "rp2"'): "is for those that have it",
    **{
        (port, f"mpy_kv/{file}.py", 'Signature of "look"'): "Ring's has one more, for who builds on it"
        for port in STUBS
        for file in ("int4_blocks/blocks", "paged/pages")
    },
    **{
        (port, "mpy_kv/kernels/derived_kernels.py", f'"None" has no attribute "{name}"'): (
            "a Variant's base is a family; None is what other families have"
        )
        for port in STUBS
        for name in ("plain", "_found")
    },
    **{
        (port, f"mpy_kv/snapshot/{file}.py", 'Positions" is not valid as a type'): "a base that is transient"
        for port in STUBS
        for file in ("blocks", "chosen", "pages")
    },
    **{
        (port, "mpy_kv/cpython.py", part): "runs under CPython alone"
        for port in STUBS
        for part in ('module named "ctypes"', '"monotonic_ns"', '"asyncio.Future"')
    },
    **{
        (port, "mpy_kv/bus/tracker.py", '"Tracker" has no attribute "'): "set by tracking/setup.py"
        for port in STUBS
    },
    ("rp2", "mpy_kv/bus/stream/dma.py", '"DMA" has no attribute "channel"'): "no stub tells, the port has it",
    ("esp32", "mpy_kv/bus/stream/dma.py", 'stub for module named "rp2"'): "its ImportError is caught",
    **{
        (port, "mpy_kv/file_store/store.py", 'Module has no attribute "O_RDONLY"'): "CPython's alone"
        for port in STUBS
    },
    **{
        (port, f"boards/apps/bench/{file}", part): why
        for port in STUBS
        for file, part, why in (
            ("products.py", 'module named "instructions"', "its ImportError is caught"),
            ("tokens.py", 'module named "instructions"', "its ImportError is caught"),
            ("steps.py", 'module named "instructions"', "runs on the emulated board alone"),
            ("reopen.py", 'module named "marks"', "runs on the emulated board alone"),
            ("marker.py", 'module named "marks"', "runs on the emulated board alone"),
            ("marker.py", '"VfsLfs2"', "os has it beside vfs"),
            ("beside.py", '"VfsLfs2"', "os has it beside vfs"),
            ("first_word.py", 'module named "instructions"', "runs on the emulated board alone"),
            ("marks.py", 'incompatible type "Flash"', "a block device is whatever has its methods"),
            ("choices.py", 'module named "instructions"', "runs on the emulated board alone"),
            ("bus.py", 'module named "instructions"', "runs on the emulated board alone"),
            ("code.py", 'module named "exact"', "runs on the emulated board alone"),
            ("tally.py", 'module named "exact"', "runs on the emulated board alone"),
            ("worst.py", 'expected "ptr', "a pointer of viper takes any buffer"),
            ("worst_requests.py", 'expected "ptr', "a pointer of viper takes any buffer"),
            ("worst_tokens.py", 'expected "ptr', "a pointer of viper takes any buffer"),
        )
    },
}


def mains(port: str) -> list[Path]:
    """main.py of the boards of that port."""
    boards = [path.parent for path in (ROOT / "boards").glob("*/board.json")]
    return sorted(
        folder / "main.py"
        for folder in boards
        if json.loads((folder / "board.json").read_text())["port"] == port
    )


def complaints(port: str, files: Sequence[Path], tmp_path: Path) -> list[tuple[str, str]]:
    """(file below the root, message) of each error in `files` or what they import of ours."""
    stubs = need(pip, *STUBS[port])
    empty = tmp_path / "mypy.ini"
    empty.write_text("[mypy]\n")
    path = [stubs, tmp_path, ROOT, ROOT / "boards" / "apps", ROOT / "unix_port" / "side"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", f"--config-file={empty}", f"--cache-dir={tmp_path / 'cache'}"),
            *("--custom-typeshed-dir", stubs, "--no-site-packages", "--explicit-package-bases"),
            *("--check-untyped-defs", "--no-strict-optional", "--no-error-summary", "--hide-error-context"),
            *("--python-version", "3.10", "--no-color-output", "--show-absolute-path"),
            *(f"--disable-error-code={code}" for code in OFF),
            *files,
        ],
        env={**os.environ, "MYPYPATH": os.pathsep.join(map(str, path))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(.+?):\d+: error: (.+)$", done.stdout, re.MULTILINE)
    ours = [(Path(file), said) for file, said in found if stubs not in Path(file).parents]
    return [
        (file.relative_to(ROOT if ROOT in file.parents else tmp_path).as_posix(), said) for file, said in ours
    ]


@pytest.mark.parametrize("port", STUBS)
def test_device_code_agrees_with_the_stubs(port: str, tmp_path: Path) -> None:
    assert mains(port), "no board of this port"
    found = complaints(port, [*FILES, *mains(port)], tmp_path)
    known = {(file, part) for where, file, part in KNOWN if where == port}
    unknown = [
        f"{file}: {said}" for file, said in found if not any(file == f and part in said for f, part in known)
    ]
    assert unknown == []
    gone = [(f, part) for f, part in known if not any(file == f and part in said for file, said in found)]
    assert gone == [], "no longer said: take it out of KNOWN"


PLANTED = {
    "rp2": [
        ("import rp2\nrp2.Flash().readblock(0)\n", '"Flash" has no attribute "readblock"'),
        ("import rp2\nrp2.Flash().readblocks()\n", "overload variant"),
        ("import machine\nmachine.freq(1, 2, 3)\n", "overload variant"),
        ("import machin\n", 'named "machin"'),
        ("import time\ntime.ticks()\n", 'no attribute "ticks"'),
        ("import esp32\n", 'named "esp32"'),
    ],
    "esp32": [
        ("import esp32\nesp32.Partition('x').read(0)\n", '"Partition" has no attribute "read"'),
        ("import esp32\nesp32.NVS('x').set_i16('k', 1)\n", '"NVS" has no attribute "set_i16"'),
        ("import machine\nmachine.freq(1, 2, 3)\n", "overload variant"),
        ("import rp2\n", 'named "rp2"'),
    ],
}


@pytest.mark.parametrize("port", PLANTED)
def test_a_planted_error_is_found(port: str, tmp_path: Path) -> None:
    """Each in a function without annotations, as device code is."""
    files = []
    for at, (text, _) in enumerate(PLANTED[port]):
        files.append(tmp_path / f"planted_{at}.py")
        files[-1].write_text("def f():\n" + "".join(f"    {line}\n" for line in text.splitlines()))
    found = dict(complaints(port, files, tmp_path))
    for file, (text, want) in zip(files, PLANTED[port]):
        assert want in found.get(file.name, "nothing"), text
