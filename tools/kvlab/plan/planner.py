"""The plan: does it fit, where does each part lie, how much would fit, how fast can it be, what to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from commandline.errors import BadInput
from kvlab.element_types import NAMES, SEALED, TYPES
from kvlab.plan.program import RING, weighs
from kvlab.plan.shape import Model
from kvlab.plan.sizes import WEIGHTS, Need, need, sinks_of, weight_bits
from kvlab.plan.targets import Part, Target

MOST_TOKENS = 1 << 26  # how far the search for the largest context goes


@dataclass(frozen=True)
class Question:
    """What is asked; the fields are the options of `kvlab plan`, and how two of them were told."""

    tokens: int
    codec: str
    window: int | None = None
    sinks: int | None = None  # None: as many as a window has by itself
    batch: int = 1
    group: int | None = None
    weights: str = "float16"
    policy: str | None = None  # which tokens stay; None and program.RING: the newest
    lowered: bool = False  # nobody asked for these sinks: the window leaves no room for the usual ones
    budget: bool = False  # nobody asked for this window: it is what a --budget leaves beside the sinks

    @property
    def weighs(self) -> bool:
        """Whether a policy weighs tokens by the attention they get."""
        return weighs(self.policy)

    @property
    def kept_sinks(self) -> int:
        """First tokens kept on top of the window; a policy that weighs tokens has none by itself."""
        return 0 if self.weighs and self.sinks is None else sinks_of(self.window, self.sinks)


@dataclass
class Plan:
    """The answer. Sizes in bytes, rates in tokens per second."""

    model: Model
    target: Target
    question: Question
    need: Need  # of one request
    parts: list[Part]
    reasons: list[str]  # why it does not fit
    largest_context: int  # tokens, on a board as many as its app takes; 0: none
    largest_window: int  # of --window, the same; 0: none
    most_requests: int
    weights_read_bytes: int  # for one token of every request
    kv_read_bytes: int  # the same, of all requests together
    tokens_per_s: float  # of all requests together, if memory were all it took
    by_codec: dict[str, dict[str, int]]  # of those that its policy can have
    warnings: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    firmware: tuple[str, int] | None = None  # what stands for a board with 32-bit objects: its window

    @property
    def fits(self) -> bool:
        return not self.reasons

    @property
    def verdict(self) -> str:
        return "fits" if self.fits else f"does not fit: {'; '.join(self.reasons)}"

    def stand_in(self, name: str, window: int) -> None:
        """Note the largest window of the emulated board `name`, which has this board's heap with objects of
        32 bits and machine code in it; a warning where that is less than was asked for."""
        self.firmware = (name, window)
        asked = self.question.window
        if self.fits and asked is not None and asked > window:
            self.warnings.append(
                f"--board {name}, with objects of 32 bits and machine code in the heap as on this board, has"
                f" room for a window of {window:,}"
            )

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON takes it."""
        q, t, m = self.question, self.target, self.model
        return {
            "model": m.id,
            t.kind: t.name,
            "fits": self.fits,
            "verdict": self.verdict,
            "codec": q.codec,
            "policy": q.policy or RING,
            "tokens": q.tokens,
            "window": q.window,
            "sinks": q.kept_sinks,
            "batch": q.batch,
            "group": q.group,
            "kv_bytes": q.batch * self.need.kv_bytes,
            "buffer_bytes": q.batch * self.need.buffer_bytes,
            "kv_bytes_per_request": self.need.kv_bytes,
            "buffer_bytes_per_request": self.need.buffer_bytes,
            "layers": [vars(part) for part in self.need.layers],
            "parts": [vars(part) for part in self.parts],
            "room_bytes": t.room,
            "areas_bytes": list(t.areas),
            "largest_object_bytes": t.largest,
            "largest_context_tokens": self.largest_context,
            "largest_window": self.largest_window,
            "largest_window_firmware": (
                {"board": self.firmware[0], "largest_window": self.firmware[1]} if self.firmware else None
            ),
            "model_context_tokens": m.seq_len,
            "most_requests": self.most_requests,
            "weights_read_bytes_per_step": self.weights_read_bytes,
            "kv_read_bytes_per_step": self.kv_read_bytes,
            "bandwidth_bound_tokens_per_s": self.tokens_per_s,
            "by_codec": self.by_codec,
            "memories": [
                {"name": memory.name, "role": memory.role, **{k: vars(f) for k, f in memory.facts().items()}}
                for memory in t.memories
            ],
            "warnings": self.warnings,
            "advice": self.advice,
        }


