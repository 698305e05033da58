"""Builds jobs for device/cache_job.py and runs them: plain in this process, any kernels on the unix port."""

from __future__ import annotations

import functools
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "device"))
import cache_job  # noqa: E402


# What other runtimes are compared with, one after the other.
@functools.lru_cache(maxsize=128)
def _plain(job: str, data: bytes) -> bytes:
    out = io.BytesIO()
    cache_job.run(json.loads(job), io.BytesIO(data), out, "plain")
    return out.getvalue()


class Job:
    """One recorded run. k, v [T][layers][width]; q, qs [T][layers][heads*head_dim]; float32 or int16."""

    def __init__(self, geometry: dict, ops: list, k, v, q, qs=None, **cache):
        self.job = {"geometry": geometry, "cache": cache, "ops": ops}
        qs = q if qs is None else qs
        self.kind = "<i2" if cache.get("kv_shift") is not None else "<f4"
        parts = np.concatenate([np.asarray(x).astype(self.kind) for x in (k, v, q, qs)], axis=-1)
        self.data = parts.tobytes()
        self.layers = geometry["layers"]
        self.q_row = geometry["heads"] * geometry["head_dim"]
        # Rows in OUT, in order: (token, layer).
        self.rows: list[tuple[int, int]] = []
        for op in ops:
            if op[0] == "step":
                self.rows += [(op[1], layer) for layer in range(self.layers)]
            elif op[0] == "prefill":
                self.rows += [
                    (op[1] + i, layer) for layer in range(self.layers) for i in range(op[2])
                ]

    def split(self, raw: bytes) -> tuple[np.ndarray, bytes]:
        """Outputs [row][q_row] in the order of self.rows, and the buffer."""
        n = len(self.rows) * self.q_row * np.dtype(self.kind).itemsize
        return np.frombuffer(raw[:n], self.kind).reshape(len(self.rows), self.q_row), raw[n:]

    def plain(self) -> tuple[np.ndarray, bytes]:
        return self.split(_plain(json.dumps(self.job), self.data))

    def unix(self, upy, kernels: str = "viper") -> tuple[np.ndarray, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("job", "data", "out")]
            Path(paths[0]).write_text(json.dumps(self.job))
            Path(paths[1]).write_bytes(self.data)
            where = getattr(upy, "shared", upy)
            where.run(HERE / "device" / "cache_job.py", [*paths, kernels], heap_bytes=96 << 20, timeout=300)
            return self.split(Path(paths[2]).read_bytes())


def together(
    jobs: Sequence[Job], folder: Path, run: Callable[[Path], object], kernels: str
) -> list[tuple[np.ndarray, bytes]]:
    """Outputs and buffer of each job, all in one start: `run` runs device/cache_jobs.py on the list given."""
    lines = []
    for number, job in enumerate(jobs):
        paths = [folder / f"{number}.{end}" for end in ("job", "data", "out")]
        paths[0].write_text(json.dumps(job.job))
        paths[1].write_bytes(job.data)
        lines.append(" ".join([*map(str, paths), kernels]))
    (folder / "list").write_text("\n".join(lines))
    run(folder / "list")
    return [job.split((folder / f"{number}.out").read_bytes()) for number, job in enumerate(jobs)]
