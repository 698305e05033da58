"""`kvlab bench`: measurements, each repeatable by the line that names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from commandline.errors import BadInput
from kvlab import boards, options, output, paths, shipped
from kvlab.bench import bus, choices, kernels, shares, targets, tokens, worst
from kvlab.commands._accuracy import accuracy_command
from kvlab.cost import model
from mpy_kv.eviction.tokens import POLICIES as TOKEN_POLICIES

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def command() -> None:
    """Measure kernels, tokens, worst cases and quality.

    Instructions, counted on an emulated Cortex-M3, repeat exactly; of times only ratios within one run tell
    much.
    """


command.add_command(accuracy_command)


def target_option(*, ports: bool = True) -> Callable[[F], F]:
    """`--target`: where it runs. Without `ports` on the emulated board alone."""
    if not ports:
        return click.option(
            "--target",
            type=click.Choice([targets.QEMU]),
            default=targets.QEMU,
            show_default=True,
            help="Where it runs: the emulated 32-bit board.",
        )
    return click.option(
        "--target",
        metavar=targets.METAVAR,
        default=targets.UNIX,
        show_default=True,
        help="Where it runs: the unix port, the emulated 32-bit board, or a board on that serial port.",
    )


def prepare(target: str) -> None:
    with output.waiting("Building the firmware, once ..."):
        targets.prepare(target)


@command.command(
    name="kernels",
    epilog="""Examples:

\b
  kvlab bench kernels --target unix --json out/kernels.json
  kvlab bench kernels --target qemu
  kvlab bench kernels --target /dev/ttyACM0
""",
)
@target_option()
@click.option(
    "--head-dim",
    type=click.IntRange(8, 256),
    metavar="VALUES",
    help="On unix: length of a row; a multiple of 8 [default: 8].",
)
@click.option(
    "--tokens",
    type=click.IntRange(8, 4096),
    metavar="TOKENS",
    help="On unix: rows attended [default: 1024].",
)
@output.json_option
def kernels_command(target: str, head_dim: int | None, tokens: int | None, json_path: Path | None) -> None:
    """Cost of one multiply-accumulate in attention, all variants in one run.

    QK is the dot of a query with every stored key, AV the weighted sum of the stored values, flushes
    included, both over int8 codes as they lie. On unix: nanoseconds of viper against bytecode; the ratio
    is to the faster of the plain twin and an unrolled loop. Elsewhere rows of 8 and of 64, each kernel set
    that is there: instructions on qemu, with the same loops in C (gcc -O2, -O3), nanoseconds on a board.
    A board must have mpy_kv: kvlab deploy.
    """
    if target == targets.UNIX:
        head_dim, tokens = head_dim or 8, tokens or 1024
        if head_dim % 8:
            raise BadInput(f"--head-dim {head_dim}: the unrolled loop takes multiples of 8")
        with output.waiting("Timing the kernels ..."):
            figures = kernels.measure_ratio(head_dim, tokens)
        show_ratio(figures)
    else:
        options.no_effect(f"only for --target {targets.UNIX}", "head_dim", "tokens")
        prepare(target)
        with output.progress("Measuring", kernels.STEPS) as done:
            figures = kernels.measure(target, done)
        show_products(figures)
    if json_path is not None:
        output.write_json(json_path, figures, head_dim=head_dim, tokens=tokens)


def show_ratio(figures: dict[str, Any]) -> None:
    rows = [
        (
            name.upper(),
            *(f"{figures[name][key]:,.2f} ns" for key in ("plain_ns", "unrolled_ns", "viper_ns")),
            f"{figures[name]['ratio']:.1f} x",
        )
        for name in kernels.KERNELS
    ]
    title = (
        f"Per multiply-accumulate, rows of {figures['head_dim']}, {figures['tokens']} tokens,"
        f" target {figures['target']}"
    )
    output.table(title, rows, ("", "plain twin", "unrolled bytecode", "viper", "viper is faster by"))


def show_products(figures: dict[str, Any]) -> None:
    names = kernels.variants(figures)
    for title, places, find in (
        ("Per multiply-accumulate", 2, lambda costs, name: costs[name]),
        ("Per call", 0, lambda costs, name: costs["per_call"][name]),
    ):
        rows = [
            (
                f"{kernel.upper()}, rows of {width}",
                *(f"{find(figures[kernel][width], name):,.{places}f}" for name in names),
            )
            for kernel in kernels.KERNELS
            for width in kernels.WIDTHS
        ]
        header = ("", *(kernels.TITLES.get(name, name) for name in names))
        output.table(f"{title}, {figures['unit']}, target {figures['target']}", rows, header)
    show_missing(figures)


def show_missing(figures: dict[str, Any]) -> None:
    """Why a kernel set was not measured."""
    for reason in figures["missing"].values():
        click.echo(reason)


@command.command(
    name="tokens",
    epilog="""Examples:

