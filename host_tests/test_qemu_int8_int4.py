"""int8-int4 on the emulated board: what AV and an append cost beside int8's."""

from __future__ import annotations

import json

import pytest
from known_cases import DEVICE

MOST_TIMES_INT8 = 1.3


@pytest.fixture(scope="module")
def costs(qemu) -> dict[str, dict[str, dict]]:
    return json.loads(qemu.run(DEVICE / "av_cost.py", timeout=300))


@pytest.mark.parametrize("width", ["8", "64"])
@pytest.mark.parametrize("name", ["viper", "thumb"])
def test_av_costs_little_more_than_that_of_bytes(name: str, width: str, costs) -> None:
    int8, int4 = (costs[name][codec][width] for codec in ("int8", "int8-int4"))
    assert int8[0] > 0.5  # many batches weigh nothing
    for tokens in (16, 256):
        cost = [product * tokens * int(width) + call for product, call in (int8, int4)]
        assert cost[1] <= MOST_TIMES_INT8 * cost[0]
    print(f"{name}, rows of {width}: {int4[0] / int8[0]:.3f} times int8's")


@pytest.mark.parametrize("name", ["viper", "thumb"])
def test_so_does_storing(name: str, costs) -> None:
    assert costs[name]["int8-int4"]["append"] <= 1.5 * costs[name]["int8"]["append"]
