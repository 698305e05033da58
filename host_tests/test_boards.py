"""Boards: every fact has a source, the facts agree, bad files are refused by the place."""

import json

import pytest

from kvlab import boards
from kvlab.errors import BadInput
from kvlab.paths import BOARDS


def test_the_boards_of_this_release():
    assert boards.names() == ["esp32s3", "rp2040"]


@pytest.mark.parametrize("name", boards.names())
def test_every_board_loads_and_says_where_it_has_its_facts_from(name):
    board = boards.load(name)
    assert board.name == name
    assert all(len(fact.source) > 8 for fact in board.facts.values())
    assert (BOARDS / name / "README.md").is_file()
    assert (BOARDS / name / "main.py").is_file()


def test_derived_facts_show_their_sum():
    for name in boards.names():
        for key, fact in boards.load(name).facts.items():
            assert fact.kind != "derived" or fact.note, f"{name}: {key}"


def test_the_pico_is_the_pico():
    pico = boards.load("rp2040")
    assert pico.machine.heap_bytes == 239_776
    assert pico.machine.largest_object_bytes == 236_032
    assert pico.machine.clock_hz == 125_000_000
    assert pico.machine.flash_bytes == 1408 * 1024
    assert pico.memory_mapped_flash


def test_the_esp32s3_has_no_psram_and_no_mapped_flash():
    s3 = boards.load("esp32s3")
    assert s3.machine.heap_bytes < 512 * 1024
    assert s3.machine.split_heap
    assert not s3.memory_mapped_flash
    assert s3.machine.partition.label == "vfs"


@pytest.mark.parametrize(
    ("asked", "hint"), [("rp2400", 'did you mean "rp2040"'), ("xyz", "boards: esp32s3, rp2040")]
)
def test_unknown_board(asked, hint):
    with pytest.raises(BadInput, match=hint):
        boards.load(asked)


def test_a_path_is_no_board_name():
    with pytest.raises(BadInput):
        boards.load("../boards/rp2040")


def pico_with(tmp_path, change):
    """The Pico's file with one change, in a folder of the right name."""
    data = json.loads((BOARDS / "rp2040" / "board.json").read_text())
    change(data)
    path = tmp_path / "rp2040" / "board.json"
    path.parent.mkdir()
    path.write_text(json.dumps(data))
    return path


def set_value(section, key, value):
    def change(data):
        data[section][key]["value"] = value

    return change


def test_an_unchanged_copy_is_read(tmp_path):
    assert boards.read(pico_with(tmp_path, lambda data: None)) == boards.load("rp2040")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (set_value("memory", "heap_bytes", 0), "memory.heap_bytes.value"),
        (set_value("memory", "heap_bytes", -5), "memory.heap_bytes.value"),
        (set_value("memory", "heap_bytes", "many"), "memory.heap_bytes.value"),
        (set_value("memory", "heap_bytes", 1e12), "memory.heap_bytes.value"),
        (
            set_value("memory", "heap_bytes", 300_000),
            "memory.heap_bytes 300,000 is more than memory.sram_bytes",
        ),
        (
            set_value("memory", "largest_object_bytes", 240_000),
            "largest_object_bytes 240,000 is more than",
        ),
        (set_value("cpu", "clock_hz", 125), "cpu.clock_hz.value"),
        (set_value("cpu", "clock_hz", 300_000_000), "cpu.clock_hz 300,000,000 is more than"),
        (
            set_value("flash", "storage_bytes", 4 << 20),
            "flash.storage_bytes 4,194,304 is more than",
        ),
        (set_value("flash", "storage_bytes", 4097), "no multiple of flash.erase_bytes"),
        (set_value("flash", "program_bytes", 100), "no multiple of flash.program_bytes"),
        (
            lambda data: data["memory"]["heap_bytes"].pop("source"),
            "'source' is a required property",
        ),
        (lambda data: data["memory"]["heap_bytes"].update(kind="guess"), "memory.heap_bytes.kind"),
        (lambda data: data["memory"].pop("heap_bytes"), "'heap_bytes' is a required property"),
        (lambda data: data.update(port="stm32"), "port"),
        (lambda data: data.update(port="esp32"), "flash.partition belongs to esp32 boards"),
        (lambda data: data.update(name="pico"), 'name "pico" is not that of its folder'),
        (lambda data: data.update(colour="green"), "colour"),
    ],
)
def test_a_wrong_file_is_refused_by_the_place_in_it(tmp_path, change, named):
    with pytest.raises(BadInput) as refused:
        boards.read(pico_with(tmp_path, change))
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_json(tmp_path):
    path = tmp_path / "board.json"
    path.write_text("{")
    with pytest.raises(BadInput, match="not readable as JSON"):
        boards.read(path)