\b
  kvlab bench tokens --target qemu --json out/tokens.json
  kvlab bench tokens --target unix --position 255
  kvlab bench tokens --target /dev/ttyACM0
""",
)
@target_option()
@options.model_option(f"{shipped.NAMES[0]}; on a serial port the board's")
@click.option(
    "--position",
    "positions",
    type=click.IntRange(1, 100_000),
    multiple=True,
    default=tokens.POSITIONS,
    show_default=True,
    metavar="TOKENS",
    help="Tokens there already; may be repeated.",
)
@output.json_option
def tokens_command(
    target: str, model: str | None, positions: tuple[int, ...], json_path: Path | None
) -> None:
    """Cost of one token of the stories app, everything included, by position and kernel set; and of one of a
    prompt, with its share of making tokens of text.

    The window is 256 tokens. On qemu in instructions of compiled modules, and also: the shares, what of the
    told token each kernel takes, counted by the address of its code by a plugin of the emulator (needs gcc),
    and all other code, which is the interpreter and the calls; what the program takes from its start to the
    first word of a story, at first and where its kernels are remembered as checked; what the cache takes to
    store, that no step grows dearer with what has passed, and what core and buses of each board allow.
    On unix and on a board, which must have app and model (kvlab deploy), in time.
    """
    import tempfile

    from kvlab.models.load import load_image

    if target not in (targets.UNIX, targets.QEMU):
        options.no_effect("a board on a serial port tells with its own", "model")
        with output.progress("Tokens", tokens.steps(target, positions)) as done:
            figures = tokens.measure(target, None, positions, done)
    else:
        path = shipped.find(model, "--model") if model is not None else paths.SHIPPED
        image = load_image(path)
        prepare(target)
        with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
            place = Path(folder) / "model.mkvm"
            place.write_bytes(image.data)
            with output.progress("Tokens", tokens.steps(target, positions)) as done:
                figures = tokens.measure(target, place, positions, done)
        figures["model"] = str(path)
    show_tokens(figures)
    if json_path is not None:
        output.write_json(json_path, figures, model=figures.get("model"))


def show_tokens(figures: dict[str, Any]) -> None:
    costs = tokens.costs(figures)
    names = list(next(iter(costs.values())))
    counted = tokens.COUNTED in figures
    rows = [
        (at + of, *(f"{by[at][name]:,}" if counted else f"{by[at][name] / 1e6:,.2f} ms" for name in names))
        for at in sorted(costs, key=int)
        for of, by in (("", costs), (", of a prompt", figures["prompt_token"]))
    ]
    header = ("tokens there", *(f"{name}, instructions" if counted else name for name in names))
    output.table(f"One token on {figures['target']}", rows, header)
    show_missing(figures)
    if "shares" in figures:
        rows = shares.rows(figures["shares"], names)
        output.table("Shares of the told token, instructions", rows, ("tokens there", "in", *names))
    if "first_word" in figures:
        show_starts(figures)
    if "cache" in figures:
        show_cache(figures["cache"])
    if "limits" in figures:
        show_limits(figures["limits"], names)


def show_starts(figures: dict[str, Any]) -> None:
    rows = [
        ("first start", f"{figures['first_word']:,}"),
        ("kernels remembered as checked", f"{figures['first_word_remembered']:,}"),
    ]
    output.table("From the program's start to the first word", rows, ("", "instructions"))


def show_cache(cache: dict[str, Any]) -> None:
    rows = tokens.append_rows(cache)
    rows.append(("commit, 5 layers", f"{cache['commit']:,.0f}", ""))
    rows += [
        (f"step of one layer, window {window} full", f"{by['early']:,.0f}", f"{by['millionth']:,.0f}")
        for window, by in sorted(cache["step_by_window"].items(), key=lambda item: int(item[0]))
    ]
    header = ("", "from the hundredth token on", "from the millionth")
    output.table(f"The cache, instructions; steps with {cache['kernels']}", rows, header)


def show_limits(limits: dict[str, Any], names: Sequence[str]) -> None:
    rows = [
        (
            board,
            f"{by['clock_hz'] / 1e6:g} MHz",
            *(
                f"{by['core_tokens_per_s'][name]:,.1f}" if name in by["core_tokens_per_s"] else "-"
                for name in names
            ),
            f"{by['bus_tokens_per_s']:,.1f}",
        )
        for board, by in limits.items()
    ]
    header = ("", "clock", *(f"core, {name}" for name in names), "buses")
    output.table("At most, tokens/s: one instruction a cycle, and every byte read once", rows, header)


@command.command(
    name="board",
    epilog="""Examples:

