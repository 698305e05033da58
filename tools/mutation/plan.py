"""What is broken, which tests are asked, and where the list of faults without effect lies."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.json")

# What a copy is made of where git does not say.
COPIED = ("boards", "docs", "host_tests", "mpy_kv", "qemu_port", "tools", "unix_port")

# Files of these globs are broken. Not thumb.py: generated assembler, of which a line has no operators.
BROKEN = (
    "mpy_kv/pools/*.py",
    "mpy_kv/paged/*.py",
    "mpy_kv/eviction/**/*.py",
    "mpy_kv/admission/*.py",
    "mpy_kv/int4_blocks/*.py",
    "mpy_kv/token_eviction/*.py",
    "mpy_kv/snapshot/*.py",
    "mpy_kv/sequence.py",
    "mpy_kv/attention.py",
    "mpy_kv/value_runs.py",
    "mpy_kv/cache.py",
    "mpy_kv/per_layer.py",
)
WHOLE = ("thumb.py",)

# Tests of these files run in one process with what they test: they are asked first, those that run the line.
# What cuts a call short at every line is left out: most of it is `exhaustive`, all of it slow.
TESTS = (
    "test_admission.py", "test_attack_requests.py", "test_attention.py", "test_bad_input.py",
    "test_budget.py", "test_budget_property.py", "test_cases_*.py", "test_constants.py", "test_damage.py",
    "test_limits.py", "test_lives.py", "test_mixed*.py", "test_paged.py", "test_paged_property.py",
    "test_policies.py", "test_pool*.py", "test_predictor.py", "test_ring_property.py", "test_sealed.py",
    "test_sealed_property.py", "test_snapshot.py", "test_spec.py", "test_staged.py", "test_token_policies.py",
    "test_viper32_small.py",
)  # fmt: skip
WITHOUT = ("test_pool_device.py", "test_mixed_property.py")

# Then those that run it on the unix port, by the folder or file that is broken.
DEVICE = {
    "mpy_kv/pools": ("test_pool_device.py", "test_unit_pools.py"),
    "mpy_kv/paged": ("test_paged_device.py",),
    "mpy_kv/eviction/tokens": ("test_token_policies.py",),
    "mpy_kv/eviction": ("test_policies.py",),
    "mpy_kv/admission": ("test_admission.py", "test_predictor.py"),
    "mpy_kv/int4_blocks": ("test_sealed.py",),
    "mpy_kv/token_eviction": ("test_budget.py",),
    "mpy_kv/snapshot": ("test_snapshot_ports.py",),
    "mpy_kv/per_layer.py": ("test_mixed.py",),
    "mpy_kv": ("test_allocation.py", "test_bad_input.py"),
}


def broken(root: Path) -> list[Path]:
    """The files, in the order of their names."""
    found = {f for glob in BROKEN for f in root.glob(glob) if f.name not in WHOLE}
    return sorted(f for f in found if f.stat().st_size)


def tests(root: Path) -> list[Path]:
    folder = root / "host_tests"
    return sorted({f for glob in TESTS for f in folder.glob(glob) if f.name not in WITHOUT})