def pack(areas: Sequence[int], largest: int, buffers: Sequence[int], rest: int) -> bool:
    """Whether every buffer, of at most `largest` bytes, fits into one of the areas, and `rest` bytes of
    small objects into what is left of them together.
    """
    free = list(areas)
    for size, count in sorted(Counter(buffers).items(), reverse=True):
        if size > largest:
            return False
        for i in sorted(range(len(free)), key=lambda i: free[i]):  # the smallest area that takes it first
            here = min(count, free[i] // size)
            free[i] -= here * size
            count -= here
        if count:
            return False
    return sum(free) >= rest


def plan(model: Model, target: Target, question: Question) -> Plan:
    """Answer `question`. BadInput names an option that cannot be."""
    q = question
    if q.batch < 1:
        raise BadInput(f"--batch {q.batch}: must be at least 1")
    for name, codec, known in (("--codec", q.codec, NAMES), ("--weights", q.weights, WEIGHTS)):
        if codec not in known:
            raise BadInput(f"{name} {codec}: unknown; known: {', '.join(known)}")
    _check_policy(q)
    one = _need(model, q)
    weights, weights_read = target.weights_part(model, q.weights)
    beside = _beside(model, target, q)
    kv_read = q.batch * one.kv_bytes
    seconds = weights_read / target.weights.read_bytes_per_s.value
    seconds += kv_read / target.main.read_bytes_per_s.value
    caches = Part(
        "caches" if q.batch > 1 else "cache",
        q.batch * one.buffer_bytes,
        target.main.name,
        f"{q.batch} x {one.buffer_bytes:,} bytes" if q.batch > 1 else "mpy_kv.Geometry",
    )
    found = Plan(
        *(model, target, q, one, [caches, *beside, weights]),
        reasons=_reasons(model, target, q),
        largest_context=largest_context(model, target, q),
        largest_window=largest_window(model, target, q),
        most_requests=most_requests(model, target, q),
        weights_read_bytes=weights_read,
        kv_read_bytes=kv_read,
        tokens_per_s=q.batch / seconds,
        by_codec=_by_codec(model, q),
        warnings=_warnings(model, target, q, one),
    )
    if not found.fits:
        found.advice = _advice(model, target, q)
    return found


def _check_policy(q: Question) -> None:
    """BadInput where no cache has such a policy."""
    if not q.weighs:
        return
    if q.window is None:
        raise BadInput(f"--policy {q.policy}: chooses the tokens of a window: add --window or --budget")
    if q.codec not in codecs_of(q):
        raise BadInput(
            f"--codec {q.codec}: seals blocks of 16 tokens, of which --policy {q.policy} could drop none:"
            f" choose --policy {RING}, or --codec int8-int4"
        )


def codecs_of(q: Question) -> list[str]:
    """Element types that a cache with the policy of `q` can have: sealed blocks lose no single token."""
    return [codec for codec in NAMES if not (q.weighs and codec == SEALED)]


def _beside(model: Model, target: Target, q: Question) -> list[Part]:
    """What lies beside the caches."""
    return target.beside(model, q.kept_sinks, q.codec, q.policy, q.window or 0)


def _need(model: Model, q: Question) -> Need:
    group = q.group
    if group is not None and not TYPES[q.codec].scaled:
        raise BadInput(f"--group {group}: {q.codec} has no scales")
    return need(model, q.tokens, q.codec, q.window, q.sinks if q.window is None else q.kept_sinks, group)


def _with(q: Question, **changes: Any) -> Question:
    """Another question; a group stays only where the codec has scales, and such groups."""
    changed = Question(**{**vars(q), **changes})
    codec, group = changed.codec, changed.group
    if group is not None and group > TYPES[codec].most_group:
        return Question(**{**vars(changed), "group": None})
    return changed


def _rest(model: Model, target: Target, q: Question) -> int:
    """What shares the areas with the caches, weights included where they lie there."""
    total = sum(part.bytes for part in _beside(model, target, q))
    return total if target.weights_apart else total + target.weights_part(model, q.weights)[0].bytes


def _buffers_fit(model: Model, target: Target, q: Question) -> bool:
    one = _need(model, q)
    if len(target.areas) == 1:
        total = q.batch * one.buffer_bytes + _rest(model, target, q)
        return max(one.buffers) <= target.largest and total <= target.room
    if q.batch * min(one.buffers) > target.room:
        return False
    return pack(target.areas, target.largest, one.buffers * q.batch, _rest(model, target, q))


def fits(model: Model, target: Target, q: Question) -> bool:
    return not _reasons(model, target, q)


def _reasons(model: Model, target: Target, q: Question) -> list[str]:
    """Why it does not fit, each with its numbers."""
    said = _too_large(model, target, q)
    if not said and q.window is not None and q.batch == 1 and q.group is None:
        refused = target.refused(model, q.codec, q.policy)
        if q.window in refused and q.kept_sinks == _with(q, sinks=None).kept_sinks:
            less, more = q.window, q.window
            while less in refused:
                less -= 1
            while more in refused:
                more += 1
            said.append(
                f"a window of {q.window:,} leaves the heap of {target.name} in other pieces than {less:,} and"
                f" {more:,}, which fit"
            )
    return said


def _too_large(model: Model, target: Target, q: Question) -> list[str]:
    """Why the bytes do not fit."""
    said = []
    one = _need(model, q)
    weights = target.weights_part(model, q.weights)[0].bytes
    if target.weights_apart and weights > target.weights_room:
        said.append(f"weights of {weights:,} bytes in {target.weights_room:,} bytes of {target.weights.name}")
    said += target.limits(model, one.context, one.buffers)
    if _buffers_fit(model, target, q):
        return said
    rest, size = _rest(model, target, q), max(one.buffers)
    if rest >= target.room:
        ratio = times(rest, target.room)
        said.append(
            f"{rest:,} bytes beside any cache, {ratio} times the {target.room:,} bytes of {target.main.name}"
        )
        return said
    many = f"{q.batch:,} caches of" if q.batch > 1 else "a cache of"
    many += f" {one.buffer_bytes:,} bytes"
    if size > target.largest and target.kind == "board":
        said.append(f"a buffer of {size:,} bytes, and {target.name} has {target.largest:,} in one piece")
    elif q.batch * one.buffer_bytes + rest <= target.room:
        pieces = " + ".join(f"{area:,}" for area in target.areas)
        said.append(
            f"{many} beside {rest:,} bytes find no place in the pieces of {target.name}: {pieces} bytes"
        )
    else:
        said.append(f"{many} and {rest:,} bytes beside, in {target.room:,} bytes of {target.main.name}")
    return said


def times(part: int, whole: int) -> str:
    """How many times `whole` goes into `part`, with two decimals where they tell something."""
    ratio = part / whole
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"


def _largest(good: Callable[[int], bool], most: int) -> int:
    """The largest n up to `most` that is good, where all below a good one are; 0 if none is."""
    if not good(1):
        return 0
    low, high = 1, 2
    while high <= most and good(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def largest_context(model: Model, target: Target, q: Question) -> int:
    """The most tokens visible at once that fit, and that a board's app takes: as capacity, or with --window
    as sinks and window."""
    if q.window is None:
        return _largest(lambda n: fits(model, target, _with(q, tokens=n)), MOST_TOKENS)
    window, sinks = _largest_window(model, target, q)
    return window + sinks if window else 0


def largest_window(model: Model, target: Target, q: Question) -> int:
    """The largest --window that fits, and that a board's app takes, with the same sinks; with the usual ones
    if they were lowered for a window that does not fit. Not all below it need to: see Target.refused."""
    return _largest_window(model, target, q)[0]


def _largest_window(model: Model, target: Target, q: Question) -> tuple[int, int]:
    """That window, and the sinks beside it."""
    sinks = _with(q, window=1).kept_sinks

    def enough(n: int) -> bool:
        return not _too_large(model, target, _with(q, window=n, tokens=n + sinks))

    window = _largest(enough, MOST_TOKENS - sinks)
    if q.lowered and window < (q.window or 0):
        return _largest_window(model, target, _with(q, sinks=None, lowered=False))
    return window, sinks


def most_requests(model: Model, target: Target, q: Question) -> int:
    """The most requests of this size at once; 0 if not even one fits."""
    return _largest(lambda n: fits(model, target, _with(q, batch=n)), 1 << 30)


def sinks_said(sinks: int) -> str:
    return f"{sinks:,} sink{'' if sinks == 1 else 's'}"


def _by_codec(model: Model, q: Question) -> dict[str, dict[str, int]]:
    sizes = {}
    for codec in codecs_of(q):
        one = _need(model, _with(q, codec=codec))
        sizes[codec] = {"kv_bytes": q.batch * one.kv_bytes, "buffer_bytes": q.batch * one.buffer_bytes}
    return sizes


def _warnings(model: Model, target: Target, q: Question, one: Need) -> list[str]:
    said = list(model.warnings)
    remedy = "lower --window or --sinks" if q.window is not None else "lower --tokens, or slide with --window"
    if target.board is None and model.seq_len is not None and one.context > model.seq_len:
        said.append(
            f"a context of {one.context:,} tokens is more than the {model.seq_len:,} {model.id} was"
            f" trained for: {remedy}"
        )
    if model.latent:
        said.append("keys and values are one latent a layer: bytes of it, no buffer of mpy_kv")
    elif any(layer.v_dim != layer.head_dim for layer in model.cached):
        said.append(
            "keys and values differ in width: bytes of both, no buffer of mpy_kv, which has one width"
        )
    if any(layer.index for layer in model.cached):
        said.append(
            "an indexer's keys are counted in the element type of the keys; mpy_kv has no place for them"
        )
    if target.board is not None and not model.plain:
        said.append(
            f"the app on a board runs layers that are all alike: {model.id} is planned, it cannot run there"
        )
    return said


def _advice(model: Model, target: Target, q: Question) -> list[str]:
    """What to change, the least first. Every sentence was tried."""
    said = []
    lighter = [each for each in WEIGHTS if weight_bits(each) < weight_bits(q.weights)]
    for weights in sorted(lighter, key=weight_bits, reverse=True) if target.kind != "board" else ():
        other = _with(q, weights=weights)
        if fits(model, target, other):
            said.append(f"--weights {weights} fits")
        elif context := largest_context(model, target, other):
            said.append(f"--weights {weights}: then {context:,} tokens fit, in {q.codec}")
    rest = _rest(model, target, q)
    if rest >= target.room:
        return said  # nothing of the caches makes room for it
    known = codecs_of(q)
    for codec in known:
        if codec != q.codec and fits(model, target, _with(q, codec=codec)):
            said.append(f"--codec {codec} fits as it is")
    if q.batch > 1 and (most := most_requests(model, target, q)):
        said.append(f"--batch {most} fits")
    smaller = [codec for codec in known if TYPES[codec].bits < TYPES[q.codec].bits]
    for codec in (q.codec, *smaller):
        asked = _with(q, codec=codec)
        window, sinks = _largest_window(model, target, asked)
        window = min(window, model.seq_len or MOST_TOKENS)
        if 0 < window < (q.tokens if q.window is None else q.window):
            option = f"--budget {window + sinks}" if q.budget else f"--window {window}"
            option += "" if q.sinks is None or q.lowered else f" --sinks {q.sinks}"
            kept = f"{window:,} tokens of its choice" if q.weighs else f"the newest {window:,} tokens"
            said.append(f"--codec {codec} {option} fits: {sinks_said(sinks)} and {kept} stay")
    over = q.batch * _need(model, q).buffer_bytes + rest - target.room
    for memory in target.memories:
        if memory.role == "extension" and 0 < over <= memory.size_bytes.value:
            slow = over / memory.read_bytes_per_s.value
            read = target.weights_part(model, q.weights)[1] / target.weights.read_bytes_per_s.value
            read += (target.room - rest) / target.main.read_bytes_per_s.value
            rate = q.batch / (read + slow)
            said.append(f"{over:,} bytes of the caches into {memory.name}: at most {rate:,.1f} tokens/s")
            break
    return said