\b
  kvlab bench board --port /dev/ttyACM0 --json out/board.json
  kvlab bench board --freq 200000000
""",
)
@click.option("--port", metavar="PORT", help="Its serial port [default: the USB one, if there is just one].")
@click.option(
    "--board",
    "name",
    metavar="NAME",
    help="Whose modelled figures stand beside [default: the board's that answers].",
)
@click.option(
    "--tokens",
    type=click.IntRange(1, 100_000),
    default=model.USUAL_STORY,
    show_default=True,
    metavar="TOKENS",
    help="Tokens to tell.",
)
@click.option(
    "--window",
    type=click.IntRange(1, 65_536),
    metavar="TOKENS",
    help="Recent tokens kept [default: the app's].",
)
@click.option(
    "--freq",
    type=click.IntRange(min=1),
    metavar="HZ",
    help="Set its clock first, as FREQ of main.py does [default: as it is]. It stays so until the board is"
    " reset.",
)
@output.json_option
def board_command(
    port: str | None,
    name: str | None,
    tokens: int,
    window: int | None,
    freq: int | None,
    json_path: Path | None,
) -> None:
    """Measure a story on a board of yours: tokens/s told, seconds to the first word, a prompt's tokens/s;
    and print beside each what is modelled of that board.

    The board must have app and model (kvlab deploy); what runs there is interrupted. The first word is timed
    from the program's start: at first with the kernels' self-check, then as the board remembers that they
    passed (kernels.checked, which this writes). Only an RP2040 is modelled.
    """
    from kvlab.bench import board

    asked = board.Asked(tokens, window, freq)
    known = boards.load(name) if name else None
    with output.progress("Tokens", board.steps(asked)) as done:
        figures = board.measure(port, known, asked, done)
    show_board(figures)
    if json_path is not None:
        output.write_json(json_path, figures, port=port)


def show_board(figures: dict[str, Any]) -> None:
    from kvlab.bench import board

    clock = f", {figures['clock_hz'] / 1e6:g} MHz" if figures["clock_hz"] else ""
    title = f"{figures['machine'] or 'A board'}{clock}, MicroPython {figures['micropython']}"
    output.table(title, board.rows(figures), ("", "measured", "modelled", "measured / modelled"))
    output.notes(
        [f"modelled: {figures['notes'][0]}", *figures["notes"][1:]],
    )


@command.command(
    name="worst",
    epilog="""Example:

