"""The stories app on a 32-bit core: the bits of plain on any input, within the instructions promised."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import stories_cases
from stories_fixtures import dump, tiny

from kvlab.paths import ROOT

DEVICE = Path(__file__).parent / "device"
MODEL = ROOT / "boards" / "models" / "stories.mkvm"  # the shape of stories260K
SEED = 1  # among its products one of 256 groups

# The app's share of a token: all but append, attend and commit. Compiled for RP2040 by mpy-cross, which
# keeps one local less in a register than the board itself.
MOST_INSTRUCTIONS = {"viper": 4_400_000, "thumb": 1_600_000}


def test_random_cases(qemu) -> None:
    """Random and extreme ones; test_qemu_bits.py has the golden ones, for every set."""
    cases = list(stories_cases.draw(SEED, each=20))
    assert any(case[0] == "matvec" and len(case[1][0][1]) > 30000 for case in cases)
    got = stories_cases.unix(qemu, cases, "thumb")
    want = stories_cases.plain(cases)
    assert len(got) == len(cases)
    assert [f"{case[0]}, case {i}" for i, case in enumerate(cases) if want[i] != got[i]] == []


@pytest.mark.parametrize("shape", ["no multiple of 32", "one layer, one kv head"])
def test_logits(shape: str, qemu, tmp_path) -> None:
    """Mapped and row by row, evictions on the way."""
    checkpoint, _, image = tiny(shape)
    ids = np.random.RandomState(3).randint(0, checkpoint.config.vocab, 20).tolist()
    want = dump(image, ids, window=9, sinks=3)[16:]
    (tmp_path / "image").write_bytes(image)
    (tmp_path / "ids").write_bytes(np.array(ids, "<i4").tobytes())
    runs = ["thumb:0", "thumb:1", "thumb:700", "viper:0"]
    qemu.run(
        DEVICE / "stories_logits.py",
        [tmp_path / "image", tmp_path / "ids", tmp_path / "out", 9, 3, *runs],
    )
    got = (tmp_path / "out").read_bytes()
    assert len(got) == len(runs) * len(want)
    assert [run for i, run in enumerate(runs) if got[i * len(want) : (i + 1) * len(want)] != want] == []


@pytest.mark.parametrize("kernels", MOST_INSTRUCTIONS)
def test_instructions_of_a_token(kernels: str, qemu) -> None:
    seen = json.loads(qemu.run(DEVICE / "stories_instructions.py", [MODEL, kernels]))
    assert seen["step"] + seen["sample"] <= MOST_INSTRUCTIONS[kernels], seen
