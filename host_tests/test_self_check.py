"""A kernel set that does not give plain's bits is refused at start-up, and the reason is kept."""

from __future__ import annotations

import importlib
import random
import re
from array import array
from binascii import crc32
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stories_cases  # noqa: F401 (tells where the app is)
from click.testing import CliRunner
from stories import kernels as stories_kernels

import answers
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import BadArgument
from mpy_kv.eviction import tokens as token_policies
from mpy_kv.kernels import params as P
from mpy_kv.kernels import plain, trial
from mpy_kv.kernels.kernel_registry import KernelSet

Loader = Callable[[], Any]


@pytest.fixture(autouse=True)
def _fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has the registry to itself."""
    monkeypatch.setattr(kernels.FAMILY, "_extra", [])
    monkeypatch.setattr(kernels.FAMILY, "_found", {})
    monkeypatch.setattr(kernels.FAMILY, "checked", ())
    for name in list(kernels.reasons):
        monkeypatch.delitem(kernels.reasons, name)


def with_fault(name: str, fault: Callable[..., int]) -> Loader:
    """plain, with one function replaced by fault(real function, *arguments)."""
    real = getattr(plain, name)
    functions = {n: getattr(plain, n) for n in kernels.NAMES}
    functions[name] = lambda *arguments: fault(real, *arguments)
    return lambda: functions


def add_to_word(buf: bytearray, at: int, x: int) -> None:
    plain.put32(buf, at, plain.get32(buf, at) + x)


def signed_codes(real: Any, buf: bytearray, k: Any, v: Any, e: Any) -> int:
    """encode that stores two's complement instead of offset binary."""
    done = real(buf, k, v, e)
    at = e[P.E_TABLE + 3 * e[P.E_LAYER]] + e[P.E_SLOT] * e[P.E_K + P.VECTOR_ROW]
    for i in range(e[P.E_WIDTH]):
        buf[at + i] ^= 128
    return done


def lost_offset(real: Any, buf: bytearray, same: Any, mask: int, a: Any) -> int:
    """qk that takes the stored bytes for codes."""
    done = real(buf, same, mask, a)
    for t in range(a[P.N]):
        add_to_word(buf, a[P.DOTS] + 4 * t, 128)
    return done


def lost_borrow(real: Any, buf: bytearray, same: Any, mask: int, a: Any) -> int:
    """qk that forgets what the lower half borrows from the upper: one too few for the first token."""
    done = real(buf, same, mask, a)
    add_to_word(buf, a[P.DOTS], -1)
    return done


def long_rows(real: Any, buf: bytearray, same: Any, mask: int, a: Any) -> int:
    """qk that loses its way beyond the sixteenth value of a row: the loop over the rest goes round twice."""
    done = real(buf, same, mask, a)
    if a[P.WIDTH] > 16:
        add_to_word(buf, a[P.DOTS], 1 << 12)
    return done


def unshifted_dots(real: Any, buf: bytearray, same: Any, spare: int, a: Any) -> int:
    """score that takes dots of long rows as they are."""
    at = a[P.QUERY] + 4 * plain._QUERY_DOWN
    down = plain.get32(buf, at)
    plain.put32(buf, at, 0)
    done = real(buf, same, spare, a)
    plain.put32(buf, at, down)
    return done


def last_run_only(real: Any, buf: bytearray, same: Any, mask: int, a: Any) -> int:
    """av that overlooks that the ring has wrapped: every run is read from the place of the first."""
    seen = array("i", a)
    for r in range(a[P.RUNS]):
        seen[P.RUN + 4 * r] = seen[P.RUN]
    return real(buf, same, mask, seen)


def overflowing_lane(real: Any, buf: bytearray, same: Any, mask: int, a: Any) -> int:
    """av with lanes of 15 bits."""
    done = real(buf, same, mask, a)
    if plain.get32(buf, a[P.SUMS]) > 3 << 26:
        add_to_word(buf, a[P.SUMS], -(1 << 20))
    return done


def one_set(real: Any, buf: bytearray, q: Any, qs: Any, a: Any) -> int:
    """query that packs q for the sinks too."""
    return real(buf, q, q, a)


def takes_anything(real: Any, buf: bytearray, k: Any, v: Any, e: Any) -> int:
    """encode that stores an infinity."""
    return max(real(buf, k, v, e), 0)


def scale_too_small(real: Any, buf: bytearray, k: Any, v: Any, e: Any) -> int:
    """encode whose scale of the first group of K is the next smaller one."""
    done = real(buf, k, v, e)
    at = e[P.E_TABLE + 3 * e[P.E_LAYER]] + e[P.E_K + P.VECTOR_CODES] + 2 * e[P.E_SLOT]
    plain.put16(buf, at, max(plain.get16(buf, at) - 1, 0))
    return done


