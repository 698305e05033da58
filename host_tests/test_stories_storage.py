"""Where the stories app finds its model: ROMFS, the flash between firmware and storage, the storage, a file.

The cases run under CPython, with stand-ins for `rp2` and `uctypes` over a flash of a Pico that a model of its
boot loader has written; some of them on the emulated board too, whose stand-ins are the emulator's.
"""

import random
import sys
import types

import pytest
import qemu_fixtures
import stories_cases  # noqa: F401  (puts boards/apps on the path)
import tiny_model
from boot_roms import FLASH, Rp2040
from stories import storage
from stories.errors import ImageError
from stories.image import Image
from stories_fixtures import patched, tiny

from kvlab import boards, cli, flash_gap, uf2
from kvlab.models.load import load_image
from kvlab.paths import BOARDS
from qemu_port import launcher as qemu
from unix_port import launcher
from unix_port.launcher import FlashFile

AT = 655_360
CHIP = 2 << 20


class Pico:
    """Its flash, as Python sees it, and the folder it stands in."""

    def __init__(self, monkeypatch, folder):
        self.flash = bytearray(b"\xff" * CHIP)
        self.flash[:339_544] = random.Random(1).randbytes(339_544)
        rp2 = types.SimpleNamespace(Flash=self._storage)
        uctypes = types.SimpleNamespace(addressof=self._addressof, bytearray_at=self._bytearray_at)
        monkeypatch.setitem(sys.modules, "rp2", rp2)
        monkeypatch.setitem(sys.modules, "uctypes", uctypes)
        monkeypatch.chdir(folder)

    def put(self, data, at):
        """As the boot loader does it, at an offset of the flash."""
        Rp2040(self.flash).drop(uf2.made(data, FLASH + at, uf2.RP2040))

    def _storage(self):
        return bytes(self.flash[AT:])

    def _addressof(self, view):
        assert len(view) == CHIP - AT
        return FLASH + AT

    def _bytearray_at(self, at, size):
        """What a board maps; it would stop at an address that is none."""
        assert at >= FLASH
        assert at + size <= FLASH + (AT if at < FLASH + AT else CHIP)
        return self.flash[at - FLASH : at - FLASH + size]


@pytest.fixture
def pico(monkeypatch, tmp_path):
    return Pico(monkeypatch, tmp_path)


@pytest.fixture
def file(tmp_path):
    """A model as a file, the last resort."""
    (tmp_path / "model.mkvm").write_bytes(tiny()[2])


def crc_of(data):
    return Image(data).crc32


# --- which is taken ----------------------------------------------------------------------------


def test_the_nearest_to_the_storage_then_the_storage_then_the_file(pico, file, capsys):
    data = tiny()[2]
    assert storage.find() == "model.mkvm"
    pico.flash[AT + 7 * 4096 : AT + 7 * 4096 + len(data)] = data
    found = storage.find()
    assert (len(found.buffer), found.crc32) == (CHIP - AT - 7 * 4096, crc_of(data))
    pico.put(data, 100 * 4096)
    assert len(storage.find().buffer) == AT - 100 * 4096
    pico.put(data, 120 * 4096)
    assert len(storage.find().buffer) == AT - 120 * 4096
    place = flash_gap.place(flash_gap.of_board(boards.load("rp2040")), len(data), high=True)
    Rp2040(pico.flash).drop(place.uf2(data))
    assert len(storage.find().buffer) == FLASH + AT - place.address
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("block", [83, 159])
def test_at_either_end_of_the_gap(pico, block):
    """Right behind the firmware of 1.28, and in the last block."""
    data = tiny()[2][:4096] if block == 159 else tiny()[2]
    pico.put(data, block * 4096)
    if block == 83:
        assert storage.find().crc32 == crc_of(data)
    else:
        with pytest.raises(ImageError, match=r"flash at 0x1009f000: model is cut short: 4096 of"):
            storage.find()


def test_romfs_comes_first(pico, file, monkeypatch):
    pico.put(tiny()[2], 100 * 4096)
    monkeypatch.setattr(storage, "readable", lambda path: path == "/rom/model.mkvm")
    assert storage.find() == "/rom/model.mkvm"


def test_an_image_that_lies_off_a_block_is_not_looked_for(pico, file):
    data = tiny()[2]
    pico.flash[100 * 4096 + 256 : 100 * 4096 + 256 + len(data)] = data
    assert storage.find() == "model.mkvm"