\b
  kvlab bench worst --target qemu --json out/worst.json
""",
)
@target_option(ports=False)
@click.option(
    "--calls",
    type=click.IntRange(100, 10_000_000),
    default=worst.CALLS,
    show_default=True,
    metavar="CALLS",
    help="Rounds; in each about one call of every operation of ring, pools and policies, and a step of a"
    " request.",
)
@output.json_option
def worst_command(target: str, calls: int, json_path: Path | None) -> None:
    """Fewest, mean and most instructions of each call of cache, pools, requests and eviction policies, and
    when the most came.

    One layer of 2 x 32 values, a window or budget of 8, pools of 4 KiB, up to four requests in 10 blocks,
    policies over 64 blocks or tokens and over 16; values and order at random from fixed seeds, the call
    itself included.
    """
    prepare(target)
    with output.progress("Rounds", worst.steps(calls)) as done:
        figures = worst.measure(calls, done)
    header = ("", "calls", "min", "mean", "max", "at call")
    for of, names in worst.OPERATIONS.items():
        title = f"Instructions of a call, {of}, target {target}, {figures['kernels']} kernels"
        output.table(title, worst.rows(figures, names), header)
    if json_path is not None:
        output.write_json(json_path, figures)


@command.command(
    name="bus",
    epilog="""Examples:

\b
  kvlab bench bus --target qemu --json out/bus-calls.json
  kvlab bench bus --target unix --calls 10000
""",
)
@click.option(
    "--target",
    type=click.Choice([targets.UNIX, targets.QEMU]),
    default=targets.UNIX,
    show_default=True,
    help="Where it runs: the unix port, or the emulated 32-bit board.",
)
@click.option(
    "--calls",
    type=click.IntRange(10, 1_000_000),
    default=bus.CALLS,
    show_default=True,
    metavar="CALLS",
    help="Calls of which a mean is; on unix 4,000 at least.",
)
@output.json_option
def bus_command(target: str, calls: int, json_path: Path | None) -> None:
    """Cost of a call of the bus's parts: the tracker's request, record and stats, a slot of the schedule, a
    push into the queue of copies, and what a chain and each of its descriptors take.

    On qemu in instructions, on unix in nanoseconds, of which the ratio to an empty method's call tells more.
    And events a second of the contention model, over those of a process of SimPy that does nothing.
    """
    prepare(target)
    with output.progress("Measuring", bus.STEPS) as done:
        figures = bus.measure(target, calls, done)
    header = ("", figures["unit"], "times an empty method's")
    output.table(f"A call of the bus's parts, target {target}", bus.rows(figures), header)
    rate = f"{100 * figures['event_rate_ratio']:.0f} %"
    output.notes([f"the contention model has {rate} of the events a second of an empty process"])
    if json_path is not None:
        output.write_json(json_path, figures)


@command.command(
    name="pools",
    epilog="""Examples:

\b
  kvlab bench pools --json out/pools.json
  kvlab bench pools --pool fixed --pool slab
