"""Kernels of the stories app: plain, viper and an independent reference give the same bits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import stories_cases
import stories_reference
import thumb32
import viper32
from stories import kernels
from stories.kernels import selfcheck, tables
from stories_cases import stories_kernels

from mpy_kv.kernels.kernel_registry import KernelSet


@pytest.mark.parametrize("seed", range(4))
def test_plain_matches_reference(seed: int) -> None:
    """Also proves, by the reference's checks, that no intermediate leaves 32 bits."""
    for case in stories_cases.draw(seed, each=150):
        got = stories_cases.plain([case])[0]
        assert got == stories_reference.result(case), case


@pytest.mark.parametrize("name", ["plain", "viper"])
def test_unix_port_matches_plain(name: str, upy) -> None:
    cases = list(stories_cases.draw(seed=99, each=300))
    want = stories_cases.plain(cases)
    got = stories_cases.unix(upy, cases, name)
    differing = [(c[0], i) for i, (c, a, b) in enumerate(zip(cases, want, got)) if a != b]
    assert len(got) == len(cases)
    assert not differing


@pytest.mark.parametrize("name", ["viper", "thumb"])
def test_on_32_bits(name: str) -> None:
    """As a board runs it: words of 32 bits, no access outside the buffers or off its alignment."""
    source = Path(tables.__file__).with_name(f"{name}.py")
    loaded = (viper32 if name == "viper" else thumb32).load(source)
    kernel_set = KernelSet(name, loaded, kernels.NAMES)
    for case in stories_cases.draw(seed=32, each=60):
        assert stories_kernels.run(case, kernel_set) == stories_cases.plain([case])[0], case


@pytest.mark.parametrize(("groups", "most"), [(2, 3.3), (6, 3.0)])
def test_instructions_of_a_product(groups: int, most: float) -> None:
    """In Thumb, a matrix of 64 rows; docs/PERFORMANCE.md says where they go."""
    loaded = thumb32.load(Path(tables.__file__).with_name("thumb.py"))
    maker = stories_cases.Maker(7)
    w = maker.rows(64, groups, largest=False)
    act = maker.activation(groups)
    v = [*act, *[0] * 64]
    a = [0, 64, groups, w.shape[1] - 32 * groups, 0, len(act), -30]
    buffers = [stories_cases.buffer("B", w.ravel()), stories_cases.buffer("i", v)]
    case = ["matvec", [*buffers, stories_cases.MASK, stories_cases.buffer("i", a)]]
    stories_kernels.run(case, KernelSet("thumb", loaded, kernels.NAMES))
    assert 2.5 < loaded["matvec"].steps / (64 * 32 * groups) <= most


def test_golden_file(upy) -> None:
    lines = [json.loads(line) for line in stories_reference.GOLDEN.read_text().splitlines()]
    cases = [case for case, _ in lines]
    want = [result for _, result in lines]
    assert {case[0] for case in cases} == set(kernels.NAMES)
    assert [stories_reference.result(case) for case in cases] == want
    assert stories_cases.plain(cases) == want
    assert stories_cases.unix(upy, cases, "viper") == want


def test_tables_are_correctly_rounded(upy) -> None:
    want = [
        (tables.SINE, stories_reference.SINE),
        (tables.SIGMOID, stories_reference.SIGMOID),
        (tables.EXP2, stories_reference.EXP2),
    ]
    for table, reference in want:
        assert list(table) == reference.tolist()
    shown = upy.run(
        "import json\nfrom stories.kernels.tables import *\n"
        "print(json.dumps([list(t) for t in (SINE, SIGMOID, EXP2)]))"
    )
    assert json.loads(shown) == [list(table) for table, _ in want]


class Broken:
    """The plain kernels with one of them spoilt."""

    def __init__(self, name: str) -> None:
        for other in kernels.NAMES:
            setattr(self, other, getattr(kernels.get("plain"), other))
        setattr(self, name, self._spoil(getattr(kernels.get("plain"), name)))

    @staticmethod
    def _spoil(kernel):
        def spoilt(*arguments):
            returned = kernel(*arguments)
            if kernel.__name__ in ("argmax", "pick"):
                return returned ^ 1
            target = arguments[kernel.__name__ in WRITES_SECOND]
            target[-1] = 2 if target[-1] == 3 else 3
            return returned

        return spoilt


WRITES_SECOND = ("embed", "norm", "matvec", "rope_table", "rotate", "narrow", "widen")


@pytest.mark.parametrize("name", kernels.NAMES)
def test_self_check_sees_a_broken_kernel(name: str) -> None:
    assert selfcheck.compare(kernels.get("plain"), kernels.get("plain")) == ""
    assert name in selfcheck.compare(kernels.get("plain"), Broken(name))


def test_unknown_kernels_are_refused() -> None:
    with pytest.raises(ValueError, match="plain, thumb, viper"):
        kernels.get("cuda")
    for name, why in (("thumb", "no Thumb assembler"), ("viper", "no native code emitter")):
        with pytest.raises(ValueError, match=why):
            kernels.get(name)
    assert kernels.best() is kernels.get("plain")
