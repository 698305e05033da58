"""kvlab convert --uf2: an image between firmware and storage, through models of the boot loaders."""

import json
import random
import struct

import pytest
from boot_roms import FLASH, Rp2040, Rp2350
from tiny_model import write_tiny

from commandline.errors import FellShort
from kvlab import boards, flash_gap, uf2

STORAGE = {"rp2040": 655_360, "rp2350": 1_048_576}
CHIP = {"rp2040": 2 << 20, "rp2350": 4 << 20}
ROM = {"rp2040": Rp2040, "rp2350": Rp2350}
FAMILY = {"rp2040": 0xE48BFF56, "rp2350": 0xE48BFF57}
BOARDS = pytest.mark.parametrize("name", ["rp2040", "rp2350"])


def block(address, index, count, family, data=b"\1" * 256, flags=0x2000):
    head = struct.pack("<8I", 0x0A324655, 0x9E5D5157, flags, address, len(data), index, count, family)
    return head + data.ljust(476, b"\0") + struct.pack("<I", 0x0AB16F30)


# What picotool puts before an image of an RP2350 (erratum E10): no part of it, and beyond a flash of 4 MiB.
ABSOLUTE = block(0x10FFFF00, 0, 2, 0xE48BFF57, b"\xef" * 256, flags=0xA000)


def firmware(name, size, at=FLASH, fill=0x5A):
    """As a build makes it, of so many bytes."""
    if name == "rp2040":
        return uf2.made(bytes([fill]) * size, at, uf2.RP2040)
    return ABSOLUTE + uf2.made(bytes([fill]) * size, at, uf2.RP2350_ARM)


def dirty(name):
    """A flash full of something old, in which any bit that is not erased shows."""
    return bytearray(random.Random(name).randbytes(CHIP[name]))


def image_of(size):
    return random.Random(size).randbytes(size)


# --- the boot loaders --------------------------------------------------------------------------