def last_slice_only(real: Any, buf: bytearray, same: Any, spare: int, a: Any) -> int:
    """score that does not add up over slices."""
    if a[P.SLICE]:
        buf[a[P.SCORES] : a[P.SCORES] + 4 * a[P.N]] = bytes(4 * a[P.N])
    return real(buf, same, spare, a)


def newest_is_lost(real: Any, buf: bytearray, same: Any, tables: Any, a: Any) -> int:
    """weights that leave the newest token out where it does not end a batch."""
    done = real(buf, same, tables, a)
    if a[P.N] % 8:
        plain.put32(buf, a[P.DOTS] + 4 * (a[P.N] - 1), 0)
    return done


def cut_off(real: Any, buf: bytearray, a: Any, out: Any) -> int:
    """emit whose last channel is too small by the last bit."""
    done = real(buf, a, out)
    at = plain.get32(buf, a[P.QUERY] + 4 * plain._QUERY_AT) + (a[P.SLICE] + 1) * a[P.SLICE_WIDTH] - 1
    if isinstance(out[at], int):
        out[at] = max(out[at] - 1, -32767)
    return done


def raises(real: Any, *arguments: Any) -> int:
    raise IndexError("past the end")


def does_nothing(real: Any, *arguments: Any) -> int:
    return 0


FAULTS: dict[str, Loader] = {
    "signed codes": with_fault("encode", signed_codes),
    "stores an infinity": with_fault("encode", takes_anything),
    "lost offset": with_fault("qk", lost_offset),
    "lost borrow": with_fault("qk", lost_borrow),
    "long rows": with_fault("qk", long_rows),
    "unshifted dots": with_fault("score", unshifted_dots),
    "one run only": with_fault("av", last_run_only),
    "overflowing lane": with_fault("av", overflowing_lane),
    "one query for all": with_fault("query", one_set),
    "scale too small": with_fault("encode", scale_too_small),
    "last slice only": with_fault("score", last_slice_only),
    "newest is lost": with_fault("weights", newest_is_lost),
    "cut off": with_fault("emit", cut_off),
    "raises": with_fault("score", raises),
    **{f"{name} does nothing": with_fault(name, does_nothing) for name in kernels.NAMES},
}


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 20


@pytest.mark.parametrize("loader", FAULTS.values(), ids=FAULTS)
def test_a_broken_set_is_refused(loader: Loader) -> None:
    kernels.register("broken", loader)
    with pytest.raises(ValueError, match="kernels 'broken' cannot be used here: (differs|self-check)"):
        kernels.get("broken")
    assert kernels.best() is kernels.get("plain")
    assert kernels.FAMILY.checked == ()
    assert KVCache(Geometry(1, 1, 1, 4)).kernels is kernels.get("plain")
    why = kernels.reasons["broken"]
    assert not re.search("(Type|Attribute|Name)Error", why), "the fault itself does not fit the kernel"


def test_a_sound_set_is_taken_first() -> None:
    kernels.register("mine", lambda: {n: getattr(plain, n) for n in kernels.NAMES})
    assert kernels.best().name == "mine"
    assert kernels.get("mine") is kernels.best()
    kernels.register("better", lambda: plain)
    assert kernels.best().name == "better"


def test_a_set_is_tried_once() -> None:
    """Loading native code again and again would eat the memory of some boards."""
    loads = []

    def loader() -> Any:
        loads.append(1)
        return with_fault("qk", does_nothing)()

    kernels.register("broken", loader)
    for _ in range(3):
        kernels.best()
    assert loads == [1]
    kernels.register("broken", lambda: plain)  # offered anew, it gets a new trial
    assert kernels.best().name == "broken"


def test_an_incomplete_set_is_refused() -> None:
    kernels.register("half", lambda: {"encode": plain.encode})
    with pytest.raises(ValueError, match="function query is missing"):
        kernels.get("half")


def test_the_reference_cannot_be_replaced() -> None:
    with pytest.raises(ValueError, match="'plain'"):
        kernels.register("plain", lambda: plain)


def test_an_unknown_set_is_named() -> None:
    known = "plain, thumb, viper"
    with pytest.raises(ValueError, match=f"kernels 'fast' cannot be used here: unknown; known: {known}"):
        kernels.get("fast")


