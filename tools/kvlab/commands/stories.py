"""`kvlab stories`: a story, told by the app on an emulated board."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commandline import files
from commandline.errors import BadInput, FellShort
from kvlab import options, output, paths, shipped, story
from kvlab.boards import Board
from kvlab.cost import turns
from kvlab.cost.model import Pace, rows_of
from kvlab.element_types import NAMES
from kvlab.options import Decimal

if TYPE_CHECKING:  # numpy is slow to import, and --help does without
    from kvlab import many, resets
    from kvlab.models.image import Image


@click.command(
    epilog="""Examples:

\b
  kvlab stories --board rp2040 --model stories260K.bin --tokens 40 --greedy
  kvlab stories --board qemu_arm --tokens 40 --greedy
  kvlab stories --board rp2040 --codec int8-int4 \\
      --policy lru-attention --budget 64
  kvlab stories --prompt "Once upon a time" --policy lru-peak \\
      --budget 64 --compress 0.5
  kvlab stories --board rp2350 --requests 4 \\
      --shared-prefix "Once upon a time there was a dragon."
  kvlab stories --tokens 100 --save out/story.mkvs
  kvlab stories --tokens 100 --resume out/story.mkvs
  kvlab stories --tokens 260 --kv-flash 131072 --cut-at 200
  kvlab stories --asyncio --board rp2040 --tokens 40
