"""int4 on the emulated board: the bits of plain, and what attention and sealing cost beside int8."""

from __future__ import annotations

import json

import pytest
from known_cases import DEVICE
from qemu_fixtures import ARCHES

MOST_TIMES_INT8 = 1.3


@pytest.fixture(scope="module")
def costs(qemu) -> dict:
    return json.loads(qemu.run(DEVICE / "sealed_cost.py", timeout=300))


@pytest.mark.parametrize(("name", "shapes"), [("thumb", "0,3"), ("viper", "1,2")])
def test_every_call_of_a_kernel_is_plains(name: str, shapes: str, qemu) -> None:
    """Of these shapes; the unix port takes them all."""
    arch = ARCHES[0] if name == "thumb" else ARCHES[1]
    assert int(qemu.run(DEVICE / "sealed_twins.py", [name, shapes], arch=arch, timeout=300)) > 500


@pytest.mark.parametrize("width", ["8", "64"])
@pytest.mark.parametrize("name", ["viper", "thumb"])
def test_av_of_a_full_window_costs_little_more_than_int8s(name: str, width: str, costs) -> None:
    """Of 256 tokens, 32 of them fresh; of few the second call of a kernel shows."""
    av = costs[name][width]["av"]
    assert 0 < av["int4"][-1] <= MOST_TIMES_INT8 * av["int8"][-1]
    assert av["int4"][1] <= 1.4 * av["int8"][1]
    print(f"{name}, rows of {width}: {av['int4'][-1] / av['int8'][-1]:.3f} times int8's")


@pytest.mark.parametrize("name", ["viper", "thumb"])
def test_a_commit_that_seals_costs_as_much_whatever_the_window(name: str, costs) -> None:
    """Some 260,000 instructions a layer of 4 heads of 8, every 16 tokens; other commits next to nothing."""
    one, five = (costs[name]["commit"][layers] for layers in ("1", "5"))
    assert one[0] < 10_000
    assert five[0] < 10_000
    assert 4 < five[1] / one[1] < 6
    assert one[1] < 300_000


def test_a_set_takes_int8s_own_kernels_where_it_has_none(qemu) -> None:
    """Thumb's: not viper's, because int4 has not all of its own in Thumb."""
    said = qemu.run(
        "from mpy_kv import kernels\n"
        "int8, int4 = kernels.get('thumb'), kernels.of('int4').get('thumb')\n"
        "print([name for name in kernels.NAMES if getattr(int8, name) is not getattr(int4, name)])"
    )
    assert said.strip() == "['scales']"