@pytest.mark.parametrize("lacks", ["rp2", "a view"])
def test_without_a_view_of_the_flash_the_file_is_taken(pico, file, monkeypatch, lacks):
    """Another port; firmware before 1.25."""
    pico.put(tiny()[2], 100 * 4096)
    monkeypatch.setitem(sys.modules, "rp2", None if lacks == "rp2" else types.SimpleNamespace(Flash=object))
    assert storage.find() == "model.mkvm"


# --- what is refused ---------------------------------------------------------------------------


def refused(pico, capsys, block=100):
    """The reason; the file is taken."""
    assert storage.find() == "model.mkvm"
    said = capsys.readouterr().err
    begin = f"stories: not taken: flash at {FLASH + block * 4096:#x}: "
    assert said.startswith(begin)
    assert said.count("\n") == 1
    return said.removeprefix(begin).strip()


def test_a_torn_image_is_refused_wherever_the_copy_stopped(pico, file, capsys):
    """Old content shows through, or erased flash. Without its first block there is no image at all."""
    data = tiny()[2]
    blocks = -(-len(data) // 256)
    drop = uf2.made(data, FLASH + 100 * 4096, uf2.RP2040)
    for old in (b"\xff", b"\x00", b"\x5a"):
        for count in sorted({0, 1, 2, 15, 16, 17, blocks // 2, blocks - 1}):
            pico.flash[100 * 4096 : 140 * 4096] = old * (40 * 4096)
            Rp2040(pico.flash).drop(drop, range(count))
            if count:
                said = refused(pico, capsys)
                assert any(word in said for word in ("checksum", "must be", "tensor", "tokenizer")), said
            else:
                assert storage.find() == "model.mkvm"
        pico.flash[100 * 4096 : 140 * 4096] = old * (40 * 4096)
        Rp2040(pico.flash).drop(drop, range(1, blocks))
        assert storage.find() == "model.mkvm"
        assert capsys.readouterr().err == ""


def test_an_image_overwritten_by_larger_firmware_is_refused(pico, file, capsys):
    data = tiny()[2]
    pico.put(data, 100 * 4096)
    pico.put(b"\xa5" * (101 * 4096), 0)  # its first block is gone: none is found
    assert storage.find() == "model.mkvm"
    assert capsys.readouterr().err == ""


def tear(pico, capsys, count, old):
    """A copy that stopped after so many blocks, over a flash full of `old`: refused."""
    data = tiny()[2]
    drop = uf2.made(data, FLASH + 100 * 4096, uf2.RP2040)
    pico.flash[100 * 4096 : 140 * 4096] = old * (40 * 4096)
    Rp2040(pico.flash).drop(drop, range(count))
    refused(pico, capsys)


@pytest.mark.exhaustive
@pytest.mark.parametrize("old", [b"\xff", b"\x00", b"\x5a"], ids=["erased", "zeros", "other"])
def test_a_torn_image_is_refused_after_every_block(pico, file, capsys, old):
    for count in range(1, -(-len(tiny()[2]) // 256)):
        tear(pico, capsys, count, old)


def test_any_bit_of_a_header_that_is_flipped_is_found(pico, file, capsys):
    """In the magic there is no image any more; elsewhere it is refused."""
    data = tiny()[2]
    pico.put(data, 100 * 4096)
    for bit in range(8 * 96):
        at = 100 * 4096 + bit // 8
        pico.flash[at] ^= 1 << bit % 8
        assert storage.find() == "model.mkvm"
        assert bool(capsys.readouterr().err) == (bit >= 32)
        pico.flash[at] ^= 1 << bit % 8
    assert storage.find() != "model.mkvm"


@pytest.mark.parametrize("bit", [0, 77, 2024])
def test_a_damaged_image_is_refused(pico, file, capsys, bit):
    data = bytearray(tiny()[2])
    data[-1 - bit // 8] ^= 1 << bit % 8
    pico.put(bytes(data), 100 * 4096)
    assert "the model is damaged, copy it again" in refused(pico, capsys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((4, "H", 2), "board image of format 2 with a header of 96 bytes; this program reads format 1"),
        ((8, "I", 400_000), "model is cut short: 245760 of 400000 bytes"),
        ((24, "H", 0), "layers is 0, must be 1..1024"),
    ],
)
def test_a_foreign_image_is_refused(pico, file, capsys, change, message):
    pico.put(patched(tiny()[2], *change), 100 * 4096)
    assert message in refused(pico, capsys)


def test_one_behind_a_refused_one_is_taken(pico, file, capsys):
    data = tiny()[2]
    pico.put(data, 90 * 4096)
    pico.put(data[:-1] + bytes([data[-1] ^ 1]), 120 * 4096)
    assert len(storage.find().buffer) == AT - 90 * 4096
    assert "not taken: flash at 0x10078000: checksum" in capsys.readouterr().err


def test_without_a_file_the_reason_is_the_error(pico, capsys):
    pico.put(tiny()[2][:-256], 100 * 4096)
    with pytest.raises(ImageError, match="flash at 0x10064000: checksum"):
        storage.find()


def test_blocks_of_a_file_system_that_begin_like_an_image_are_not_told(pico, file, capsys):
    """A file of a littlefs begins with its own bytes: in the storage that is no image that was refused."""
    pico.flash[AT + 4096 : AT + 4096 + 4096] = tiny()[2][:4096]
    assert storage.find() == "model.mkvm"
    assert capsys.readouterr().err == ""


# --- the emulated board ------------------------------------------------------------------------


PICO = boards.load("rp2040").machine


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model.write_tiny(tmp_path_factory.mktemp("model"), seq_len=256)[0]


def test_the_pico_tells_from_what_convert_puts_into_its_flash(model, tmp_path, capfd):
    """What --flash lays there as a boot loader does; nothing is allocated a token."""
    drop, image = tmp_path / "tiny.uf2", load_image(model).data
    place = flash_gap.place(flash_gap.of_board(boards.load("rp2040")), len(image), high=True)
    drop.write_bytes(place.uf2(image))
    program = str(BOARDS / "rp2040" / "main.py")
    assert cli.main(["emulate", program, "--compiled", "--flash", str(drop), "--", "--tokens", "9"]) == 0
    said = capfd.readouterr()
    assert "# tokens: 9\n" in said.out
    assert "# alloc_bytes: 0\n" in said.out
    assert "not taken" not in said.err


# Memory-mapped flash of that machine, of which this stand-in for `rp2` calls the last 16 blocks storage.
ON_32_BITS = """
import sys
from uctypes import addressof, bytearray_at
class Rp2:
    @staticmethod
    def Flash():
        return memoryview(bytearray_at(0x21000000 + 336 * 4096, 16 * 4096))
sys.modules["rp2"] = Rp2
from stories import main, storage
image = storage.find()
print("%x" % addressof(image.buffer), image.total_bytes, len(image.buffer) - (336 - 100) * 4096)
main(model=image, tokens=3, greedy=True)
"""


def test_on_32_bits(model, tmp_path):
    """Addresses are small numbers there too; the nearer image is cut short."""
    qemu_fixtures.needed_by("qemu_arm")
    image = load_image(model).data
    (tmp_path / "script.py").write_text(ON_32_BITS)
    files = [FlashFile(image[:-256], 200 * 4096), FlashFile(image, 100 * 4096)]
    machine = boards.load("qemu_arm").machine
    report = qemu.emulate(tmp_path / "script.py", [], machine, flash=files, compiled=True, timeout_s=60)
    assert report.outcome == "ok", report.stderr
    said, found, *_ = report.stdout.splitlines()  # a board has one line for all
    assert said.startswith("stories: not taken: flash at 0x210c8000: checksum")
    assert found == f"21064000 {len(image)} 0"
    assert "# tokens: 3\n" in report.stdout


def test_flash_takes_a_uf2_file_of_a_pico_only(model, tmp_path, kvlab):
    drop = tmp_path / "x.UF2"
    drop.write_bytes(uf2.made(b"x", FLASH + 4096, uf2.ABSOLUTE))
    for board, message in (("rp2040", "is for another chip, RP2 family"), ("esp32", "takes no UF2 file")):
        status, _, err = kvlab("emulate", BOARDS / board / "main.py", "--board", board, "--flash", drop)
        assert status == 2
        assert message in err
        assert err.count("\n") == 1


def test_the_pico_says_why_it_takes_the_storage(model):
    image = load_image(model).data
    files = [FlashFile(image[:-256], -40 * 4096), FlashFile(image, 3 * 4096)]
    words = ["--tokens", 2]
    report = launcher.emulate(
        BOARDS / "rp2040" / "main.py", words, PICO, flash=files, compiled=True, timeout_s=60
    )
    assert report.outcome == "ok", report.stderr
    assert "stories: not taken: flash at 0x10078000: checksum" in report.stderr
    assert "# tokens: 2\n" in report.stdout