"""
)
@options.board_option
@options.model_option(shipped.NAMES[0])
@options.tokenizer_option
@click.option(
    "--tokens",
    type=click.IntRange(1, 10_000_000),
    default=200,
    show_default=True,
    metavar="TOKENS",
    help="How many to tell.",
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="TEXT",
    help="How the story starts; with --requests once for all, or once for each.",
)
@click.option(
    "--requests",
    type=click.IntRange(1, 64),
    metavar="STORIES",
    help="Tell so many at once from one arena, with seeds --seed, --seed + 1 and so on, and each alone"
    " to compare.",
)
@click.option(
    "--shared-prefix",
    metavar="TEXT",
    help="How all of --requests start, before their --prompt: computed and kept once.",
)
@click.option(
    "--block-tokens",
    type=click.IntRange(1, 1024),
    metavar="TOKENS",
    help="Tokens of a block of the arena of --requests [default: 16].",
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Recent tokens kept: with --sinks at most what the model was trained for [default: the board's].",
)
@click.option(
    "--sinks",
    type=click.IntRange(min=0),
    metavar="TOKENS",
    help=f"First tokens kept on top [default: {story.USUAL_SINKS}, or as many as the model's context has room"
    " for beside --window; none under a policy that weighs tokens].",
)
@click.option(
    "--temperature",
    type=Decimal(0, 100),
    default="0.8",
    show_default=True,
    metavar="T",
    help="Of the choice of each token; 0 is greedy.",
)
@click.option(
    "--top-p",
    type=Decimal(0, 1),
    default="0.9",
    show_default=True,
    metavar="P",
    help="Draw from the likeliest that make up P; 0 and 1: from all.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=1,
    show_default=True,
    metavar="SEED",
    help="Same seed, same story.",
)
@click.option("--greedy", is_flag=True, help="Always the likeliest token.")
@click.option("--stop", is_flag=True, help="End with the first story instead of starting another.")
@click.option(
    "--codec",
    type=click.Choice(NAMES),
    help="What the cache stores [default: what a board image names, or int8]. float32 is for reference: plain"
    " kernels, which allocate.",
)
@options.policy_options
@click.option(
    "--compress",
    type=Decimal("0.001", "1.000"),  # as the app says it
    metavar="PART",
    help="With --policy: what part of the prompt stays once it is read, 0.001 to 1, such as 0.5.",
)
@click.option(
    "--kernels",
    type=click.Choice(["thumb", "viper", "plain"]),
    help="[default: the fastest that passes its check]",
)
@click.option(
    "--save",
    "save_path",
    type=files.OutFile(),
    metavar="FILE",
    help="Write the story there when its tokens are told, to go on with later: a snapshot of the cache, the"
    " last token and the choice of tokens.",
)
@click.option(
    "--resume",
    metavar="FILE",
    help="Go on with it: the same text as if it had been told at once. What the cache is, the file says.",
)
@click.option(
    "--kv-flash",
    type=options.Size(1, 1 << 30),
    metavar="BYTES",
    help="Keep the story in a flash log of that size as it is told, beside the files of the board's littlefs:"
    " after a reset it goes on. Without --window the largest that fits.",
)
@click.option(
    "--cut-at",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="With --kv-flash: once so many tokens are told, cut the power in the next operation on the flash;"
    " the board starts again, and the text must be the undisturbed one.",
)
@click.option(
    "--asyncio",
    "as_task",
    is_flag=True,
    help="Tell it as an asyncio task that gives its turn away between two layers of a token; and model what"
    " others see of it on a Raspberry Pi Pico: the longest call, the longest time between two awaits, the"
    " longest garbage collection.",
)
@click.option(
    "--firmware",
    metavar="UF2",
    help="Run this MicroPython image of a Pico in the emulator rp2040py (extra `rp2040`): the real heap and"
    " file system, much slower than a Pico.",
)
@click.option(
    "--peak",
    is_flag=True,
    help="Also search for the smallest heap it runs in: some ten short runs more.",
)
@output.json_option
def command(
    board: Board,
    model: str | None,
    tokenizer: str | None,
    tokens: int,
    prompts: tuple[str, ...],
    requests: int | None,
    shared_prefix: str | None,
    block_tokens: int | None,
    window: int | None,
    sinks: int | None,
    temperature: str,
    top_p: str,
    seed: int,
    greedy: bool,
    stop: bool,
    codec: str | None,
    policy: str | None,
    budget: int | None,
    compress: str | None,
    kernels: str | None,
    save_path: Path | None,
    resume: str | None,
    kv_flash: int | None,
    cut_at: int | None,
    as_task: bool,
    firmware: str | None,
    peak: bool,
    json_path: Path | None,
) -> None:
    """Tell a story on an emulated BOARD with a model, its KV cache in mpy_kv.

    What a Raspberry Pi Pico itself would take, the model read in place, is modelled from counts.
    Exit status: 0 told, 1 it failed, does not fit the board, or one of --requests is not what it is
    alone, 2 bad input.
    """
    from kvlab import many
    from kvlab.models.load import load_image

    _check_files(save_path, resume)
    _check_log(kv_flash)
    _check_task(board, as_task)
    _check_drawing(greedy, temperature)
    if compress is not None and not any(prompts) and not requests:
        options.no_effect("needs --prompt, of whose tokens it keeps a part", "compress")
    path = shipped.find(str(paths.SHIPPED) if model is None else model, "--model")
    words = options.existing_file(tokenizer, "--tokenizer") if tokenizer is not None else None
    image = load_image(path, words)
    asked: dict[str, Any] = {
        "tokens": tokens,
        "window": window,
        "sinks": sinks,
        "temperature": temperature,
        "top_p": top_p,
        "seed": seed,
        "greedy": greedy,
        "stop": stop,
        "codec": codec,
        "policy": policy,
        "budget": budget,
        "compress": compress,
        "kernels": kernels,
        "task": as_task,
    }
    if requests is not None:
        _check_requests(requests, prompts)
        shared: dict[str, Any] = {"shared_prefix": shared_prefix or "", "block_tokens": block_tokens}
        several = many.Telling(**asked, requests=requests, prompts=prompts, **shared)
        _tell_many(board, image, path, several, json_path)
        return
    telling = _of_one(asked, prompts, save_path, resume)
    sys.stdout.flush()
    if kv_flash is not None:
        _tell_logged(board, image, path, _region(board, image, telling, kv_flash), cut_at, json_path)
        return
    if firmware is not None:
        options.no_effect("real firmware has one heap; leave --peak or --firmware out", "peak")
        figures = _tell_on_firmware(board, firmware, image, telling)
        _write_figures(json_path, path, telling, figures)
        return
    told = _told(board, image.data, telling, resume)
    if save_path is not None and told.saved is not None:
        files.write(save_path, told.saved, "--save")
    if peak:
        with output.waiting("Searching for the smallest heap it runs in ..."):
            told = story.with_peak(board, image.data, telling, told)
    show(board, told)
    _write_figures(json_path, path, telling, told.figures)


def _told(board: Board, image: bytes, telling: story.Telling, resume: str | None) -> story.Told:
    """The story; what is wrong with the file of --resume is told of it by its name."""
    try:
        return story.tell(board, image, telling, stream=True)
    except BadInput as error:
        about, of_file, what = str(error).partition("--resume: ")
        raise BadInput(f"--resume {resume}: {what}" if of_file and not about else str(error)) from None


def _of_one(
    asked: dict[str, Any], prompts: Sequence[str], save_path: Path | None, resume: str | None
) -> story.Telling:
    options.no_effect("needs --requests", "shared_prefix", "block_tokens")
    if len(prompts) > 1:
        raise BadInput(f"--prompt: given {len(prompts)} times; more than one needs --requests")
    return story.Telling(
        **asked,
        prompt=prompts[0] if prompts else "",
        save=save_path is not None,
        resume=None if resume is None else Path(resume).read_bytes(),
    )


def _write_figures(
    json_path: Path | None, path: Path, telling: story.Telling, figures: dict[str, Any]
) -> None:
    if json_path is not None:
        output.write_json(json_path, {"model": str(path), **figures}, **_settings(path, telling, figures))


def _check_files(save: Path | None, resume: str | None) -> None:
    """BadInput for files that cannot be had, and for what has no effect beside them."""
    if resume is not None:
        options.existing_file(resume, "--resume")
        told = ("prompts", "temperature", "top_p", "seed", "greedy", "compress", "budget")
        options.no_effect("is in the file of --resume; leave one of them out", *told)
        options.no_effect("not with --resume; leave one of them out", "peak", "firmware", "requests")
    if save is not None:
        files.prepare(save, "--save")
        options.no_effect("not with --save; leave one of them out", "firmware", "requests")


def _check_log(kv_flash: int | None) -> None:
    """BadInput for what has no effect with or without --kv-flash."""
    if kv_flash is None:
        options.no_effect("needs --kv-flash", "cut_at")
        return
    options.no_effect("chooses tokens: a flash log is for a window", "policy", "budget", "compress")
    told = ("save_path", "resume", "requests", "firmware", "peak")
    options.no_effect("not with --kv-flash; leave one of them out", *told)


def _region(board: Board, image: Image, telling: story.Telling, kv_flash: int) -> resets.Region:
    """That of the log, with the largest window that fits where none was asked for."""
    from kvlab import resets

    region = resets.fitted(board, image, telling, kv_flash)
    if telling.window is None:
        with output.waiting("Looking for a window that the heap has room for ..."):
            region = resets.with_heap(board, image, region)
    return region


def _check_task(board: Board, as_task: bool) -> None:
    """BadInput for what a story as a task has not."""
    if not as_task:
        return
    if board.emulated:
        raise BadInput(f"--asyncio: {board.title} ({board.name}) has no asyncio; take another --board")
    other = ("requests", "save_path", "resume", "kv_flash", "compress", "firmware", "peak")
    options.no_effect("not with --asyncio; leave one of them out", *other)


def _tell_logged(
    board: Board, image: Image, path: Path, region: resets.Region, cut_at: int | None, json_path: Path | None
) -> None:
    """Tell it with a flash log, through a power cut if there is to be one."""
    from kvlab import resets

    telling = region.telling
    if cut_at is None:
        begun = resets.start(
            board, image.data, telling, resets.formatted(board, region.total_bytes), stream=True
        )
        figures = story.figures_of(board, begun.seen, begun.report)
    else:
        with output.waiting("Telling it undisturbed ..."):
            undisturbed = story.run(board, image.data, telling)[1].stdout
        begun, came = resets.through_a_cut(board, image.data, region, cut_at, undisturbed, stream=True)
        figures = {**story.figures_of(board, begun.seen, begun.report), **came}
    figures |= {**resets.figures_of(board, begun, region.total_bytes), "notes": region.notes}
    figures |= Pace(note="no figure: a story with a log was not counted").figures()
    show(board, story.Told(figures, begun.report))
    _write_figures(json_path, path, telling, figures)
    if not figures.get("text_equal", True):
        raise FellShort(f"--cut-at {cut_at}: the text is not the undisturbed one")


def _logged(f: dict[str, Any]) -> list[tuple[str, str]]:
    """What the flash log did."""
    if "kv_flash_bytes" not in f:
        return []
    since = " since the cut" if "text_equal" in f else ""
    rows = [
        (
            "flash log",
            f"{output.size(f['kv_flash_bytes'])}; {f['blocks']:,} blocks of 16 tokens,"
            f" {output.size(f['payload_bytes'])}{since}; {f['flash_programs']:,} programs,"
            f" {f['flash_erases']:,} erases: {f['flash_us'] / f['tokens'] / 1000:,.1f} ms a token at most",
        )
    ]
    if "text_equal" in f:
        rows.append(
            (
                "power cut",
                f"after {f['cut_at']:,} tokens; went on from token {f['went_on_from']:,}, the prompt's"
                f" counted; text {'as undisturbed' if f['text_equal'] else 'another'}",
            )
        )
    return rows


def _check_drawing(greedy: bool, temperature: str) -> None:
    """BadInput for options of drawing where no token is drawn."""
    if greedy:
        options.no_effect("has no effect with --greedy; leave one out", "temperature", "top_p", "seed")
    elif temperature == "0":
        options.no_effect("has no effect with --temperature 0, the likeliest token always", "top_p", "seed")


def _check_requests(requests: int, prompts: Sequence[str]) -> None:
    """BadInput for what several stories at once cannot have."""
    options.no_effect("not with --requests; leave one of them out", "peak", "firmware")
    options.no_effect(
        "is for one story, as requests share blocks of tokens; with --requests take --window",
        *("policy", "budget", "compress"),
    )
    if len(prompts) not in (0, 1, requests):
        raise BadInput(
            f"--prompt: given {len(prompts)} times; --requests {requests} takes one, or one for each"
        )


def _settings(path: Path, telling: story.Telling, figures: dict[str, Any]) -> dict[str, Any]:
    """What became of options that were left to a default; None for what no token was drawn by."""
    chosen = ("window", "sinks", "codec", "policy", "budget", "kernels", "block_tokens")
    settings = {"model": str(path), **{name: figures[name] for name in chosen if name in figures}}
    if telling.resume is not None:
        settings |= {"temperature": None, "top_p": None, "seed": None, "greedy": None}
    elif telling.greedy or telling.temperature == "0":
        settings |= {"temperature": 0.0, "top_p": None, "seed": None}
    return settings


def _tell_many(board: Board, image: Image, path: Path, telling: many.Telling, json_path: Path | None) -> None:
    """Tell them, show and write the figures; FellShort where one is not what it is alone."""
    from kvlab import many

    sys.stdout.flush()
    told = many.tell(board, image, telling, stream=True)
    many.show(board, told)
    _write_figures(json_path, path, telling, told.figures)
    told.check()


def _tell_on_firmware(board: Board, firmware: str, image: Image, telling: story.Telling) -> dict[str, Any]:
    """Tell it, show the figures below, and return them."""
    from kvlab import rp2040

    uf2 = options.existing_file(firmware, "--firmware")

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    chosen = story.with_sinks(telling, image.data)
    asked = {name: value for name, value in vars(chosen).items() if value not in (None, "")}
    f = rp2040.tell(board, uf2, image.data, asked, write)
    f["notes"] = story.notes(telling, f, image.config.seq_len)
    output.table(
        "",
        [
            ("board", f"{board.title} in rp2040py, MicroPython {f['micropython']}"),
            (
                "told",
                f"{f['tokens']:,} tokens in {f['ms'] / 1000:.2f} s of the board, {f['kernels']} kernels",
            ),
            (
                "KV cache",
                f"{output.size(f['kv_bytes'])} visible, {output.size(f['buffer_bytes'])} in all",
            ),
        ],
    )
    output.notes(f["notes"])
    return f


def _compressed(f: dict[str, Any]) -> list[tuple[str, str]]:
    """What --compress did."""
    if f["compressed_tokens"] is None:
        return []
    return [("compressed", f"{f['compressed_tokens']:,} tokens dropped once the prompt was read")]


def _kept(f: dict[str, Any]) -> list[tuple[str, str]]:
    """What --resume, --save and --kv-flash did."""
    rows = _logged(f)
    if f["reused_tokens"] and not rows:
        rows.append(("gone on with", f"{f['reused_tokens']:,} tokens that were in the file"))
    if f["saved_bytes"]:
        rows.append(("saved", output.size(f["saved_bytes"])))
    return rows


def _beats(f: dict[str, Any]) -> list[tuple[str, str]]:
    """What a task beside the story has seen on this machine."""
    if "beats" not in f:
        return []
    late = f"at most {f['longest_between_beats_us'] / 1000:.2f} ms apart on this machine"
    return [("turns of another task", f"{f['beats']:,}, {late}")]


def _beyond(f: dict[str, Any]) -> list[tuple[str, str]]:
    """What to say of a text longer than what the model was trained for, if tokens stay for long."""
    if f["policy"] == "window" or f["position"] <= f["context_tokens"]:
        return []
    return [
        (
            "beyond the context",
            f"{f['position']:,} tokens, trained for {f['context_tokens']:,}: a policy keeps what is further"
            " away than the model knows; take --window, or --stop",
        )
    ]


def show(board: Board, told: story.Told) -> None:
    """The figures below a story."""
    f = told.figures
    rows = [
        ("board", f"{board.title} ({board.name})"),
        (
            "told",
            f"{f['tokens']:,} tokens in {f['seconds']:.2f} s on this machine, {f['kernels']} kernels",
        ),
        *(turns.rows_of(f) if "longest_call_us" in f else rows_of(f)),
        *_beats(f),
        (
            "KV cache",
            f"{output.size(f['kv_bytes'])} visible, {output.size(f['buffer_bytes'])} in all",
        ),
        (
            f["policy"],
            f"{f['window']:,} tokens and {f['sinks']} sinks; {f['evicted_tokens']:,} tokens evicted",
        ),
        *_compressed(f),
        *_kept(f),
        *_beyond(f),
        (
            "element types" if isinstance(f["codec"], (list, tuple)) else "element type",
            f"{f['codec'] if isinstance(f['codec'], str) else ', '.join(f['codec'])};"
            f" {f['cache_kernels']} kernels",
        ),
        (
            "allocated per token",
            f"{f['alloc_bytes_per_token']:,} B"
            + ", by asyncio" * ("beats" in f)
            + ", by plain kernels" * (f["alloc_bytes_per_token"] > 0 and f["cache_kernels"] == "plain"),
        ),
        (
            "heap",
            f"{output.size(f['heap_live_bytes'])} live of {output.size(f['heap_limit_bytes'])}",
        ),
    ]
    if f["heap_peak_bytes"] is not None:
        rows.append(("smallest heap it runs in", output.size(f["heap_peak_bytes"])))
    if f["machine_code_bytes"] is None:
        code = "in this heap, as on a Raspberry Pi Pico"
    else:
        code = f"{output.size(f['machine_code_bytes'])} of x64, outside this heap"
        if told.report.native_code_in_heap:
            code += "; the board's, about 60 % of it, lies in the heap"
    rows.append(("machine code", code))
    if f["instructions"] is not None:
        rows.append(("instructions", f"{f['instructions']:,} in all, from the start of the program"))
    output.table("", rows)
    output.notes(f["notes"])
