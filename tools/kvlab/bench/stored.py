"""Keys and values as the device stores them: the board's own encoder, run on the unix port over a
pipe.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commandline.errors import FellShort
from kvlab import paths
from mpy_kv import Geometry
from unix_port import port

Array = NDArray[Any]


class DeviceCodec:
    """int8 in groups of `group` for vectors of kv_heads x head_dim. Use as a context manager."""

    def __init__(self, kv_heads: int, head_dim: int, group: int) -> None:
        self.shape = (kv_heads, head_dim)
        self.group = group
        self.width = kv_heads * head_dim
        g = Geometry(1, kv_heads, kv_heads, head_dim, window=1, sinks=0, group=group)
        self.slice_width = g.slice_width
        self.slice_bytes = g.slice_bytes
        self.codes_bytes = kv_heads * g.row_bytes
        self.row_bytes = self.codes_bytes + 2 * g.groups
        self._running = ExitStack()
        self.process = self._running.enter_context(
            port.started(
                [str(paths.APPS / "bench" / "encode.py"), *map(str, (kv_heads, head_dim, group))],
                heap_bytes=8 << 20,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )

    def __enter__(self) -> DeviceCodec:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the process; safe to repeat."""
        self._running.close()

    # The pipe holds 64 KiB: what is in flight must stay below it, or both sides wait for each
    # other.
    CHUNK = 256

    def stored(self, x: Array) -> Array:
        """x (T, kv_heads, head_dim) stored and read back: code * scale, float32."""
        rows = np.ascontiguousarray(x, "<f4").reshape(len(x), self.width)
        parts = [self._chunk(rows[i : i + self.CHUNK]) for i in range(0, len(rows), self.CHUNK)]
        raw = np.concatenate(parts) if parts else np.zeros((0, self.row_bytes), np.uint8)
        codes = raw[:, : self.codes_bytes].astype(np.float32) - 128
        codes = codes.reshape(len(rows), -1, self.slice_bytes)[:, :, : self.slice_width]
        scales = raw[:, self.codes_bytes :].copy().view("<f2").astype(np.float32)
        values: Array = codes.reshape(len(rows), -1, self.group) * scales[:, :, None]
        return values.reshape(len(rows), *self.shape)

    def _chunk(self, rows: Array) -> Array:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        size = len(rows) * self.row_bytes
        try:
            self.process.stdin.write(np.uint32(len(rows)).tobytes() + rows.tobytes())
            self.process.stdin.flush()
            raw = self.process.stdout.read(size)
        except BrokenPipeError:
            raw = b""
        if len(raw) != size:
            raise FellShort("bench loss: the device's encoder ended early")
        return np.frombuffer(raw, np.uint8).reshape(len(rows), self.row_bytes)

    def transform(self, _layer: int, k: Array, v: Array) -> tuple[Array, Array]:
        """A KVTransform of models.reference: what attention sees instead of k and v."""
        both = self.stored(np.concatenate([k, v]))
        return both[: len(k)].astype(k.dtype), both[len(k) :].astype(v.dtype)
