"""Which tests run which lines, recorded for each file of tests and kept until what it reads changes."""

from __future__ import annotations

import ast
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mutation import plan
from mutation.faults import Fault

Ask = Callable[[dict[str, Any]], dict[str, Any]]
LIMIT_S = 900  # of processor time, for a file of tests


class Broken(Exception):
    """A test fails without any fault."""


def _read(folder: Path, test: Path) -> set[Path]:
    """A file of tests and the modules beside it that it imports, and those that they do."""
    found: set[Path] = set()
    left = [test]
    while left:
        file = left.pop()
        if file in found:
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                left += [f for f in (folder / f"{name}.py", folder / "device" / f"{name}.py") if f.exists()]
    return found


def key_of(root: Path, test: Path) -> str:
    """Of what a file of tests runs: itself, what it shares with others, the files that are broken."""
    digest = hashlib.sha256()
    for file in sorted([*plan.broken(root), *_read(root / "host_tests", test)]):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


class Record:
    """`seconds` by test, and by file and line the tests that run it."""

    def __init__(self, found: Iterable[dict[str, Any]]) -> None:
        self.seconds: dict[str, float] = {}
        self.by_line: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        # By file: tests that run any line, where those are not recorded; tests beside whose import it ran.
        self.traced: dict[str, set[str]] = defaultdict(set)
        self.importers: dict[str, set[str]] = defaultdict(set)
        for each in found:
            self.seconds.update(each["seconds"])
            for context, files in each["lines"].items():
                # "": while it was imported; a file's name: what its fixtures ran.
                of_all = "::" not in context
                tests = set(each["seconds"]) if of_all else {context}
                for file, lines in files.items():
                    self.traced[file].update(each.get("traced", ()))
                    if not context:
                        self.importers[file].update(each["seconds"])
                    for line in lines:
                        self.by_line[file][line] |= tests if context else set()

    def tests_of(self, fault: Fault) -> list[str]:
        """Tests that run the lines of a fault, the fastest first; of what runs at import all of the file."""
        by_line = self.by_line.get(fault.file, {})
        first, last = fault.lines
        tests = set().union(*(by_line.get(line, set()) for line in range(first, last + 1)))
        # Run by whatever imports the file first, seen by all that come after.
        at_import = not fault.function or fault.kind == "default"
        if at_import or not tests:
            tests = set().union(*by_line.values())
        if at_import:
            tests |= self.importers[fault.file]
        tests |= self.traced[fault.file]
        # One that was skipped took no time and is not asked.
        return sorted(tests & self.seconds.keys(), key=lambda t: (self.seconds[t], t))


def make(root: Path, out: Path, ask: Ask, say: Callable[[str], None]) -> Record:
    """The record of the tree at `root`; `ask` runs tests on a copy of it."""
    out.mkdir(parents=True, exist_ok=True)
    files = [f.relative_to(root).as_posix() for f in plan.broken(root)]
    found = []
    for test in plan.tests(root):
        kept = out / f"{test.stem}.json"
        key = key_of(root, test)
        each = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
        if each.get("key") != key:
            report = out / "recording.json"
            name = f"host_tests/{test.name}"
            done = ask(
                {"do": "record", "files": files, "paths": [name], "report": str(report), "limit_s": LIMIT_S}
            )
            if done["status"] not in (0, 5) or not report.exists():
                log = Path(f"{report}.log").read_text(encoding="utf-8").strip().splitlines()
                raise Broken(f"{name} fails without any fault: {log[-1] if log else done}")
            each = json.loads(report.read_text(encoding="utf-8"))
            each |= {"key": key, "imports": json.loads(Path(f"{report}.imports").read_text(encoding="utf-8"))}
            kept.write_text(json.dumps(each), encoding="utf-8")
            say(f"{test.name}: {len(each['seconds'])} tests recorded in {done['cpu_s']:.0f} CPU seconds")
        found.append(each)
    return Record(found)


def imports(out: Path) -> list[str]:
    """What tests import from elsewhere, for a worker to import once."""
    found: set[str] = set()
    for kept in out.glob("test_*.json"):
        found |= set(json.loads(kept.read_text(encoding="utf-8")).get("imports", ()))
    return sorted(found)
