// Runs one script on MicroPython's webassembly port, as webassembly.py asks.
// stdin: JSON {loader, heap_bytes, sources: [[host folder, folder], ...], shared: [folder, ...], script, argv}
// The .py files of `sources` and all files of `shared` are copied into the port's file system; what lies in
// `shared` when the script ends is copied back. Exit status 1 with the traceback on stderr when it raises.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

// Bytes of the port's stack of Python frames: its default of 2048 is less than a board's.
const PYSTACK = 16384;

const plan = JSON.parse(fs.readFileSync(0, "utf8"));
const { loadMicroPython } = await import(pathToFileURL(plan.loader));
const port = await loadMicroPython({
  heapsize: plan.heap_bytes,
  pystack: PYSTACK,
  stdout: (line) => fs.writeSync(1, line + "\n"),
});

function copyIn(from, to, wanted) {
  port.FS.mkdirTree(to);
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const source = path.join(from, entry.name);
    const target = path.posix.join(to, entry.name);
    if (entry.isDirectory()) {
      copyIn(source, target, wanted);
    } else if (wanted(entry.name)) {
      port.FS.writeFile(target, fs.readFileSync(source));
    }
  }
}

function copyOut(folder) {
  for (const name of port.FS.readdir(folder)) {
    const file = path.join(folder, name);
    if (name !== "." && name !== ".." && port.FS.isFile(port.FS.stat(file).mode)) {
      fs.writeFileSync(file, port.FS.readFile(file));
    }
  }
}

for (const [from, to] of plan.sources) {
  copyIn(from, to, (name) => name.endsWith(".py"));
}
for (const folder of plan.shared) {
  copyIn(folder, folder, () => true);
}
try {
  port.runPython(`import sys\nsys.argv[:] = ${JSON.stringify(plan.argv)}`);
  port.runPython(plan.script);
} catch (error) {
  fs.writeSync(2, `${error.message ?? error}\n`);
  process.exitCode = 1;
}
plan.shared.forEach(copyOut);
