"""Every structure does in a long life what it is known to do: results, refusals, counts.

That these are right is said by the tests with models; here nothing may differ from what they allowed. A
failure names the lines; `python host_tests/lives.py NAME` prints them, to compare with those of another state
of the tree. goldens/lives.txt is written by `python host_tests/lives.py --write`.
"""

from __future__ import annotations

import lives
import pytest


@pytest.mark.parametrize("name", lives.LIVES)
def test_a_life_goes_as_it_is_known_to(name: str) -> None:
    lines = lives.told(name)
    known = [line for line in lives.KNOWN.read_text().splitlines() if line.rsplit(" ", 2)[0] == name]
    assert lives.summed(name, lines) == known
    # Right calls and wrong ones, not one kind alone; a policy answers -1.
    calls = [each for line in lines for each in line.split(" | ")[0].split("; ")]
    refused = sum(" !! " in each for each in calls)
    assert refused < 0.6 * len(calls)
    assert refused > 5 or "touch(-1) -> -1" in calls
