"""boards/<name>/main.py, as they are, on a tiny model: each tells its story."""

import pytest
import tiny_model

from kvlab import boards, cli
from kvlab.paths import BOARDS
from unix_port import launcher
from unix_port.launcher import FlashFile


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The board image of a tiny random model."""
    folder = tmp_path_factory.mktemp("model")
    checkpoint, _ = tiny_model.write_tiny(folder, seq_len=256)
    assert cli.main(["convert", str(checkpoint), "-o", str(folder / "tiny.mkvm")]) == 0
    return folder / "tiny.mkvm"


def told(report, tokens):
    assert report.outcome == "ok", report.stderr
    assert f"# tokens: {tokens}\n" in report.stdout
    assert "# alloc_bytes: 0\n" in report.stdout
    assert "# kernels: viper\n" in report.stdout


@pytest.mark.parametrize("block", [0, 3, 340])
def test_the_pico_finds_its_model_in_flash(image, block):
    """Anywhere in the storage region, past something that only begins like an image."""
    machine = boards.load("rp2040").machine
    files = [FlashFile(image.read_bytes(), block * 4096)]
    if block:
        files.append(FlashFile(image.read_bytes()[:200]))
    program = BOARDS / "rp2040" / "main.py"
    report = launcher.emulate(program, ["--tokens", 20], machine, flash=files, timeout_s=60)
    told(report, 20)
    assert report.fits


def test_the_pico_without_a_model_says_what_to_do():
    machine = boards.load("rp2040").machine
    report = launcher.emulate(BOARDS / "rp2040" / "main.py", ["--tokens", 20], machine, timeout_s=60)
    assert report.outcome == "failed"
    assert "no model: copy a board image to model.mkvm" in report.stderr


def test_the_pico_says_why_a_model_in_flash_is_refused(image):
    """The last one, where several lie there."""
    damaged = bytearray(image.read_bytes())
    damaged[-20] ^= 1
    files = [FlashFile(image.read_bytes()[:200]), FlashFile(bytes(damaged), 8 * 4096)]
    machine = boards.load("rp2040").machine
    program = BOARDS / "rp2040" / "main.py"
    report = launcher.emulate(program, ["--tokens", 20], machine, flash=files, timeout_s=60)
    assert report.outcome == "failed"
    assert "stories: error: --model: flash at 0x100a8000: checksum" in report.stderr


def test_the_esp32_reads_its_model_from_a_file(image):
    machine = boards.load("esp32s3").machine
    program = BOARDS / "esp32s3" / "main.py"
    # More heap than the board has: compiling from source takes it. Deployed files are compiled.
    report = launcher.emulate(
        program, ["--model", image, "--tokens", 20], machine, heap_bytes=320 * 1024, timeout_s=60
    )
    told(report, 20)
    assert report.clock_hz == 240_000_000


def test_a_board_takes_a_model_trained_for_less_than_its_window(tmp_path):
    """The window of main.py is the most the board has room for, not a demand on the model."""
    checkpoint, _ = tiny_model.write_tiny(tmp_path, seq_len=20)
    assert cli.main(["convert", str(checkpoint), "-o", str(tmp_path / "tiny.mkvm")]) == 0
    program = BOARDS / "esp32c3" / "main.py"
    arguments = ["--model", tmp_path / "tiny.mkvm", "--tokens", 30]
    report = launcher.emulate(program, arguments, boards.load("esp32c3").machine, compiled=True, timeout_s=60)
    told(report, 30)
    assert "# window: 16\n" in report.stdout


@pytest.mark.parametrize(
    ("freq", "clock_hz"), [("None", 125_000_000), ("133_000_000", 133_000_000), ("200_000_000", 200_000_000)]
)
def test_main_py_sets_the_clock(tmp_path, image, freq, clock_hz):
    text = (BOARDS / "rp2040" / "main.py").read_text()
    program = tmp_path / "main.py"
    program.write_text(text.replace("FREQ = None", f"FREQ = {freq}"))
    machine = boards.load("rp2040").machine
    files = [FlashFile(image.read_bytes())]
    report = launcher.emulate(program, ["--tokens", 2], machine, compiled=True, flash=files, timeout_s=60)
    told(report, 2)
    assert report.clock_hz == clock_hz


def test_more_than_is_certified_is_refused_in_one_line(image):
    machine = boards.load("rp2040").machine
    program = BOARDS / "rp2040" / "main.py"
    report = launcher.emulate(program, ["--freq", 250_000_000], machine, compiled=True, timeout_s=60)
    assert report.outcome == "failed"
    assert report.stderr == "stories: error: --freq 250000000: an RP2040 is certified for 200000000\n"
    assert report.clock_hz == 125_000_000
