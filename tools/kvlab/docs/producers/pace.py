"""What a story takes on a Raspberry Pi Pico, modelled, and how far the model is off."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvlab import boards, shipped
from kvlab.cost import counted
from kvlab.docs.registry import Cost, Producer, named
from kvlab.element_types import NAMES, USUAL

BOARD = "rp2040"


def _pace(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab.cost import cycles, fit, model
    from kvlab.models.image import Image

    board = boards.load(BOARD)
    shape = Image.read(shipped.image(shipped.NAMES[0])).config
    whole = model.pace(board, shape, "int8")
    lines = fit.compare(shape)
    runs = [(place, miss) for place in (fit.IN_PLACE, fit.FILE) for miss in (0, 50)]
    rows = [
        ("position", *(f"{place}, {miss} cycles a miss" for place, miss in runs)),
        ("---:",) * (1 + len(runs)),
    ]
    by = {(line.place, line.miss_cycles, line.position): line for line in lines}
    for position in sorted({line.position for line in lines}):
        found = [by[(place, miss, position)] for place, miss in runs]
        rows.append((str(position), *(f"{x.measured / 1e6:.2f} M, {x.modelled / 1e6:.2f} M" for x in found)))
    clocks = [("clock", "cycles a miss", "tokens/s, told", "first word", "a prompt's tokens/s")]
    clocks.append(("---",) + ("---:",) * 4)
    for hz in (board.machine.clock_hz, *board.facts["cpu.clocks_hz"].value):
        at = model.pace(board, shape, "int8", clock_hz=hz)
        again = at.first_word_remembered_s
        first = f"{at.first_word_s:.1f} s" + (f", then {again:.1f} s" if again is not None else "")
        told, read = f"{at.tokens_per_s:.1f}", f"{at.prompt_tokens_per_s:.1f}"
        clocks.append((f"{hz / 1e6:g} MHz", f"{cycles.miss_cycles(hz):g}", told, first, read))
    return {
        "pace_clocks": "\n".join(f"| {' | '.join(row)} |" for row in clocks),
        "pace": model.said(whole.figures()),
        "pace_error": f"{100 * max(abs(line.error) for line in lines):.1f} %",
        "pace_positions": "\n".join(f"| {' | '.join(row)} |" for row in rows),
    }


def _seen(_wanted: Collection[str]) -> Mapping[str, str]:
    """What others see of a story as a task."""
    from kvlab.cost import turns
    from kvlab.models.image import Image

    board = boards.load(BOARD)
    rows = [("model", "element type", "window", "longest call", "between two awaits", "garbage collection")]
    rows.append(("---", "---", "---:", "---:", "---:", "---:"))
    for name in shipped.NAMES:
        shape = Image.read(shipped.image(name)).config
        for codec in NAMES:
            entry = turns.entries().get(counted.key(shape, codec))
            if entry is None:
                continue
            f = turns.modelled(board, shape, codec, window=entry.window)
            times = (f.longest_call_us, f.longest_between_awaits_us, f.longest_collection_us)
            rows.append((name, codec, str(entry.window), *(turns.said_ms(us) for us in times)))
    first = turns.modelled(board, Image.read(shipped.image(shipped.NAMES[0])).config, USUAL)
    return {
        "turns_seen": turns.said(first.figures()),
        "turns_by_model": "\n".join(f"| {' | '.join(row)} |" for row in rows),
        "turns_calls": ", ".join(
            f"{turns.SAID[name]} {turns.said_ms(us)}" for name, us in first.calls_us.items()
        ),
    }


PRODUCERS = (
    Producer(
        "turns seen",
        "kvlab stories --asyncio --board rp2040",
        Cost.CHEAP,
        named("turns_seen", "turns_by_model", "turns_calls"),
        _seen,
    ),
    Producer(
        "pace",
        "kvlab stories --board rp2040 --tokens 260 --greedy",
        Cost.CHEAP,
        named("pace", "pace_clocks", "pace_error", "pace_positions"),
        _pace,
    ),
)
