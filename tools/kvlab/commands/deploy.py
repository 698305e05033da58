"""`kvlab deploy`: everything a board needs, copied over its serial port."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commandline.errors import BadInput, did_you_mean
from kvlab import boards, options, output, paths, shipped
from kvlab.boards import Board
from kvlab.deploy import APPS, NO_APP, PLACES
from kvlab.element_types import NAMES
from kvlab.parts import ask
from kvlab.parts.table import PARTS
from mpy_kv.eviction import tokens

if TYPE_CHECKING:  # mpremote is slow to import, and --help does without
    from kvlab.deploy.identity import Identity
    from kvlab.deploy.link import Link
    from kvlab.models.image import Image

_OF_MODEL = ("model", "tokenizer", "place")  # parameters
DEFAULT_MODEL = paths.BOARDS / "models" / "stories.mkvm"


def _real(_context: click.Context, _option: click.Parameter, name: str) -> Board:
    """A board one can hold. BadInput."""
    board = boards.load(name)
    if board.emulated:
        raise BadInput(f"--board {name}: exists in an emulator alone; `kvlab boards` lists the others")
    return board


def _part(_context: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """BadInput for what is no part."""
    for name in names:
        if name not in (*PARTS, ask.ALL):
            hint = did_you_mean(name, PARTS) or f"; parts: {', '.join(PARTS)}"
            raise BadInput(f"--part {name}: no such part{hint}")
    return names


def _parts(named: list[str], used: list[str] | None) -> tuple[str, ...] | None:
    """All that are needed; None, the whole package, where that was named or `used` is not known."""
    if used is None or ask.ALL in named:
        return None
    return tuple(dict.fromkeys([*used, *named]))


@click.command(
    epilog="""Examples:

\b
  kvlab deploy --board rp2040 --mpy --port /dev/ttyACM0
  kvlab deploy --board esp32s3 --port /dev/ttyUSB0 --mpy \\
      --model stories260K.bin
  kvlab deploy --board rp2040 --mpy --codec float16 --policy lru-peak
  kvlab deploy --board rp2040 --mpy --app none --part paged
  kvlab deploy --board rp2040 --mpy --kv-flash 256KiB
  kvlab deploy --board rp2040 --mpy --dry-run