def test_want_of_memory_is_no_verdict() -> None:
    def no_memory(real: Any, *arguments: Any) -> int:
        raise MemoryError

    kernels.register("large", with_fault("av", no_memory))
    with pytest.raises(MemoryError):
        kernels.best()
    assert "large" not in kernels.reasons


ON_THE_PORT = """
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.kernels import plain, trial
def load():
    functions = {n: getattr(plain, n) for n in kernels.NAMES}
    functions["qk"] = lambda buf, same, mask, a: 0
    return functions
kernels.register("broken", load)
print(KVCache(Geometry(1, 1, 1, 4)).kernels.name, kernels.reasons)
"""


def test_the_port_falls_back_to_viper(upy) -> None:
    assert upy.run(ON_THE_PORT).startswith("viper {'broken': 'differs from plain in ")


MISCOMPILED = """
from mpy_kv.kernels import kernel_registry as family
load = family.load_native
def miscompiled(path, package=None, skip=()):
    names = load(path, package, skip)
    real = names["qk"]
    def qk(buf, same, mask, a):
        done = real(buf, same, mask, a)
        buf[a[11]] ^= 1
        return done
    names["qk"] = qk
    return names
family.load_native = miscompiled
from mpy_kv import Geometry, KVCache, kernels
print(KVCache(Geometry(1, 1, 1, 4)).kernels.name, kernels.reasons["viper"])
"""


def test_the_port_falls_back_to_plain_when_viper_is_miscompiled(upy) -> None:
    assert upy.run(MISCOMPILED).startswith("plain differs from plain in ")


# --- int8-int4 -----------------------------------------------------------------------------------

FOUR_BITS = kernels.of("int8-int4")


def high_nibble_first(real: Any, buf: bytearray, k: Any, v: Any, e: Any) -> int:
    """encode that swaps the two values of a byte."""
    done = real(buf, k, v, e)
    at = e[P.E_TABLE + 3 * e[P.E_LAYER]] + e[P.E_V] + e[P.E_SLOT] * e[P.E_V + P.VECTOR_ROW]
    for i in range(e[P.E_V + P.VECTOR_BYTES]):
        buf[at + i] = buf[at + i] >> 4 | buf[at + i] << 4 & 0xF0
    return done


def rows_of_keys(real: Any, buf: bytearray, same: Any, mask: int, a: Any) -> int:
    """av that finds its runs where those of K are."""
    seen = array("i", a)
    for r in range(a[P.RUNS]):
        seen[a[P.V_RUNS] // 4 + 2 * r] = a[P.RUN + 4 * r]
    return real(buf, same, mask, seen)


def takes_any_value(real: Any, buf: bytearray, k: Any, v: Any, e: Any) -> int:
    """encode that refuses keys only."""
    done = real(buf, k, v, e)
    return 0 if done == P.V_TOO_LARGE else done


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("encode", high_nibble_first),
        ("encode", takes_any_value),
        ("encode", does_nothing),
        ("av", rows_of_keys),
        ("av", does_nothing),
        ("qk", lost_offset),
        ("emit", does_nothing),
    ],
)
def test_a_broken_set_of_another_element_type_is_refused(name: str, fault: Any, monkeypatch) -> None:
    refused(FOUR_BITS, name, fault, monkeypatch)


def refused(family: Any, name: str, fault: Any, monkeypatch, **others: Any) -> None:
    """A set of the family that is sound but for one kernel; of `others` the plain set has it made already."""
    monkeypatch.setattr(family, "_extra", [])
    monkeypatch.setattr(family, "_found", {})
    monkeypatch.setattr(family, "reasons", {})
    sound = family.get("plain")
    functions = {n: getattr(sound, n) for n in family.names} | others
    family.register("sound", lambda: functions)
    assert family.best().name == "sound"
    real = functions[name]
    family.register("broken", lambda: {**functions, name: lambda *words: fault(real, *words)})
    with pytest.raises(ValueError, match="kernels 'broken' cannot be used here: (differs|self-check)"):
        family.get("broken")
    assert "TypeError" not in family.reasons["broken"]


def first_head_of_the_group(real: Any, buf: bytearray, same: Any, mask: int, a: Any) -> int:
    """av that begins at a row's first code, whatever the head."""
    seen = array("i", a)
    seen[P.QUERY] = a[P.QUERIES]
    return real(buf, same, mask, seen)