""",
)
@options.pools_option("Pool to measure; may be repeated [default: all of them].")
@output.json_option
def pools_command(pool_names: tuple[str, ...], json_path: Path | None) -> None:
    """Pairs of alloc and free a second on this machine, in CPython and compiled (numba).

    The compiled functions are the device's own, all checks of a handle included. The reference, in turns
    with ours, is a twin that checks nothing: blocks as objects in a doubly linked free queue. Scattered:
    blocks all over a full pool are freed and taken anew, so that of many most are in no cache.
    """
    from kvlab.bench import pools

    with output.progress("Measuring", pools.steps(pool_names)) as done:
        figures = pools.measure(pool_names, done)
    show_pools(figures, pool_names)
    if json_path is not None:
        output.write_json(json_path, figures)


def show_pools(figures: dict[str, Any], names: Sequence[str]) -> None:
    from kvlab.bench import pools

    def rate(value: float) -> str:
        return f"{value / 1e6:,.3g}"

    rows = [
        (
            f"{name}{how}",
            *(rate(by[f"{kind}_pairs_per_s"]) for kind in ("python", "reference")),
            f"{by['python_over_reference']:.2g} x",
            rate(by["compiled_pairs_per_s"]),
            f"{figures[name]['metadata_bytes_per_block']:g}",
        )
        for name in names
        for how, by in (("", figures[name]), (", batches of 16", figures[name]["batch16"]))
    ]
    header = ("", "CPython", "twin", "CPython / twin", "compiled", "bookkeeping, bytes a block")
    output.table(f"Million pairs of alloc and free a second, {pools.BLOCKS:,} blocks", rows, header)
    rows = [
        (
            name,
            f"{int(blocks):,}",
            *(
                rate(by[f"{kind}_pairs_per_s"])
                for kind in ("python", "compiled", "python_scattered", "compiled_scattered")
            ),
        )
        for name in names
        for blocks, by in figures[name]["by_blocks"].items()
    ]
    header = ("", "blocks", "CPython", "compiled", "CPython, scattered", "compiled, scattered")
    output.table("The same by number of blocks", rows, header)


@command.command(
    name="policies",
    epilog="""Example:

\b
  kvlab bench policies --json out/policies.json
""",
)
@output.json_option
def policies_command(json_path: Path | None) -> None:
    """Accesses a second of each eviction policy: in CPython, compiled (numba), and on the unix port.

    Accesses follow Zipf's law over ten times as many keys as entries, evictions and insertions included. On
    the unix port: a touch against a lookup in a dict, each timed in the same loop, loop included.
    """
    from kvlab.bench import policies

    with output.progress("Measuring", policies.STEPS) as done:
        figures = policies.measure(done)
    show_policies(figures)
    if json_path is not None:
        output.write_json(json_path, figures)


def show_policies(figures: dict[str, Any]) -> None:
    from kvlab.bench import policies

    rows = [
        (
            name,
            f"{figures[name]['python_accesses_per_s'] / 1e6:,.2f}",
            *(f"{by['accesses_per_s'] / 1e6:,.1f}" for by in figures[name]["by_entries"].values()),
            f"{100 * figures[name]['by_entries'][str(policies.ENTRIES)]['miss_ratio']:.2f}",
        )
        for name in policies.NAMES
    ]
    header = (
        "",
        f"CPython, {policies.PYTHON_ENTRIES:,} entries",
        *(f"compiled, {entries:,}" for entries in policies.BY_ENTRIES),
        f"misses of these (%), {policies.ENTRIES:,}",
    )
    output.table("Million accesses a second", rows, header)
    rows = [
        (
            name,
            *(f"{by[key]:,.0f} ns" for key in ("dict_ns", "touch_ns")),
            f"{by['touch_over_dict']:.1f} x",
            f"{by['evict_insert_ns']:,.0f} ns",
            f"{by['bytes_per_entry']:g}",
        )
        for name in policies.NAMES
        for by in (figures[name]["device"],)
    ]
    header = ("", "d[k]", "touch", "touch / d[k]", "evict and insert", "bookkeeping, bytes an entry")
    output.table(f"On the unix port, {policies.DEVICE_ENTRIES:,} entries", rows, header)


@command.command(
    name="choices",
    epilog="""Example:

\b
  kvlab bench choices --json out/choices.json
