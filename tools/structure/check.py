"""What is wrong with the arrows: those that lead up, circles, and entries of tables that nothing needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from structure.graph import GIVEN, Arrow, arrows, modules
from structure.layers import CIRCLES_YET, LAYERS, NOT_YET, layer_of


def findings() -> list[str]:
    """A line each, sorted."""
    found, unknown, given = arrows()
    said = [f"{each.source}:{each.line}: imports what {each.text!r} says: resolve it" for each in unknown]
    said += [
        f"structure/graph.py: GIVEN has {text!r} of {name}, which is gone"
        for name, text in GIVEN
        if (name, text) not in given
    ]
    said += homeless(modules())
    said += upward(found, NOT_YET)
    said += circular(circles(found), CIRCLES_YET)
    return sorted(said)


def homeless(names: Iterable[str]) -> list[str]:
    return [f"{name}: is of no layer: structure/layers.py" for name in names if layer_of(name) is None]


def upward(found: Iterable[Arrow], not_yet: Mapping[tuple[str, str], str]) -> list[str]:
    """Arrows to a higher layer that are not in `not_yet`, and what is there without need."""
    said, met = [], set()
    for arrow in sorted(set(found)):
        low, high = layer_of(arrow.source), layer_of(arrow.target)
        if low is None or high is None or high <= low:
            continue
        pair = (arrow.source, arrow.target)
        met.add(pair)
        if pair not in not_yet:
            said.append(
                f"{arrow.source}:{arrow.line}: reaches up from {LAYERS[low][0]} to {arrow.target},"
                f" of {LAYERS[high][0]}"
            )
    said += [
        f"structure/layers.py: NOT_YET has {source} -> {target}, which is gone: take it out"
        for source, target in not_yet
        if (source, target) not in met
    ]
    return said


def circular(found: Iterable[list[str]], not_yet: Collection[tuple[str, ...]]) -> list[str]:
    met = [tuple(circle) for circle in found]
    said = [f"circle: {', '.join(circle)} import each other" for circle in met if circle not in not_yet]
    said += [
        f"structure/layers.py: CIRCLES_YET has {', '.join(circle)}, which is gone: take it out"
        for circle in not_yet
        if circle not in met
    ]
    return said


def circles(found: Iterable[Arrow]) -> list[list[str]]:
    """Modules of one layer that import each other. What a module loads for a moment of its own package, or
    chooses there by name, may know it: `inspect` the class that it inspects, a variant the package that lists
    it."""
    to: dict[str, set[str]] = {}
    for arrow in found:
        own = arrow.target.startswith((f"{arrow.source}.", f"{arrow.source.rpartition('.')[0]}."))
        if layer_of(arrow.source) == layer_of(arrow.target) and not (arrow.late and own):
            to.setdefault(arrow.source, set()).add(arrow.target)
    return sorted(sorted(each) for each in _components(to) if len(each) > 1)


def _components(to: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Strongly connected ones (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(to.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in sorted(to):
        if node not in index:
            visit(node)
    return found
