"""kvlab stories --firmware: UF2 images, the littlefs that goes with one, the emulator, and, where KVLAB_UF2
names an image of MicroPython for the Pico, a story on it."""

import asyncio
import importlib.util
import os
import struct
from pathlib import Path

import pytest
from fetched import extra
from pty_board import PtyBoard
from tiny_model import write_tiny

from commandline.errors import BadInput, FellShort
from kvlab import boards, rp2040, uf2
from kvlab.deploy import files
from kvlab.deploy.deployment import Deployment, Wish
from kvlab.deploy.identity import ask
from kvlab.deploy.link import connected
from kvlab.deploy.remote import Remote
from kvlab.models.load import load_image

CHIP_BYTES = 2 << 20
RP2350 = 0xE48BFF59

# ldr r0, =UART0; movs r1, 'K'; str r1, [r0]; adds r2, 1; branch back to the add
PROGRAM = struct.pack("<8HI", 0x4803, 0x214B, 0x6001, 0x3201, 0xE7FD, 0xBF00, 0xBF00, 0xBF00, 0x40034000)


def block(index, count, data=b"\1" * 256, at=None, family=uf2.RP2040, flags=0x2000, magic=0x0A324655):
    address = uf2.FLASH_AT + 256 * index if at is None else at
    head = struct.pack("<8I", magic, 0x9E5D5157, flags, address, len(data), index, count, family)
    return head + data.ljust(476, b"\0")[:476] + struct.pack("<I", 0x0AB16F30)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return load_image(write_tiny(tmp_path_factory.mktemp("tiny"))[0]).data


# Reading


def test_a_good_image():
    raw = block(1, 3, b"b" * 256) + block(0, 3, b"a" * 256) + block(2, 3, b"d" * 100, at=uf2.FLASH_AT + 768)
    read = uf2.parse(raw, CHIP_BYTES)
    assert read.data == b"a" * 256 + b"b" * 256 + b"\xff" * 256 + b"d" * 100
    assert (read.family, read.blocks) == (uf2.RP2040, 3)


def test_blocks_that_are_not_for_the_flash_are_passed_over():
    raw = block(0, 2) + block(1, 2, at=0, flags=0x2001)
    assert uf2.parse(raw, CHIP_BYTES).data == b"\1" * 256


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "0 bytes are no whole number of blocks of 512: cut short"),
        (block(0, 1)[:-1], "511 bytes are no whole number"),
        pytest.param(block(0, 1, magic=0x12345678), "block 0 is none of a UF2 file", id="first magic"),
        pytest.param(block(0, 1)[:-1] + b"!", "block 0 is none of a UF2 file", id="last magic"),
        (block(0, 1, family=RP2350), r"for another chip, RP2350 \(Arm\); take the image of an RP2040"),
        (block(0, 1, family=0x12345678), "for another chip, family 0x12345678"),
        (block(0, 2), "block 0 says it is 0 of 2, in a file of 1"),
        (block(0, 2) + block(0, 2), "block 1 says it is 0 of 2"),
        (block(0, 2) + block(2, 2), "block 1 says it is 2 of 2"),
        (block(0, 1, b""), "block 0 has 0 bytes, 1..476"),
        (block(0, 1, b"x" * 500), "block 0 has 500 bytes"),
        (block(0, 1, at=0x20000000), "block 0 lies at 0x20000000, outside of the flash"),
        (block(0, 1, at=uf2.FLASH_AT + CHIP_BYTES - 255), "outside of the flash"),
        (block(0, 2) + block(1, 2, at=uf2.FLASH_AT + 255), "two blocks overlap at 0x100000ff"),
        (block(0, 1, flags=0x2001), "holds nothing for the flash"),
    ],
)
def test_a_bad_image_is_refused_by_what_is_wrong(raw, message):
    with pytest.raises(ValueError, match=message):
        uf2.parse(raw, CHIP_BYTES)


# The file system


@extra("littlefs")
def test_the_file_system_is_what_micropython_mounts(tmp_path, image):
    """On MicroPython itself: every file of a deployment is there, whole, and the rest is free."""
    board = boards.load("rp2040")
    made = rp2040.file_system(board, image)
    assert len(made) == board.machine.flash_bytes
    (tmp_path / "flash.img").write_bytes(made)
    wanted = files.modules("stories", rp2040.EXPECTED, True)
    wanted += [files.File(files.MODEL, image), files.main(board)]
    with PtyBoard(tmp_path / "flash.img") as unix, connected(unix.port) as link:
        remote = Remote(link)
        seen = remote.survey([file.path for file in wanted])
        assert all(seen[file.path].holds(file.data) for file in wanted)
        assert set(remote.walk("lib")) == {file.path for file in wanted if file.path.startswith("lib/")}
        assert remote.space().free_bytes > 32 * 1024  # beside all parts
    assert "lib/mpy_kv/kernels/viper.mpy" in seen