@BOARDS
@pytest.mark.parametrize("size", [1, 256, 4095, 4096, 4097, 70_001, 291_328])
@pytest.mark.parametrize("shuffled", [False, True])
def test_firmware_and_image_arrive_and_the_storage_stays(name, size, shuffled):
    """In whatever order the host's file system writes blocks, over whatever was there."""
    flash = dirty(name)
    before = bytes(flash)
    code = firmware(name, 339_544)
    rom = ROM[name](flash)
    rom.drop(code)
    assert rom.reboots == 1
    if name == "rp2350":  # the absolute block of the firmware itself: the chip's last sector
        assert flash[-4096:-256] == b"\xff" * 3840
        before = bytes(flash)
    place = flash_gap.place(flash_gap.of_firmware(boards.load(name), code), size, high=False)
    image = image_of(size)
    drop = place.uf2(image)
    order = list(range(len(drop) // 512))
    if shuffled:
        random.Random(1).shuffle(order)
    rom = ROM[name](flash)
    rom.drop(drop, order)
    assert rom.reboots == 1
    at = place.address - FLASH
    assert at == 339_968
    assert flash[at : at + size] == image
    assert flash[:339_544] == b"\x5a" * 339_544
    assert flash[STORAGE[name] :] == before[STORAGE[name] :]
    # Firmware that is dropped again, or a newer one that is no longer, leaves the image whole.
    ROM[name](flash).drop(firmware(name, 339_900, fill=0x3C))
    assert flash[at : at + size] == image


@BOARDS
def test_a_second_image_over_the_first_is_whole(name):
    flash = dirty(name)
    board = boards.load(name)
    for seed in (1, 2):
        image = random.Random(seed).randbytes(50_000)
        place = flash_gap.place(flash_gap.of_board(board), len(image), high=True)
        ROM[name](flash).drop(place.uf2(image))
        at = place.address - FLASH
        assert flash[at : at + len(image)] == image


def test_an_rp2040_needs_the_begin_of_a_sector():
    """The model finds it: what begins within one is not erased in time, or is erased again."""
    flash = dirty("rp2040")
    image = image_of(20_000)
    Rp2040(flash).drop(uf2.made(image, FLASH + 400_000 // 4096 * 4096 + 256, uf2.RP2040))
    assert image not in flash
    other = dirty("rp2350")
    Rp2350(other).drop(uf2.made(image, FLASH + 400_000 // 4096 * 4096 + 256, uf2.ABSOLUTE))
    assert image in other


@BOARDS
def test_what_a_file_holds(name):
    """Blocks 0..n-1, one page each, of one family; nothing beside the image, the last page filled up."""
    gap = flash_gap.of_board(boards.load(name))
    place = flash_gap.place(gap, 1000, high=True)
    found = uf2.blocks(place.uf2(image_of(1000)))
    assert [each.index for each in found] == [0, 1, 2, 3]
    assert {(each.count, each.family, len(each.data), each.in_flash) for each in found} == {
        (4, FAMILY[name], 256, True)
    }
    assert [each.address for each in found] == [place.address + 256 * i for i in range(4)]
    assert b"".join(each.data for each in found) == image_of(1000) + b"\xff" * 24


# --- the place ---------------------------------------------------------------------------------


def check(name, end, size, place):
    """What no image may do."""
    at = place.address - FLASH
    assert at % 4096 == 0
    assert at >= end
    assert at + -(-size // 4096) * 4096 <= STORAGE[name]  # the boot loaders erase whole sectors
    assert (place.image_bytes, place.free_bytes) == (size, STORAGE[name] - at - size)


@BOARDS
def test_no_image_overlaps_firmware_or_storage(name):
    """Over all ends of firmware, and sizes around every limit; what fits is taken, and nothing else."""
    board = boards.load(name)
    rng = random.Random(name)
    storage = STORAGE[name]
    for end in range(256, storage + 1, 256):
        room = (storage - end) // 4096 * 4096
        gap = flash_gap.behind(board, end)
        for size in {1, room // 2, room - 1, room, room + 1, room + 4096, rng.randrange(1, storage)}:
            for high in (False, True):
                if size > room:
                    with pytest.raises(FellShort):
                        flash_gap.place(gap, size, high=high)
                elif size > 0:
                    check(name, end, size, flash_gap.place(gap, size, high=high))


def random_layout(name, rng):
    """A firmware of random size, an image that just fits, or just not, or anything; through the file."""
    storage = STORAGE[name]
    end = rng.choice((rng.randrange(1, storage), storage - rng.randrange(1, 20_000)))
    code = firmware(name, end)
    if rng.random() < 0.3:  # it brings a file system along, behind a gap
        more = uf2.made(b"\7" * 300, FLASH + storage, 0)
        both = [code[i : i + 512] for i in range(0, len(code), 512)] + [more[:512], more[512:]]
        family = uf2.RP2040 if name == "rp2040" else uf2.RP2350_ARM
        ours = [each for each in both if each != ABSOLUTE]
        code = b"" if name == "rp2040" else ABSOLUTE
        for index, each in enumerate(ours):
            address = struct.unpack_from("<I", each, 12)[0]
            code += block(address, index, len(ours), family, each[32 : 32 + 256])
    end = -(-end // 256) * 256
    room = (storage - end) // 4096 * 4096
    size = rng.choice((max(room, 1), room + 1, max(room - 1, 1), rng.randrange(1, storage)))
    return code, end, room, size


def hold_layout(name, seed):
    code, end, room, size = random_layout(name, random.Random(f"{name} {seed}"))
    board = boards.load(name)
    try:
        place = flash_gap.place(flash_gap.of_firmware(board, code), size, high=False)
    except FellShort:
        assert size > room
        return
    except ValueError:  # its last page touches a file system that came along
        assert end == STORAGE[name]
        return
    assert 0 < size <= room
    check(name, end, size, place)
    taken = {each.address // 4096 for each in uf2.blocks(code)}
    assert not taken & {each.address // 4096 for each in uf2.blocks(place.uf2(bytes(size)))}


@BOARDS
def test_files_of_firmware_keep_their_flash(name):
    for seed in range(12):
        hold_layout(name, seed)


@pytest.mark.exhaustive
@BOARDS
@pytest.mark.parametrize("part", range(8))
def test_files_of_firmware_of_many_sizes_keep_their_flash(name, part):
    for seed in range(1000 + 60 * part, 1060 + 60 * part):
        hold_layout(name, seed)


@BOARDS
def test_without_firmware_it_lies_just_below_the_storage(name):
    gap = flash_gap.of_board(boards.load(name))
    place = flash_gap.place(gap, 291_328, high=True)
    assert place.address == FLASH + STORAGE[name] - 72 * 4096
    assert place.free_bytes == 72 * 4096 - 291_328 < 4096


def test_the_stock_firmware_that_is_known_leaves_room_for_the_model_that_ships():
    """RPI_PICO 1.28 ends at 339,544: 315,392 bytes in whole blocks."""
    gap = flash_gap.of_board(boards.load("rp2040"))
    assert gap.end - gap.start == 315_392
    assert flash_gap.place(gap, 315_392, high=True).address == FLASH + gap.start
    with pytest.raises(FellShort, match="the firmware, which ends at 339,544.* 655,360 there are 315,392 in"):
        flash_gap.place(gap, 315_393, high=True)


# --- firmware files ----------------------------------------------------------------------------


def test_a_file_for_several_chips_is_read_by_family():
    """Each chip's boot loader passes over the others' blocks, whose numbers are their own."""
    both = firmware("rp2040", 100_000) + firmware("rp2350", 300_000)
    assert flash_gap.of_firmware(boards.load("rp2040"), both).firmware_end == 100_096
    assert flash_gap.of_firmware(boards.load("rp2350"), both).firmware_end == 300_032


def test_arm_and_risc_v_in_one_file_count_both():
    for at in (0, 40_960):  # from the same address, of which the boot loader takes one, or each from its own
        code = firmware("rp2350", 5000) + uf2.made(b"r" * 9000, FLASH + at, uf2.RP2350_RISCV)
        assert flash_gap.of_firmware(boards.load("rp2350"), code).firmware_end == at + 9216


def test_absolute_blocks_within_the_chip_count():
    code = firmware("rp2350", 5000) + uf2.made(b"a" * 300, FLASH + 81_920, uf2.ABSOLUTE)
    assert flash_gap.of_firmware(boards.load("rp2350"), code).firmware_end == 81_920 + 512


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("rp2040", b"x" * 100, "100 bytes are no whole number of blocks"),
        ("rp2040", b"x" * 512, "block 0 is none of a UF2 file"),
        (
            "rp2040",
            firmware("rp2350", 300),
            r"for another chip, RP2 family, absolute, RP2350 \(Arm\);.* RPI_PICO",
        ),
        (
            "rp2350",
            firmware("rp2040", 300),
            "for another chip, RP2040; take the image of an RP2350, such as RPI_P",
        ),
        ("rp2040", firmware("rp2040", 600)[:-512], "block 0 says it is 0 of 3, but the file has 2 of RP2040"),
        (
            "rp2350",
            firmware("rp2350", 600)[:-512],
            r"block 1 says it is 0 of 3, but the file has 2 of RP2350 \(A",
        ),
        ("rp2350", ABSOLUTE, "holds nothing for the flash"),
        ("rp2040", firmware("rp2040", 300, FLASH + 700_000), "writes nothing before the file system of Rasp"),
        (
            "rp2040",
            firmware("rp2040", 655_361),
            "ends 256 bytes inside the file system of Raspberry Pi Pico; take",
        ),
        ("rp2040", firmware("rp2040", 900_000), "ends 244,736 bytes inside the file system"),
        ("rp2350", firmware("rp2350", 300, 0x20000000), "block 1 lies at 0x20000000, outside of the flash"),
    ],
)
def test_firmware_that_will_not_do_is_refused_with_its_reason(name, raw, message):
    with pytest.raises(ValueError, match=message):
        flash_gap.of_firmware(boards.load(name), raw)


def declaring(name, storages, size=300_000, list_at=8192, tag=0x504D):
    """A firmware that tells where its block devices begin, in a list of entries of several kinds; the entries
    lie where what is copied to RAM is stored."""
    code = bytearray(b"\x5a" * size)
    entries, stored, ram, table = list_at, 40_960, 0x20001000, 20_480
    struct.pack_into("<5I", code, 0x1D4, 0x7188EBF2, FLASH + entries, 0, FLASH + table, 0xE71AA390)
    struct.pack_into("<4I", code, table, FLASH + stored, ram, ram + 4096, 0)
    pointers = []
    for kind, address in ((5, 0), *((7, each) for each in storages), (6, 0)):
        pointers.append(ram + 32 * len(pointers))
        at = stored + pointers[-1] - ram
        struct.pack_into("<HHIIIIH", code, at, kind, tag, 0, address and FLASH + address, 65_536, 0, 3)
    struct.pack_into(f"<{len(pointers)}I", code, entries, *pointers)
    struct.pack_into("<I", code, 0x1D4 + 8, FLASH + entries + 4 * len(pointers))
    if name == "rp2040":
        return uf2.made(bytes(code), FLASH, uf2.RP2040)
    return ABSOLUTE + uf2.made(bytes(code), FLASH, uf2.RP2350_ARM)


@BOARDS
@pytest.mark.parametrize("storages", [[450_560], [1_228_800], [1_499_136, 798_720]])
def test_the_storage_that_a_firmware_declares_counts(name, storages):
    """That of a Pico W begins later than a Pico's, that of a firmware of one's own perhaps earlier."""
    gap = flash_gap.of_firmware(boards.load(name), declaring(name, storages))
    assert (gap.firmware_end, gap.start, gap.end) == (300_032, 303_104, min(storages))
    place = flash_gap.place(gap, gap.end - gap.start, high=False)
    assert place.free_bytes == 0
    with pytest.raises(FellShort, match=f"at {gap.end:,} there are {gap.end - gap.start:,}"):
        flash_gap.place(gap, gap.end - gap.start + 1, high=False)


def test_firmware_that_ends_in_its_own_storage_is_refused():
    with pytest.raises(ValueError, match="ends 46,080 bytes inside the file system"):
        flash_gap.of_firmware(boards.load("rp2040"), declaring("rp2040", [300_032 - 46_080]))


@pytest.mark.parametrize(
    ("word", "end"),
    [(0, 655_360), (1, 655_360), (2, 450_560), (3, 655_360), (4, 655_360)],
    ids=["first mark", "list", "end of the list", "table", "last mark"],
)
def test_what_cannot_be_followed_declares_nothing(word, end):
    """The board's own layout counts then. A list without an end is read as far as it goes."""
    code = bytearray(declaring("rp2040", [450_560]))
    at = 512 + 32 + 0xD4 + 4 * word  # in the second block
    code[at : at + 4] = b"\0\0\0\x33"
    assert flash_gap.of_firmware(boards.load("rp2040"), bytes(code)).end == end


def test_a_pico_w_takes_its_own_firmware(kvlab, tmp_path, model):
    """Longer than a Pico's storage allows, and it says so."""
    code, figures = tmp_path / "fw.uf2", tmp_path / "f.json"
    code.write_bytes(declaring("rp2040", [1_228_800], 870_000))
    words = ["convert", model, "-o", tmp_path / "t.mkvm", "--uf2", tmp_path / "out.uf2", "--json", figures]
    assert kvlab(*words, "--firmware", code)[0] == 0
    told = json.loads(figures.read_text())
    assert told["address"] == FLASH + 872_448
    assert told["address"] - FLASH + told["bytes"] + told["free_bytes"] == 1_228_800


# --- the command -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny"), seq_len=16)[0]


@BOARDS
def test_convert_writes_the_file_and_says_where_it_comes(kvlab, tmp_path, model, name):
    code, drop, figures = (tmp_path / each for each in ("fw.uf2", "out.uf2", "f.json"))
    code.write_bytes(firmware(name, 300_001))
    words = ["convert", model, "-o", tmp_path / "t.mkvm", "--uf2", drop, "--board", name, "--json", figures]
    status, out, err = kvlab(*words, "--firmware", code)
    assert (status, err) == (0, "")
    image = (tmp_path / "t.mkvm").read_bytes()
    told = json.loads(figures.read_text())
    assert told["address"] == FLASH + 303_104
    assert told["bytes"] == len(image)
    assert told["free_bytes"] == STORAGE[name] - 303_104 - len(image)
    assert f"{told['address']:#010x}" in out
    flash = dirty(name)
    ROM[name](flash).drop(drop.read_bytes())
    assert flash[303_104 : 303_104 + len(image)] == image

    status, out, err = kvlab(*words)
    assert status == 0
    assert (
        "warning: --uf2: without --firmware it comes just below the file system: firmware of more than" in err
    )
    told = json.loads(figures.read_text())
    assert told["address"] == FLASH + (STORAGE[name] - len(image)) // 4096 * 4096
    assert f"{told['address'] - FLASH:,} bytes overwrites it" in err


def test_what_does_not_fit_is_refused_and_nothing_written(kvlab, tmp_path, model):
    code = tmp_path / "fw.uf2"
    code.write_bytes(firmware("rp2040", 655_000))
    words = ["convert", model, "-o", tmp_path / "t.mkvm", "--uf2", tmp_path / "out.uf2", "--firmware", code]
    status, _, err = kvlab(*words)
    assert status == 1
    assert (
        "between the firmware, which ends at 655,104, and the file system of Raspberry Pi Pico at 655" in err
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fw.uf2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--firmware", "x.uf2"], "--firmware: needs --uf2"),
        (["--board", "rp2350"], "--board: needs --uf2"),
        (["--uf2", "out.uf2", "--firmware", "none.uf2"], "--firmware none.uf2: no such file"),
        (["--uf2", "out.uf2", "--firmware", __file__], "bytes are no whole number of blocks"),
        (["--uf2", "out.uf2", "--board", "esp32"], "takes no UF2 file; boards that do: rp2040, rp2350"),
        (["--uf2", "t.mkvm"], "is also written by"),
    ],
)
def test_what_cannot_be_is_refused(kvlab, model, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    status, _, err = kvlab("convert", model, "-o", "t.mkvm", *options)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())
