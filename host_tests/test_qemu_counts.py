"""A count on the emulated board is the same bits whatever else this machine does and whatever ran before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from known_cases import DEVICE

from kvlab.paths import BOARDS
from qemu_port.board import Qemu
from unix_port import compiled, processes

MODEL = BOARDS / "models" / "stories.mkvm"

# Of native code and of bytecode, of what allocates and what collects, in ticks and to within four.
COUNTS = """
import gc, json
from array import array
from call_cost import cost
from exact import begin, end
from instructions import count
from mpy_kv import Geometry, KVCache, kernels

def exactly(f, *args):
    start = begin()
    f(*args)
    return end(start)

def objects(n):
    return [bytearray(i) for i in range(n)]

g = Geometry(1, 4, 4, 8, window=32, sinks=0)
cache = KVCache(g, kernels=kernels.get("thumb"))
k, out = array("f", [i * 91 % 61 - 30 for i in range(32)]), array("f", bytes(128))
found = []
for _ in range(6):
    cache.append(0, k, k)
    cache.attend(0, k, out)
    cache.commit()
    gc.collect()
    found += [count(objects, 40), exactly(objects, 3), count(gc.collect), exactly(cache.append, 0, k, k)]
    found.append(cost(2, cache.kernels.encode, cache.buffer, k, k, cache.attention[0].e))
    cache.abort()
print(json.dumps(found))
"""

COUNTS_OF_RISCV = """
import gc, json
from instructions import count

def objects(n):
    return [bytearray(i) for i in range(n)]

found = []
for i in range(40):
    found += [count(objects, i), count(gc.collect), count(sorted, list(range(i)))]
print(json.dumps(found))
"""

# What leaves much behind: other modules, other objects, a deep stack.
SPOIL = """
import mpy_kv, stories
def deep(n):
    return [n, deep(n - 1)] if n else bytearray(5000)
keep = deep(12)
"""


@contextmanager
def busy(count: int = 4) -> Iterator[None]:
    """So many processes that only count, for this block."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(processes.started(["sh", "-c", "while :; do :; done"]))
        yield


@pytest.mark.parametrize(
    ("fixture", "script"),
    [("qemu", f"import sys\nsys.path.append({str(DEVICE)!r})\n{COUNTS}"), ("qemu_riscv", COUNTS_OF_RISCV)],
    ids=["arm", "riscv"],
)
def test_a_count_is_the_same_bits_beside_busy_processes(fixture: str, script: str, request) -> None:
    """And after another script, on another board."""
    one = request.getfixturevalue(fixture)
    quiet = one.run(script)
    one.run(SPOIL)
    with busy(), Qemu(elf=one.elf, machine=one.machine) as other:
        assert other.run(script, path=[compiled.tree(one.machine.arch)]).stdout == quiet


# Of what names reach: the text of a file, the heap, and the interpreter's tables of names.
PLACED = """
import gc, json, sys
from instructions import count
import beside, stories

def read(name):
    with open(name) as file:
        return file.read()

found = [count(read, sys.argv[1]), count(read, "here"), count(beside.f), gc.mem_alloc()]
print(json.dumps(found + [read(sys.argv[1])]))
"""


def test_a_count_does_not_depend_on_where_files_lie(qemu, tmp_path: Path) -> None:
    """Neither the script, nor what it imports and reads, nor the folder it runs in."""
    said = []
    for name in ("a", "a folder of a longer name/below"):
        home = tmp_path / name
        home.mkdir(parents=True)
        (home / "main.py").write_text(PLACED)
        (home / "beside.py").write_text("import gc\ndef f():\n    return [gc.mem_free() for _ in range(9)]")
        (home / "here").write_text("here")
        (home / "model").write_text("a model")
        modules = home / "modules"
        modules.symlink_to(compiled.tree(qemu.machine.arch))
        board = qemu.board.run(home / "main.py", [home / "model"], path=[modules], cwd=home)
        assert board.status == 0, board.stderr
        said.append((board.stdout, qemu.board.report["instructions"]))
    assert said[0] == said[1]
    assert said[0][0].endswith('"a model"]\n')


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("sparse_cost.py", ["thumb"]),
        ("sparse_cost.py", ["viper"]),
        ("float16_cost.py", []),
        ("av_cost.py", []),
        ("sealed_cost.py", []),
        ("mixed_cost.py", []),
        ("budget_cost.py", [32, "thumb", "lru-attention"]),
        ("stories_instructions.py", [MODEL, "thumb"]),
    ],
    ids=["sparse, thumb", "sparse, viper", "float16", "av", "sealed", "mixed", "budget", "stories"],
)
def test_so_is_every_cost(script: str, words: list[object], qemu) -> None:
    quiet = qemu.run(DEVICE / script, words, timeout=600)
    qemu.run(SPOIL)
    with busy():
        assert qemu.run(DEVICE / script, words, timeout=600) == quiet
