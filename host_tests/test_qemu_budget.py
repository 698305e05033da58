"""Token policies on 32-bit boards: the bits of the plain kernels here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from budget_cases import device, some
from known_cases import DEVICE
from test_budget import allocated
from test_token_policies import TWINS


@pytest.mark.parametrize(
    ("fixture", "kernels", "every"),
    [("qemu", "thumb", 2), ("qemu", "viper", 3), ("qemu", "plain", 6), ("qemu_riscv", "viper", 4)],
)
def test_bits(fixture: str, kernels: str, every: int, request, tmp_path: Path) -> None:
    jobs = some(1)[::every]
    board = request.getfixturevalue(fixture)
    for got, (job, want) in zip(
        device(board, [job for job, _ in jobs], kernels, tmp_path), jobs, strict=True
    ):
        assert got == want, job["cache"]


@pytest.mark.parametrize(
    ("fixture", "kernels"), [("qemu", "thumb"), ("qemu", "viper"), ("qemu_riscv", "viper")]
)
def test_every_call_of_a_kernel(fixture: str, kernels: str, request) -> None:
    board = request.getfixturevalue(fixture)
    assert int(board.run(DEVICE / "token_twins.py", [kernels], timeout=300)) == TWINS


SOME = ("window", "lru-attention", "lru-peak")  # one of each kind of work


def test_what_a_policy_adds_to_a_token(qemu) -> None:
    """Of a cache's work for one token, all layers. A policy that weighs nothing adds next to nothing."""
    costs = json.loads(qemu.run(DEVICE / "budget_cost.py", [32, "thumb", *SOME], timeout=300))
    ring = costs.pop("ring")[-1]
    assert costs.keys() == set(SOME)
    for policy, (*_, token) in costs.items():
        assert ring < token <= (1.05 if policy == "window" else 1.35) * ring, policy
        print(f"{policy}: {token / ring:.3f} times a ring's")


def test_nothing_is_allocated_per_token(qemu) -> None:
    """The fastest kernels of a Pico: Thumb's."""
    assert allocated(qemu, "int8", SOME) == {policy: [0, "thumb", True, 0] for policy in SOME}
