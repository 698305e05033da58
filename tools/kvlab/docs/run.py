"""Checks what the documentation tells, and writes it anew."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from commandline import files
from commandline.errors import BadInput, did_you_mean
from kvlab import paths
from kvlab.docs import markers, picture, registry
from kvlab.docs.registry import PICTURES, Cost, Producer, is_file
from kvlab.docs.tolerance import Tolerance

CHECKED = "docs_checked"  # the figure that a check of all of them leaves: when, and how many

Done = Callable[[int], None]


@dataclass(frozen=True)
class Difference:
    """A figure that is not what its producer makes."""

    where: str
    name: str
    told: str
    found: str
    command: str

    def __str__(self) -> str:
        return f"{self.where}: {self.name}: told {self.told}, found {self.found} ({self.command})"


@dataclass
class Checked:
    """What a check came to. `skipped`: why, by producer; `later`: those that only --all runs."""

    figures: int = 0
    differences: list[Difference] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    later: list[str] = field(default_factory=list)
    changed: list[Path] = field(default_factory=list)


def told() -> dict[str, list[markers.Figure]]:
    """Every figure between markers, by name. BadInput where nobody makes one of that name."""
    found: dict[str, list[markers.Figure]] = {}
    known = [CHECKED, *(name for producer in registry.all_producers() for name in producer.figures)]
    for page in markers.pages():
        for figure in markers.figures(page, known):
            if figure.name not in known:
                raise BadInput(
                    f"{figure.where}: no figure {figure.name}{did_you_mean(figure.name, known)};"
                    " `kvlab docs --list` names them"
                )
            found.setdefault(figure.name, []).append(figure)
    return found


def stored() -> list[str]:
    """Every picture of the documentation and every other file that a producer writes, by its path in the
    repository. BadInput where nobody draws a picture, or where a file is an output of the command too."""
    drawn = [f"{PICTURES}{path.name}" for path in sorted((paths.ROOT / PICTURES).glob("*.png"))]
    for name in drawn:
        if registry.producer_of(name) is None:
            raise BadInput(f"{name}: nothing draws this picture; `kvlab docs --list` names what is drawn")
    named = [name for producer in registry.all_producers() for name in producer.figures if is_file(name)]
    for name in (*drawn, *named):
        files.reads(paths.ROOT / name, "the documentation")
    return [*drawn, *(name for name in named if name not in drawn and (paths.ROOT / name).is_file())]


def chosen(names: Collection[str], everything: bool) -> tuple[list[Producer], list[Producer]]:
    """Who is to run now, and who only with --all: those of `names` (figures or families), or of what the
    pages tell."""
    known = registry.all_producers()
    if names:
        picked = [p for p in known if any(p.called(name) for name in names)]
        for name in names:
            if not any(p.called(name) for p in known):
                every = [name for p in known for name in (p.name, p.group, *p.figures) if name]
                raise BadInput(f"{name}: no such figure{did_you_mean(name, every)}; see `kvlab docs --list`")
        return picked, []
    used = {*told(), *stored()}
    needed = [p for p in known if used & p.figures.keys()]
    now = [p for p in needed if everything or p.cost is Cost.CHEAP]
    return now, [p for p in needed if p not in now]


def _wanted(producer: Producer, names: Collection[str], used: Iterable[str]) -> list[str]:
    """The figures of `producer` that are asked for."""
    asked = producer.figures.keys() & set(names)
    if not asked or producer.name in names or producer.group in names:
        asked = producer.figures.keys() & set(used)
    return sorted(asked)


def _refuse_untold(names: Iterable[str], used: Collection[str]) -> None:
    """BadInput for one of `names` of which no page and no file tells anything: nothing can differ there."""
    known = registry.all_producers()
    for name in names:
        families = [producer for producer in known if name in (producer.name, producer.group)]
        figures = {name, *(figure for producer in families for figure in producer.figures)}
        if figures.isdisjoint(used):
            absent = sorted(filter(is_file, figures))
            what = f"{absent[0]} is not there: --write makes it" if absent else "no page tells it"
            raise BadInput(f"{name}: {what}; `kvlab docs --list` names where each figure stands")


def check(names: Collection[str] = (), *, everything: bool = False, done: Done = lambda _: None) -> Checked:
    """Hold what the pages tell against what its producers make now."""
    pages, files_of = told(), stored()
    result = Checked()
    now, later = chosen(names, everything)
    _refuse_untold(names, (*pages, *files_of))
    result.later = [producer.name for producer in later]
    for producer in now:
        wanted = _wanted(producer, names, (*pages, *files_of))
        made = _make(producer, wanted, result)
        for name in wanted if made is not None else ():
            assert made is not None
            if is_file(name):
                result.differences += _compare_file(producer, name, made[name])
                result.figures += 1
            for figure in pages.get(name, ()):
                result.differences += _compare(producer, figure, made[name])
                result.figures += 1
        done(1)
    if everything and not names and not result.differences:
        result.changed = _write({CHECKED: _stamp(result)})
    return result


def write(names: Collection[str] = (), *, everything: bool = False, done: Done = lambda _: None) -> Checked:
    """Put what its producers make now in place of what the pages tell, where any of a family lies beyond its
    tolerance."""
    pages, files_of = told(), stored()
    result = Checked()
    now, later = chosen(names, everything)
    made_anew = (name for producer in now for name in producer.figures if is_file(name))
    _refuse_untold(names, (*pages, *files_of, *made_anew))
    result.later = [producer.name for producer in later]
    for producer in now:
        new = [name for name in producer.figures if is_file(name)]  # may not be there yet
        wanted = _wanted(producer, names, (*pages, *files_of, *new))
        made = _make(producer, wanted, result)
        if made is not None:
            result.figures += len(wanted)
            result.changed += _renew(producer, {name: made[name] for name in wanted}, pages)
        done(1)
    return result


def _make(producer: Producer, wanted: Collection[str], result: Checked) -> Mapping[str, str | bytes] | None:
    why = producer.missing()
    if why is not None:
        result.skipped[producer.name] = why
        return None
    made = producer.make(wanted)
    absent = sorted(set(wanted) - made.keys())
    if absent:
        raise ValueError(f"{producer.name} did not make {', '.join(absent)}")
    return made


def _inner(figure: markers.Figure) -> str:
    return figure.text[1:-1] if figure.block else figure.text


def _compare(producer: Producer, figure: markers.Figure, made: str | bytes) -> list[Difference]:
    assert isinstance(made, str)
    text, tolerance = _inner(figure), producer.figures[figure.name]
    if tolerance.allows(text, made):
        return []
    where = figure.where
    have, want = text.split("\n"), made.split("\n")
    for i, (old, new) in enumerate(zip(have, want)):
        if not tolerance.allows(old, new):
            where = f"{paths.shown(figure.page)}:{figure.line + i + figure.block}"
            return [Difference(where, figure.name, old, new, producer.command)]
    return [Difference(where, figure.name, f"{len(have)} lines", f"{len(want)} lines", producer.command)]


def _compare_file(producer: Producer, name: str, made: str | bytes) -> list[Difference]:
    assert isinstance(made, bytes)
    told = (paths.ROOT / name).read_bytes()
    how = _file_difference(name, told, made, producer.figures[name])
    return [] if how is None else [Difference(name, name, "a file", how, producer.command)]


def _file_difference(name: str, told: bytes, found: bytes, tolerance: Tolerance) -> str | None:
    if name.endswith(".png"):
        return picture.difference(told, found, tolerance)
    for have, want in zip_longest(told.decode().splitlines(), found.decode().splitlines(), fillvalue=""):
        if not tolerance.allows(have, want):
            return f"{want.strip() or 'nothing'} for {have.strip() or 'nothing'}"
    return None


def _renew(
    producer: Producer, made: Mapping[str, str | bytes], pages: Mapping[str, list[markers.Figure]]
) -> list[Path]:
    """Write all of it if anything lies beyond its tolerance: what was measured together is told together."""
    if all(_is_told(name, value, producer.figures[name], pages) for name, value in made.items()):
        return []
    changed: list[Path] = []
    for name, value in made.items():
        if isinstance(value, bytes):
            path = paths.ROOT / name
            if not path.is_file() or path.read_bytes() != value:
                files.write(path, value, "--write")
                changed.append(path)
    return changed + _write({name: value for name, value in made.items() if isinstance(value, str)})


def _is_told(
    name: str, value: str | bytes, tolerance: Tolerance, pages: Mapping[str, list[markers.Figure]]
) -> bool:
    """Whether the file, or each place on a page, is within its tolerance."""
    if isinstance(value, str):
        return all(tolerance.allows(_inner(figure), value) for figure in pages.get(name, ()))
    path = paths.ROOT / name
    return path.is_file() and not _file_difference(name, path.read_bytes(), value, tolerance)


def _write(new: Mapping[str, str]) -> list[Path]:
    """Put figures into every page that has a place for them; the pages that changed."""
    changed = []
    for page in markers.pages():
        text = markers.text_of(page)
        renewed = markers.rewritten(text, page, new)
        if renewed != text:
            files.write(page, renewed.encode(), "--write")
            changed.append(page)
    return changed


def _stamp(result: Checked) -> str:
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    skipped = f", without {', '.join(result.skipped)}" if result.skipped else ""
    return f"{today}, {result.figures} figures{skipped}"
