"""Viper gives plain's bits: random geometries and data, and the parameter indexes that both read."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from jobs import Job

from field_tables import tables
from mpy_kv.geometry import CODECS, Geometry, default_group
from mpy_kv.kernels import params

PACKAGE = Path(params.__file__).parents[1]
FIELDS = tables.of("attend", "encode", "v_run", "sparse", "run", "layer", "vector")


def random_job(seed: int, codec: str = "int8") -> Job:
    """A geometry, options, data and a sequence of operations, all by chance."""
    rng = np.random.default_rng(seed)
    kv_heads = int(rng.choice([1, 1, 2, 3, 4]))
    heads = kv_heads * int(rng.choice([1, 1, 2, 3]))
    head_dim = int(rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 33, 48, 64]))
    width = kv_heads * head_dim
    most = CODECS[codec][2] if codec == "sparse" else width
    fitting = [g for g in range(1, most + 1) if width % g == 0 and (head_dim % g == 0 or g % head_dim == 0)]
    if codec == "sparse":
        fitting = fitting[-3:]  # of fewer than four values none is dropped
    geometry = {
        "layers": int(rng.integers(1, 4)),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "group": int(rng.choice([*fitting, default_group(kv_heads, head_dim)])),
        "codec": codec,
    }
    if codec == "float16":
        del geometry["group"]
    if rng.random() < 0.2:
        geometry["capacity"] = 48
    else:
        geometry["window"] = int(rng.choice([1, 2, 3, 7, 8, 9, 15, 16, 17, 23]))
        geometry["sinks"] = int(rng.choice([0, 0, 1, 4, 9]))
    ops: list = []
    length = token = 0
    while token < 36:
        kind = rng.choice(
            ["step", "step", "step", "prefill", "prefill-commit", "append-only", "rollback", "seek"]
        )
        n = 1
        if kind.startswith("prefill"):
            n = int(rng.choice([1, 2, 5, 9, 14]))
        if "capacity" in geometry and length + n > 48:
            break
        if kind == "rollback":
            n = int(rng.integers(0, min(length, 8) + 1))
            ops.append(["rollback", n])
            length -= n
        elif kind == "seek":
            if "capacity" in geometry or length < geometry["sinks"] or rng.random() < 0.7:
                continue
            length += int(rng.integers(0, 1000))
            ops.append(["seek", length])
        else:
            ops.append([str(kind), token, n] if kind.startswith("prefill") else [str(kind), token])
            token += n
            length += n if kind != "append-only" else 0
    layers, q_row = geometry["layers"], heads * head_dim

    def noise(columns: int, size: float) -> np.ndarray:
        x = rng.normal(size=(token, layers, columns)) * np.exp2(rng.normal(size=(token, layers, 1)) * size)
        x[rng.random(x.shape) < 0.05] = 0
        x[rng.random(x.shape[:2]) < 0.05] = 0
        return x

    spread = float(rng.choice([0, 1, 3]))
    parts = [noise(width, spread), noise(width, spread), noise(q_row, 2), noise(q_row, 2)]
    if rng.random() < 0.5:
        shifts = rng.integers(-3, 13, size=(layers, 2)).tolist()
        options = {
            "kv_shift": shifts,
            "q_shift": int(rng.integers(0, 14)),
            "out_shift": int(rng.integers(-2, 16)),
        }
        most = 8188 if codec == "float16" else 32768  # times 2^3 still stored
        return Job(geometry, ops, *[np.clip(x * 2000, -most, most - 1) for x in parts], **options)
    extreme = float(rng.choice([1, 1, 1e-5, 1e-8, {"int8": 1e4, "float16": 10}.get(codec, 100)]))
    return Job(geometry, ops, *[x * extreme for x in parts[:2]], *parts[2:])


JOBS = [("int8", seed) for seed in range(40)] + [("int8-int4", seed) for seed in range(200, 224)]
# Groups over several heads, within one, of no multiple of 8 and of 4; the last of one value each.
SPARSE = (338, 347, 368, 371, 372, 412, 418, 438, 442, 455, 303, 305, 308, 306, 311)
JOBS += [("sparse", seed) for seed in SPARSE]
JOBS += [("float16", seed) for seed in range(500, 512)]


# The goldens are compared always.
@pytest.mark.exhaustive
@pytest.mark.parametrize(("codec", "seed"), JOBS)
def test_viper_equals_plain(codec: str, seed: int, upy) -> None:
    job = random_job(seed, codec)
    plain, plain_buffer = job.plain()
    viper, viper_buffer = job.unix(upy)
    unsigned = f"u{plain.itemsize}"  # NaN or -0.0 would compare wrongly as floats
    assert np.array_equal(plain.view(unsigned), viper.view(unsigned)), job.job
    assert len(plain_buffer) == Geometry(**job.job["geometry"]).bytes()
    assert plain_buffer == viper_buffer, job.job


def test_weights_at_every_exponent(upy) -> None:
    """Around each threshold of the weights kernel, from one unit of score is everything to it is nothing."""
    assert int(upy.run(Path(__file__).parent / "device" / "weights_sweep.py")) == 110 * 4 * 3


@pytest.mark.parametrize("seed", [3, 5, 8])
def test_ports_without_native_code(seed: int, upy, tmp_path: Path) -> None:
    """The package as such a port loads it: native decorators left out, plain kernels."""
    job = random_job(seed)
    given, data, out = (tmp_path / name for name in ("job", "data", "out"))
    given.write_text(json.dumps(job.job))
    data.write_bytes(job.data)
    script = Path(__file__).parent / "device" / "no_emitter.py"
    said = upy.run(script, [given, data, out], heap_bytes=32 << 20)
    assert "no native code emitter" in said
    outputs, buffer = job.split(out.read_bytes())
    plain, plain_buffer = job.plain()
    assert outputs.tobytes() == plain.tobytes()
    assert buffer == plain_buffer


def test_files_with_native_code_are_known() -> None:
    """A port without an emitter must be told of each file that it cannot compile as it stands."""
    native = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"^\s*@micropython\.(native|viper)", path.read_text(), re.MULTILINE)
    }
    # Kernels are loaded, and refused, by port.load_native.
    kernels = {path for path in native if path.endswith(("/viper.py", "/thumb.py"))}
    installing = {
        file: text
        for file in PACKAGE.rglob("__init__.py")
        if ".undecorated import" in (text := file.read_text())
    }
    unknown = []
    rp2_alone = {"bus/rp2_dma.py"}  # that port has an emitter
    for path in sorted(native - kernels - rp2_alone):
        name = path.removesuffix(".py").replace("/", ".")
        own = installing.get((PACKAGE / path).parent / "__init__.py", "")
        named = any(f'"{name}"' in text for text in installing.values())
        if not named and f'"{name.rpartition(".")[2]}"' not in own:
            unknown.append(path)
    assert len(native - kernels) > 10
    assert unknown == []


def indexes(path: Path, array: str, imported: Mapping[str, set[int]]) -> dict[str, set[int]]:
    """Function -> indexes with which it subscripts `array`, by the names of their fields.

    `a[NAME + which]` is NAME and the one after it. Tables, read at computed places, are left out. What a
    function of the file, or one that is imported, reads is read by those that call it, too."""
    found = dict(imported)
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        mine: set[int] = set()
        for node in ast.walk(function):
            if not (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and node.value.id == array
            ):
                continue
            index = node.slice
            if isinstance(index, ast.BinOp) and isinstance(index.left, ast.Name):
                first = getattr(FIELDS, index.left.id.removeprefix("_"), None)
                if first is not None:
                    mine |= {first, first + 1}
            elif isinstance(index, ast.Name) and index.id.isupper():
                mine.add(getattr(FIELDS, index.id.removeprefix("_")))
        found[function.name] = mine
    calls = {
        function.name: found.keys()
        & {
            node.func.id
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        for function in functions
    }
    for _ in functions:
        for name, called in calls.items():
            found[name] = found[name].union(*(found[other] for other in called))
    return found


ENCODE_ONLY = {params.E_MASK31, *range(params.E_K, params.E_TABLE)}


@pytest.mark.parametrize("package", ["", "int8_int4", "sparse", "float16"])
@pytest.mark.parametrize(("array", "extra"), [("a", {params.MASK31}), ("e", ENCODE_ONLY)])
def test_viper_reads_the_parameters_that_plain_names(array: str, extra: set[int], package: str) -> None:
    """Function by function viper.py reads those that plain.py does.

    Left out are the mask, which only native code needs, N and RUNS, as either tells a loop where to end, the
    runs and the records of vectors, which viper reads through a pointer, and SLICES, which tells it whether
    scores are overwritten.
    """
    if array == "a":
        extra = extra | {params.N, params.RUNS, params.RUN, params.RUN + 1, params.SLICES}
        extra |= {params.UNIT, params.VARIED}  # stored through a pointer
    folder = PACKAGE / "kernels" / package
    base = indexes(PACKAGE / "kernels" / "plain.py", array, {}) if package else {}
    plain = indexes(folder / "plain.py", array, base)
    viper = indexes(folder / "viper.py", array, {})
    assert len(viper) == {"": 8, "float16": 4, "int8_int4": 1, "sparse": 2}[package]
    for name, used in viper.items():
        assert used - extra == plain[name] - extra, name
