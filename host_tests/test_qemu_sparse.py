"""sparse on the emulated board: what AV and an append cost beside int8's; calls beside plain's."""

from __future__ import annotations

import json

import pytest
from known_cases import DEVICE

# Instructions of a product in int8's AV, and times int8's at most: of a product in AV, and of an append. What
# sparse has of its own is viper's in both sets.
INT8 = {"viper": 8.2, "thumb": 4.2}
MOST = {"viper": (2.75, 1.8), "thumb": (8.1, 5.9)}


@pytest.mark.parametrize("name", MOST)
def test_what_a_bitmap_costs(name: str, qemu) -> None:
    found = json.loads(qemu.run(DEVICE / "sparse_cost.py", [name], timeout=300))
    int8, sparse = found["int8"], found["sparse"]
    most_av, most_append = MOST[name]
    for shape in ("heads of 8", "head of 64"):
        assert int8[shape] == pytest.approx(INT8[name], rel=0.02)
        assert sparse[shape] <= most_av * int8[shape]
        print(f"{name}, {shape}: {sparse[shape]:.2f} instructions a product, int8 {int8[shape]:.2f}")
    assert int8["append"] < sparse["append"] <= most_append * int8["append"]
    print(f"{name}, append of 32 values: {sparse['append']:.0f} instructions, int8 {int8['append']:.0f}")


def test_every_call_of_the_set_with_int8s_assembler(qemu) -> None:
    """Every third shape: the unix port has run all of them with viper."""
    said = qemu.run(DEVICE / "kernel_twins.py", ["thumb", "sparse", 3], arch="armv6m", timeout=300)
    assert int(said) > 2500