def drops_the_last(real: Any, buf: bytearray, k: Any, v: Any, e: Any) -> int:
    """encode that keeps the first three quarters of a group, whatever their size."""
    done = real(buf, k, v, e)
    at = e[P.E_TABLE + 3 * e[P.E_LAYER]] + e[P.E_V] + e[P.E_SLOT] * e[P.E_V + P.VECTOR_ROW]
    kept = e[P.E_GROUP] - e[P.E_GROUP] // 4
    for i in range((e[P.E_GROUP] + 7) // 8):
        buf[at + i] = ((1 << kept) - 1) >> 8 * i & 255
    return done


@pytest.mark.parametrize(
    ("name", "fault"),
    [("encode_values", drops_the_last), ("encode_values", takes_any_value), ("av", first_head_of_the_group)],
)
def test_a_broken_set_for_sparse_values_is_refused(name: str, fault: Any, monkeypatch) -> None:
    refused(kernels.of("sparse"), name, fault, monkeypatch, encode=kernels.get("plain").encode)


def to_nearest_up(real: Any, buf: bytearray, k: Any, v: Any, e: Any) -> int:
    """encode that rounds ties up."""
    return real(buf, array("f", [x * (1 + 2**-23) for x in k]) if isinstance(k[0], float) else k, v, e)


def no_denormals(real: Any, buf: bytearray, same: Any, spare: Any, a: Any) -> int:
    """qk that reads denormals as zeros: their scores are too small."""
    seen = bytearray(buf)
    for at in range(a[P.CODES], a[P.SCALES], 2):
        if not buf[at + 1] & 0x7C:
            seen[at] = seen[at + 1] = 0
    done = real(seen, seen, spare, a)
    buf[a[P.DOTS] : a[P.DOTS] + 4 * a[P.N]] = seen[a[P.DOTS] : a[P.DOTS] + 4 * a[P.N]]
    return done


def takes_beyond(real: Any, buf: bytearray, k: Any, v: Any, e: Any) -> int:
    """encode that takes what would round to the largest float16."""
    near = [array("f", [min(i, 65504) if i < 65520 else i for i in x]) for x in (k, v)]
    return real(buf, *(near if isinstance(k[0], float) else (k, v)), e)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("encode", to_nearest_up),
        ("encode", takes_beyond),
        ("encode", takes_any_value),
        ("scales", does_nothing),
        ("qk", no_denormals),
        ("av", last_run_only),
        ("av", does_nothing),
    ],
)
def test_a_broken_set_for_float16_is_refused(name: str, fault: Any, monkeypatch) -> None:
    refused(kernels.of("float16"), name, fault, monkeypatch)


def test_float32_has_plain_only() -> None:
    family = kernels.of("float32")
    assert family.best() is family.get("plain") is KVCache(Geometry(1, 1, 1, 4, codec="float32")).kernels
    for name in ("viper", "thumb"):
        refused = f"'{name}' cannot be used .* float32 is for reference, use 'plain'"
        with pytest.raises(ValueError, match=refused):
            family.get(name)
    with pytest.raises(ValueError, match="'fast' cannot be used here: unknown"):
        family.get("fast")


def test_a_set_serves_its_own_element_type_only() -> None:
    four_bits = Geometry(1, 1, 1, 4, codec="int8-int4")
    assert KVCache(four_bits).kernels is FOUR_BITS.best()
    with pytest.raises(BadArgument, match="kernels 'plain' are for codec 'int8', not 'int8-int4'"):
        KVCache(four_bits, kernels=kernels.get("plain"))
    with pytest.raises(BadArgument, match="not 'int8'"):
        KVCache(Geometry(1, 1, 1, 4), kernels=FOUR_BITS.get("plain"))
    with pytest.raises(ImportError):
        kernels.of("float8")


SHARED = """
from mpy_kv import kernels
from mpy_kv.kernels import kernel_registry as family
loaded = []
load = family.load_native
def noting(path, package=None, skip=()):
    loaded.append((path[path.rfind("kernels/"):], len(skip)))
    return load(path, package, skip)
family.load_native = noting
import sys
if sys.argv[1] == "int8 first":
    int8 = kernels.get("viper")
own = kernels.of("int8-int4").get("viper")
print(loaded, sys.argv[1] == "int8 first" and own.qk is int8.qk)
"""


def test_native_code_of_int8_is_loaded_once(upy) -> None:
    """And its av not at all where only another element type is used."""
    own = "('kernels/int8_int4/viper.py', 7)"
    assert upy.run(SHARED, ["int8 first"]) == f"[('kernels/viper.py', 0), {own}] True\n"
    assert upy.run(SHARED, ["alone"]) == f"[('kernels/viper.py', 1), {own}] False\n"


# --- What is known of the plain twin -------------------------------------------------------------