"""
)
@click.option(
    "--board",
    metavar="NAME",
    required=True,
    callback=_real,
    help="The board it is: one that `kvlab boards` lists.",
)
@click.option("--port", metavar="PORT", help="Its serial port [default: the USB one, if there is just one].")
@click.option(
    "--app",
    type=click.Choice(APPS),
    default="stories",
    show_default=True,
    help="The app to copy; none: mpy_kv alone, for a program of your own.",
)
@options.model_option(shipped.NAMES[0], default=str(DEFAULT_MODEL))
@options.tokenizer_option
@click.option(
    "--mpy",
    is_flag=True,
    help="Copy compiled modules: the board then needs no heap to compile them. They have no line numbers:"
    " tracebacks tell module and function. For a Pico native code is made shorter than mpy-cross makes it.",
)
@click.option(
    "--model-in",
    "place",
    type=click.Choice(PLACES),
    default="auto",
    show_default=True,
    help="A ROMFS partition, read where it lies, or a file; auto: the partition if the firmware has one, and"
    " no file where the same model lies in flash already (kvlab convert --uf2).",
)
@click.option(
    "--codec",
    "codecs",
    type=click.Choice(NAMES),
    metavar="NAME",
    multiple=True,
    help="An element type that is used there, beside those of main.py and the model; may be repeated. Of"
    f" {', '.join(NAMES)}.",
)
@click.option(
    "--policy",
    "policies",
    type=click.Choice(tuple(tokens.POLICIES)),
    metavar="NAME",
    multiple=True,
    help="A token policy that is used there; as they share their code, each brings all. Of"
    f" {', '.join(tokens.POLICIES)} [default: none, the newest tokens stay].",
)
@click.option("--requests", is_flag=True, help="Several requests or stories at once are used there.")
@click.option(
    "--part",
    "part_names",
    metavar="NAME",
    multiple=True,
    callback=_part,
    help=f"Another part of mpy_kv, of {', '.join(PARTS)}; may be repeated. all: the whole package"
    " [default: what --codec, --policy and --requests name and the app uses; with --app none, and none of"
    " them, all].",
)
@click.option(
    "--kv-flash",
    "kv_flash",
    type=options.Size(1, 1 << 30),
    metavar="BYTES",
    help="Make files in /kv that lend a flash log that many bytes of the board's flash, a multiple of 4,096,"
    " and copy the parts flash-log and, with an app, resume. A log that is there is kept.",
)
@click.option(
    "--kv-anew",
    is_flag=True,
    help="Make these files anew: what a log has kept in them is lost.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Say what would be copied and removed, and write nothing; where no board is connected, or no --port"
    " of that name is there, as to an empty one.",
)
@click.option("--force", is_flag=True, help="Copy although another board answers; it is not reset then.")
@output.json_option
def command(
    board: Board,
    port: str | None,
    app: str,
    model: str,
    tokenizer: str | None,
    mpy: bool,
    place: str,
    codecs: tuple[str, ...],
    policies: tuple[str, ...],
    requests: bool,
    part_names: tuple[str, ...],
    kv_flash: int | None,
    kv_anew: bool,
    dry_run: bool,
    force: bool,
    json_path: Path | None,
) -> None:
    """Copy mpy_kv, an app, its main.py and a model to a board that runs MicroPython; with --app none mpy_kv
    alone. Of mpy_kv only what the app uses is copied: int8 and a window, unless main.py, the model or options
    name more.

    Files that are already right are skipped, each copy is verified before it takes its name, and old
    modules of ours are removed: it may be interrupted and repeated at will. A main.py that is not ours
    is kept as main.old.py. What runs on the board is interrupted and not started again.

    Exit status: 0 done, 1 no room or the board failed, 2 bad input, wrong board or port.
    """
    from kvlab.deploy import files, plan
    from kvlab.deploy.deployment import Deployment, Wish
    from kvlab.deploy.identity import expected
    from kvlab.deploy.link import connected, nothing_there
    from kvlab.models.load import load_image

    if ask.ALL in part_names:
        options.no_effect(
            "has no effect with --part all; leave one of them out", "codecs", "policies", "requests"
        )
    named = [*part_names, *ask.of_options(codecs, policies, requests)]
    kv_count = _kv_count(kv_flash)
    if kv_count and app != NO_APP:
        named += ask.OF_LOG
    elif kv_count and named:  # else all of it is copied
        named.append("flash-log")
    if app == NO_APP:
        options.no_effect("has no effect with --app none; leave one of them out", *_OF_MODEL)
        wish = Wish(board, app, b"", mpy=mpy, parts=_parts(named, [] if named else None))
    else:
        words = options.existing_file(tokenizer, "--tokenizer") if tokenizer is not None else None
        image = load_image(shipped.find(model, "--model"), words)
        used = ask.of_main(files.main(board).data.decode())
        if used is not None:
            used += ask.of_layers(image.codecs or ())
        wish = Wish(board, app, image.data, mpy=mpy, place=place, parts=_parts(named, used))
        if kv_count:
            _check_story(board, image, kv_count)
    wish = replace(wish, kv_count=kv_count, kv_anew=kv_anew)
    if dry_run and nothing_there(port):
        options.no_effect("no board is connected that could be another one", "force")
        if place == "romfs":
            raise BadInput("--model-in romfs: no board is connected that could have a partition; leave it")
        deployment = Deployment(None, expected(board), wish)
        plan.check_room(deployment.plan)
        _tell({**deployment.figures(), "dry_run": True}, json_path)
        if port:
            output.notes([f"--port {port}: no such port, which only a --dry-run does without"])
        return
    with connected(port) as link:
        found = identify(board, link, force)
        with output.waiting("Looking at what the board has ..."):
            deployment = Deployment(link, found, wish)
        if dry_run:
            plan.check_room(deployment.plan)
        else:
            with output.progress("Copying", deployment.bytes_to_write) as done:
                deployment.run(done)
        figures = {**deployment.figures(), "dry_run": dry_run}
    _tell(figures, json_path)


def _kv_count(size: int | None) -> int:
    """Files of a flash log of that size. BadInput."""
    from kvlab.deploy import kv_files

    if size is None:
        options.no_effect("needs --kv-flash", "kv_anew")
        return 0
    return kv_files.check_size(size)


def _check_story(board: Board, image: Image, kv_count: int) -> None:
    """BadInput where a flash log in so many files is too small for the story of the board's main.py."""
    from kvlab import resets, story
    from kvlab.deploy import files, kv_files

    said = ask.said_by_main(files.main(board).data.decode())
    told = {name: said[name] for name in ("window", "sinks", "codec") if said.get(name) is not None}
    telling = story.with_sinks(story.Telling(**told), image.data)
    usual = min(story.usual_window(board), image.config.seq_len)
    window = usual if telling.window is None else telling.window
    need = resets.smallest_bytes(image, telling, window)
    size = kv_count * kv_files.BLOCK
    if need > size:
        raise BadInput(
            f"--kv-flash {size}: too small for the story of boards/{board.name}/main.py: the smallest that"
            f" works with a window of {window:,} is {need}; or name a smaller window there, or --app none"
        )


