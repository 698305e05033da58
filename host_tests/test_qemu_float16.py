"""float16 on the emulated board: what attention and an append cost beside int8's."""

from __future__ import annotations

import json

import pytest
from known_cases import DEVICE

# A number is taken apart, where a code is used as it is: times int8's, as measured and a tenth over.
MOST_TIMES_INT8 = {"qk": 5.6, "av": 4.8}


@pytest.fixture(scope="module")
def costs(qemu) -> dict[str, dict[str, dict]]:
    return json.loads(qemu.run(DEVICE / "float16_cost.py", timeout=300))


@pytest.mark.parametrize("kernel", ["qk", "av"])
@pytest.mark.parametrize("name", ["viper", "thumb"])
def test_a_number_costs_a_few_codes(name: str, kernel: str, costs) -> None:
    int8, float16 = (costs[name][codec][kernel] for codec in ("int8", "float16"))
    print(f"{name}, {kernel}: {float16[0]:.1f} a number, {float16[0] / int8[0]:.2f} times int8's")
    assert int8[0] > 1
    assert float16[0] <= MOST_TIMES_INT8[kernel] * int8[0]
    assert float16[1] <= 1.3 * int8[1]


@pytest.mark.parametrize(("name", "most"), [("viper", 25), ("thumb", 5)])
def test_the_largest_exponent_is_found_once_a_token(name: str, most: float, costs) -> None:
    """Of all heads: less than what one query head takes to read the same numbers."""
    slope, rest = costs[name]["float16"]["scales"]
    print(f"{name}, scales: {slope:.1f} a number and {rest:.0f}")
    assert 1 < slope < most < costs[name]["float16"]["qk"][0]
    assert rest < 3500


@pytest.mark.parametrize("name", ["viper", "thumb"])
def test_storing_costs_little_more_than_twice_int8(name: str, costs) -> None:
    assert costs[name]["float16"]["append"] <= 2.2 * costs[name]["int8"]["append"]