CODECS = ("int8", "int8-int4", "sparse", "float16", "int4")
FAMILIES: dict[str, Any] = {codec: kernels.of(codec) for codec in CODECS}
FAMILIES["tokens"] = token_policies.FAMILY
FAMILIES["stories"] = stories_kernels.FAMILY


def check_of(family: Any) -> Any:
    return importlib.import_module((family.base or family).check)


def like_plain(family: Any, wrap: Callable[[str, Any], Any]) -> KernelSet:
    """The plain set, each kernel wrapped."""
    plain_set = family.plain()
    found = KernelSet("wrapped", {n: wrap(n, getattr(plain_set, n)) for n in family.names}, family.names)
    found.codec = plain_set.codec
    return found


def test_what_is_known_is_what_the_plain_kernels_make() -> None:
    done = CliRunner().invoke(answers.main, [])
    assert (done.output, done.exit_code) == ("", 0)


def test_what_is_known_is_made_anew_where_it_is_another(tmp_path: Path) -> None:
    for name in answers.FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(f"# answers: {answers.COMMAND}\n_ANSWERS = {{}}\n# end of answers\n")
    done = CliRunner().invoke(answers.main, ["--root", str(tmp_path)])
    assert done.exit_code == 1
    assert done.output.count(f"not what the plain kernels make: {answers.COMMAND}\n") == len(answers.FILES)
    assert CliRunner().invoke(answers.main, ["--root", str(tmp_path), "--write"]).exit_code == 0
    for name in answers.FILES:
        block = answers.BLOCK.search((answers.ROOT / name).read_text())
        assert block is not None
        assert (tmp_path / name).read_text() == block[0]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_sound_set_is_known_by_every_vector_that_a_comparison_runs(family: Any) -> None:
    """known() spares the plain twin's run, not the set's: the same calls with the same numbers."""
    calls: list[int] = []

    def noting(name: str, real: Any) -> Any:
        def called(*words: Any) -> Any:
            seen = [crc32(bytes(x)) if hasattr(x, "__len__") else x for x in words]
            calls.append(crc32(repr((name, seen)).encode()))
            return real(*words)

        return called

    noted = like_plain(family, noting)
    check = check_of(family)
    assert check.compare(family.plain(), noted) == ""
    compared, calls[:] = list(calls), []
    assert check.known(noted)
    assert sorted(calls) == sorted(compared)
    assert len(set(calls)) > 10


SEEDED = 20


def written(words: Any, before: list[bytes | None]) -> list[tuple[Any, int]]:
    """Bytes of a call's arguments that are others now: each a view and a place."""
    found = []
    for word, old in zip(words, before, strict=True):
        if old is not None:
            view = memoryview(word).cast("B")
            found += [(view, at) for at, (a, b) in enumerate(zip(view, old, strict=True)) if a != b]
    return found


def errs(bad: str, part: float, bit: int) -> Callable[[str, Any], Any]:
    """For like_plain: one kernel that has one bit wrong in each call, at the same part of what it writes, or
    in what it returns where it writes nothing."""

    def wrap(name: str, real: Any) -> Any:
        def called(*words: Any) -> Any:
            before = [None if isinstance(x, int) or memoryview(x).readonly else bytes(x) for x in words]
            result = real(*words)
            places = written(words, before)
            if not places:
                return result ^ 1 << bit if returns else result
            view, at = places[int(part * len(places))]
            view[at] ^= 1 << bit
            return result

        returns = name in ("argmax", "pick")
        return called if name == bad else real

    return wrap


@pytest.mark.parametrize(
    "of",
    [
        *("int8", "tokens", "stories"),
        *(pytest.param(of, marks=pytest.mark.exhaustive) for of in ("int8-int4", "float16")),
    ],
)
def test_all_seeded_faults_are_found(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kernel in turn, where and which bit by the seed: none is left out of what is compared."""
    family, rng = FAMILIES[of], random.Random(13)
    monkeypatch.setattr(family, "taken", ())
    for i in range(SEEDED):
        fault = (family.names[i % len(family.names)], rng.random(), rng.randrange(8))
        assert trial.wrong(family, like_plain(family, errs(*fault))), fault
    assert trial.wrong(family, like_plain(family, lambda _, real: real)) is None


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_plain_kernel_that_runs_is_not_asked_for(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_extra", "_found", "reasons"):
        monkeypatch.setattr(family, name, type(getattr(family, name))())
    functions = {n: getattr(family.plain(), n) for n in family.names}
    if family is FAMILIES["sparse"]:
        functions["encode"] = plain.encode  # the family puts the values' to it
    monkeypatch.setattr(check_of(family), "compare", None)
    family.register("sound", lambda: functions)
    assert family.best().name == "sound"