def _tell(figures: dict[str, Any], json_path: Path | None) -> None:
    show(figures)
    if json_path is not None:
        output.write_json(json_path, figures, port=figures["port"])


def identify(board: Board, link: Link, force: bool) -> Identity:
    """Make sure that it is `board`, and reset it: its heap is then empty, and main.py does not run."""
    from kvlab.deploy import identity

    found = identity.ask(link)
    wrong = identity.mismatch(board, found)
    if not wrong:
        link.soft_reset()
    elif force:
        click.echo(f"kvlab: warning: --board {board.name} {wrong}", err=True)
    else:
        raise BadInput(f"--board {board.name} {wrong}; --force copies all the same")
    return found


# Of the model, by figure model_in.
_PLACES = {
    "romfs": "in the ROMFS partition, read where it lies",
    "flash": "in flash already, before the file system, read where it lies",
    "file": "a file",
}


def show(f: dict[str, Any]) -> None:
    """What was done, or would be, and how to go on."""
    would = "would be " if f["dry_run"] else ""
    place = _PLACES.get(f["model_in"], "")
    board = f"{f['machine']}, MicroPython {f['micropython']}, {f['port']}"
    if f["port"] is None:
        board = f"{f['board']}: none is connected, so as to an empty one"
    model = "" if f["model_in"] is None else " with the model"
    rows = [
        ("board", board),
        (f"{would}copied", f"{len(f['copied'])} files, {output.size(f['copied_bytes'])}{model}"),
        ("unchanged", f"{len(f['unchanged'])} files"),
        (f"{would}removed", f"{len(f['removed'])} files of ours that are no more"),
        *([("model", f"{output.size(f['model_bytes'])}, {place}")] if model else []),
        ("parts", f["parts"] if isinstance(f["parts"], str) else ", ".join(f["parts"])),
        (
            "all of it",
            f"{f['files']} files, {output.size(f['bytes'])}: {f['blocks']} blocks of {f['block_bytes']:,}"
            f" bytes, {f['folder_blocks']} of them of folders",
        ),
        *_kv_rows(f["kv_flash"], would),
        ("file system", f"{output.size(f['free_bytes'])} free before, {f['free_blocks']} blocks"),
    ]
    if f["kept_main"]:
        rows.append(("main.py", f"the one that was there {would or 'is '}kept as {f['kept_main']}"))
    output.table("", rows)
    if f["dry_run"]:
        for part, one in f["by_part"].items():
            click.echo(
                f"  part    {part}: {one['files']} files, {output.size(one['bytes'])}, {one['blocks']} blocks"
            )
        for entry in f["copied"]:
            click.echo(f"  copy    {entry['path']}, {output.size(entry['bytes'])}")
        for path in f["removed"]:
            click.echo(f"  remove  {path}")
    else:
        how = "Watch it" if model else "Use it"
        then = "Ctrl-D starts main.py" if model else "import mpy_kv"
        click.echo(f"{how}: mpremote connect {f['port']} repl, then {then}")
    _show_in_flash(f)
    if f["kv_flash"] is not None and not f["kv_flash"]["log_read"]:
        click.echo(
            f"kvlab: warning: --kv-flash: the log on the board is of version {f['kv_flash']['log_version']},"
            " which this mpy_kv refuses: --kv-anew makes its files anew, and what it has kept is lost",
            err=True,
        )


def _kv_rows(kv: dict[str, Any] | None, would: str) -> list[tuple[str, str]]:
    """Of the files of a flash log."""
    if kv is None:
        return []
    said = f"{kv['files']} files of 4,096 bytes, {kv['made']} {would or 'were '}made"
    if kv["log_version"] is not None:
        said += f"; the log that is there is kept, of version {kv['log_version']}"
    elif kv["kept"]:
        said += f", {kv['kept']} were there"
    if kv["removed"]:
        said += f", {kv['removed']} {would or 'were '}removed"
    return [("flash log", said)]


def _show_in_flash(f: dict[str, Any]) -> None:
    """What lies in flash before the file system, and which model is taken."""
    taken = f["model_taken"] != "flash"
    for image in f["in_flash"]:
        which = "this model" if image["this_model"] else "another model"
        if not image["readable"]:
            which = "of another format" if image["whole"] else "damaged"
        use = ""
        if image["readable"] and not taken:
            taken, use = True, ": the app takes it"
        click.echo(f"In flash at {image['address']:#010x}, {output.size(image['bytes'])}, {which}{use}")
        if use and not image["this_model"]:
            click.echo(
                "kvlab: warning: --model: the app takes the other model that lies in flash, not this one; put"
                " this one there (kvlab convert --uf2), nearer to the file system or over it",
                err=True,
            )