""",
)
@target_option(ports=False)
@output.json_option
def choices_command(target: str, json_path: Path | None) -> None:
    """Instructions that each element type and each token policy costs a token.

    stories260K's shape, int16 numbers, 128 tokens in view. QK, AV: of a token in view, in one layer, all 8
    heads; append, attend: of a layer; token: append, attend and commit of all 5 layers. Under a policy each
    token evicts one. docs/CHOOSING.md has what they lose beside it.
    """
    prepare(target)
    with output.progress("Measuring", choices.STEPS) as done:
        figures = choices.measure(done)
    for title, header, rows in (
        ("Element types, thumb kernels unless said", choices.CODECS_HEADER, choices.codec_rows(figures)),
        ("Token policies, int8", choices.POLICIES_HEADER, choices.policy_rows(figures)),
    ):
        output.table(f"{title}: instructions, {figures['in_view']} tokens in view", rows, header)
    if json_path is not None:
        output.write_json(json_path, figures)


@command.command(
    name="loss",
    epilog="""Examples:

\b
  kvlab bench loss --model stories260K.bin --text stories.jsonl \\
      --json out/loss.json
  kvlab bench loss --model stories260K.bin --text stories.jsonl \\
      --policy lru-peak --policy window --budget 64
""",
)
@options.model_option(images=False, required=True)
@options.tokenizer_option
@click.option("--text", required=True, metavar="FILE", help='Text; of a .jsonl the "heldout" lines.')
@click.option(
    "--passages",
    type=click.IntRange(min=1),
    metavar="PASSAGES",
    help="How many, from the first on [default: all].",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(sorted(TOKEN_POLICIES)),
    metavar="NAME",
    help="Also the device that keeps --budget tokens by this policy; may be repeated. Of"
    f" {', '.join(sorted(TOKEN_POLICIES))}.",
)
@click.option("--budget", type=click.IntRange(min=1), metavar="TOKENS", help="How many --policy keeps.")
@output.json_option
def loss_command(
    model: str,
    tokenizer: str | None,
    text: str,
    passages: int | None,
    policies: tuple[str, ...],
    budget: int | None,
    json_path: Path | None,
) -> None:
    """Loss of the fixed-point device against the same model in float32, on FILE.

    The device's figures come from its own integers, run on the unix port. Also: what storing keys
    and values as int8 costs alone, in groups of 32 and of 8; what forgetting tokens costs the device.
    """
    if bool(policies) != (budget is not None):
        raise BadInput("--policy and --budget belong together: give both or neither")
    from kvlab.bench import loss
    from kvlab.models import calibrate

    path = shipped.find(model, "--model", ".bin")
    where = options.existing_file(text, "--text")
    named = options.existing_file(tokenizer, "--tokenizer") if tokenizer is not None else None
    kept = loss.Kept(policies, budget or 0)
    with output.progress("Converting", calibrate.STEPS) as done:
        ready = loss.prepared(path, where, named, passages, kept, done)
    with output.progress("Passages", len(ready.passages) * (1 + len(policies))) as done:
        figures = loss.measure(ready, kept, done)
    rows = [
        ("text", f"{figures['passages']:,} passages, {figures['tokens']:,} predicted tokens"),
        ("float32", f"{figures['float32_nats']:.4f} nats/token"),
        (
            "device, all fixed point",
            f"{figures['device_nats']:.4f} nats/token ({figures['device_change_pct']:+.2f} %)",
        ),
        ("device's likeliest token is float32's", f"{figures['top1_pct']:.1f} %"),
    ]
    rows += [
        (
            f"int8 keys and values alone, groups of {g}",
            f"{figures[f'int8_g{g}_ppl_pct']:+.3f} % perplexity",
        )
        for g in ready.groups
    ]
    rows += [
        (
            f"device, {name} of {budget} tokens",
            f"{of['nats']:.4f} nats/token ({of['perplexity_change_pct']:+.2f} % perplexity)",
        )
        for name, of in figures.get("policies", {}).items()
    ]
    output.table("Loss on held-out text" if where.suffix == ".jsonl" else f"Loss on {where.name}", rows)
    if json_path is not None:
        output.write_json(json_path, {"model": str(path), "text": str(where), **figures})
