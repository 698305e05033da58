"""The access table: what each step of a model reads and writes, what a board's memories make of it, and
beside it what the document this project started from says (its sections 2.2 and 4.1).

The document has words where bytes are counted here, so the counts get words too, by the rules of `words`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kvlab.bus.formula import ByStage, Bytes
from kvlab.facts import Memory, memory_of

KINDS = ("kv_read", "kv_write", "weights", "io")
TITLES = {"kv_read": "KV read", "kv_write": "KV write", "weights": "weights", "io": "vectors, I/O"}
DOCUMENT_SHARES = {"kv_read": 0.40, "kv_write": 0.25, "weights": 0.30, "io": 0.05}

WORDS = ("read", "write", "latency", "bandwidth")
DOCUMENT = {
    "prefill": ("Low", "High", "Low", "Very High"),
    "append": ("High", "Medium", "Medium", "Medium"),
    "qk": ("High", "Low", "Medium", "High"),
    "av": ("High", "High", "Medium", "High"),
}
STEPS = {
    "prefill": "prompt's K, V",
    "append": "append",
    "qk": "QK",
    "av": "AV",
    "token": "a token",
    "whole_prefill": "a prompt",
}

# A part of a row's own bytes -> the word for it; and a part of the bytes a token of the row with most, for
# which alone the document has a fourth word.
_PARTS = ((0.40, "High"), (0.15, "Medium"), (0.0, "Low"))
_BANDWIDTHS = ((0.75, "Very High"), *_PARTS)
# The document's three tiers have less than 10 ns, 100 ns and 100 us: the borders lie in the middle between
# two, on a scale of powers.
_LATENCIES_NS = ((3_000, "High"), (32, "Medium"), (0, "Low"))


@dataclass(frozen=True)
class Row:
    """A step. `tokens`: how many its bytes are of. Latency of the slowest memory it reads, None where no fact
    tells it; the time that its bytes take where memory is all that it waits for."""

    step: str
    tokens: int
    bytes: Bytes
    latency_ns: int | None
    bus_us: float
    words: Mapping[str, str]

    @property
    def bytes_per_s(self) -> float:
        """While it lasts, at most."""
        return self.bytes.total / self.bus_us * 1e6 if self.bus_us else 0.0

    @property
    def document(self) -> Mapping[str, str] | None:
        said = DOCUMENT.get(self.step)
        return dict(zip(WORDS, said)) if said else None

    def differs(self) -> list[str]:
        """Which words the document has others for."""
        said = self.document or {}
        return [word for word, counted in self.words.items() if said and counted != said[word]]

    def figures(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "tokens": self.tokens,
            **asdict(self.bytes),
            "read": self.bytes.read,
            "written": self.bytes.written,
            "latency_ns": self.latency_ns,
            "bus_us": self.bus_us,
            "bytes_per_s": self.bytes_per_s,
            "words": dict(self.words),
            "document": self.document,
            "differs": self.differs(),
        }


def rows(token: ByStage, prompt: ByStage, prompt_tokens: int, memories: Iterable[Memory]) -> list[Row]:
    """Of a told token and of a whole prompt, over these memories."""
    known = tuple(memories)
    main = memory_of(known, "main")
    weights = memory_of(known, "weights", "main")
    found = (
        ("prefill", prompt_tokens, prompt["append"]),
        ("append", 1, token["append"]),
        ("qk", 1, token["qk"]),
        ("av", 1, token["av"]),
        ("token", 1, _all(token)),
        ("whole_prefill", prompt_tokens, _all(prompt)),
    )
    most = max(each.total / tokens for step, tokens, each in found if step in DOCUMENT)
    made = []
    for step, tokens, each in found:
        latencies = [main.latency_ns, *([weights.latency_ns] if each.weights else [])]
        known_ns = [fact.value for fact in latencies if fact is not None]
        latency = max(known_ns) if len(known_ns) == len(latencies) else None
        said = words(each, each.total / tokens / most, latency) if step in DOCUMENT else {}
        made.append(Row(step, tokens, each, latency, _bus_us(each, main, weights), said))
    return made


def words(of: Bytes, part: float, latency_ns: int | None) -> dict[str, str]:
    """Read and write by their part of a step's own bytes; bandwidth by `part`, what it moves a token of the
    step that moves most; latency by the tiers of the document."""
    found = {"read": _word(_PARTS, of.read / of.total), "write": _word(_PARTS, of.written / of.total)}
    if latency_ns is not None:
        found["latency"] = _word(_LATENCIES_NS, latency_ns)
    return {**found, "bandwidth": _word(_BANDWIDTHS, part)}


def shares(token: ByStage) -> dict[str, float]:
    """Kind -> part of the bytes of a token."""
    found = _all(token)
    return {kind: getattr(found, kind) / found.total for kind in KINDS}


def differences(table: Sequence[Row], found: Mapping[str, float]) -> list[str]:
    """Where counts and document differ, a sentence each."""
    said = []
    for row in table:
        document = row.document or {}
        for word in row.differs():
            said.append(f"{STEPS[row.step]}: {word} is {row.words[word]}, the document says {document[word]}")
    for kind in KINDS:
        counted, told = found[kind], DOCUMENT_SHARES[kind]
        if abs(counted - told) > 0.05:
            part = f"{100 * counted:.1f} % of a token's bytes"
            said.append(f"{TITLES[kind]}: {part}, the document says {100 * told:.0f} %")
    return said


def _word(rule: Sequence[tuple[float, str]], value: float) -> str:
    return next(word for least, word in rule if value >= least)


def _all(found: ByStage) -> Bytes:
    return sum(found.values(), Bytes())


def _bus_us(of: Bytes, main: Memory, weights: Memory) -> float:
    """At least, one byte after another: a memory that tells no rate of writing has that of reading."""
    write = main.write_bytes_per_s or main.read_bytes_per_s
    seconds = (of.kv_read + of.io_read) / main.read_bytes_per_s.value
    seconds += (of.kv_write + of.io_write) / write.value
    return 1e6 * float(seconds + of.weights / weights.read_bytes_per_s.value)