@extra("littlefs")
def test_a_model_that_does_not_fit(image):
    with pytest.raises(FellShort, match="does not fit: the model has 1,600,000 bytes"):
        rp2040.file_system(boards.load("rp2040"), bytes(1_600_000))


# Telling over the line, with the unix port at its other end


def test_a_story_over_the_line(tmp_path, image):
    options = {"tokens": 6, "greedy": True, "window": None, "prompt": ""}
    seen = []
    with PtyBoard(tmp_path / "flash.img") as unix, connected(unix.port) as link:
        wish = Wish(boards.load("rp2040"), "stories", image, parts=("core", "int8"))
        Deployment(link, ask(link), wish).run(lambda _: None)
        figures = rp2040.tell_over(link, options, seen.append)
        with pytest.raises(BadInput, match="window"):
            rp2040.tell_over(link, {"window": 100000}, seen.append)
    assert (figures["tokens"], figures["alloc_bytes"]) == (6, 0)
    assert len(seen) > 1
    assert "tokens" not in "".join(seen)


# The emulator


@extra("rp2040py")
def test_the_emulator_runs_the_program_of_an_image(tmp_path):
    """What rp2040py makes of an image made by hand: its program writes to the UART."""
    from rp2040py.device.load_flash import load_uf2
    from rp2040py.simulator import Simulator

    path = tmp_path / "program.uf2"
    path.write_bytes(block(0, 1, PROGRAM.ljust(256, b"\0")))
    assert uf2.read(path, CHIP_BYTES).data.startswith(PROGRAM)

    async def first_byte():
        simulator = Simulator()
        load_uf2(path, simulator.rp2040)
        seen = asyncio.get_running_loop().create_future()
        simulator.rp2040.uart[0].on_byte = seen.set_result
        simulator.rp2040.core.pc = uf2.FLASH_AT
        simulator.bind_loop()
        simulator.start_execution()
        try:
            return await asyncio.wait_for(seen, 30)
        finally:
            simulator.stop()

    assert asyncio.run(first_byte()) == ord("K")


@extra("rp2040py")
@extra("littlefs")
def test_firmware_that_is_no_micropython_is_given_up(tmp_path, image, monkeypatch):
    from kvlab.deploy import link

    monkeypatch.setattr(link, "CONNECT_TIMEOUT_S", 0.2)
    path = tmp_path / "program.uf2"
    path.write_bytes(block(0, 1, PROGRAM.ljust(256, b"\0")))
    with pytest.raises(FellShort, match=r"no MicroPython comes up within 0.1 s of the emulator"):
        rp2040.tell(boards.load("rp2040"), path, image, {}, print, boot_timeout_s=0.1)


@extra("rp2040py")
@extra("littlefs")
def test_firmware_larger_than_its_room_is_refused(tmp_path, image):
    path = tmp_path / "large.uf2"
    path.write_bytes(block(0, 1, at=uf2.FLASH_AT + 640 * 1024 - 128))
    with pytest.raises(BadInput, match="ends 128 bytes inside the file system of Raspberry Pi Pico"):
        rp2040.tell(boards.load("rp2040"), path, image, {}, print)


# The command


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny"))[0]


def test_without_the_extra_it_says_how_to_get_it(kvlab, model, tmp_path, monkeypatch):
    path = tmp_path / "program.uf2"
    path.write_bytes(block(0, 1))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    status, _, err = kvlab("stories", "--model", model, "--firmware", path)
    assert status == 2
    assert "--firmware: no rp2040py and no littlefs here; pip install -e '.[rp2040]'" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--firmware", "no-such.uf2"], "--firmware no-such.uf2: no such file"),
        (["--firmware", __file__, "--board", "esp32"], "the emulator of --firmware is an RP2040"),
        (["--firmware", __file__, "--peak"], "--peak: real firmware has one heap"),
        pytest.param(
            ["--firmware", __file__],
            "bytes are no whole number of blocks of 512",
            marks=[extra("rp2040py"), extra("littlefs")],
        ),
    ],
)
def test_what_cannot_be_is_refused(kvlab, model, options, message):
    status, _, err = kvlab("stories", "--model", model, *options)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
@extra("rp2040py")
@extra("littlefs")
@pytest.mark.skipif("KVLAB_UF2" not in os.environ, reason="KVLAB_UF2 names no UF2 image for the Pico")
def test_a_story_on_real_firmware(image):
    board = boards.load("rp2040")
    seen = []
    options = {"tokens": 3, "greedy": True, "window": 16}
    told = rp2040.tell(board, Path(os.environ["KVLAB_UF2"]), image, options, seen.append)
    assert (told["tokens"], told["window"]) == (3, 16)
    assert told["kernels"] != "plain"
    assert "".join(seen).strip()
