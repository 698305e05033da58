"""Boards: every fact has a source, the facts agree, bad files are refused by the place."""

import json
import re

import pytest
import qemu_fixtures
from tiny_model import write_tiny

from commandline.errors import BadInput
from kvlab import boards, cli
from kvlab.paths import BOARDS

NAMES = ["esp32", "esp32_psram", "esp32c3", "esp32s3", "esp32s3_psram", "qemu_arm", "rp2040", "rp2350"]


def test_the_boards_of_this_release():
    assert boards.names() == NAMES


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
    assert s3.areas_bytes == (62_432, 183_680)
    assert s3.machine.heap_bytes == 62_432 + 183_680
    assert s3.machine.largest_object_bytes == 183_680
    assert s3.machine.split_heap
    assert not s3.memory_mapped_flash
    assert s3.machine.partition.label == "vfs"


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("rp2400", 'did you mean "rp2040"'), ("xyz", "boards: esp32, esp32_psram, esp32c3")],
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


AREAS = {"kind": "measured", "source": "a test of this file"}


def split_s3(tmp_path, **values):
    """The file of the S3 with other values of memory."""
    data = json.loads((BOARDS / "esp32s3_psram" / "board.json").read_text())
    for key, value in values.items():
        data["memory"][key]["value"] = value
    path = tmp_path / "esp32s3_psram" / "board.json"
    path.parent.mkdir()
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"heap_bytes": 8_000_000}, "heap_bytes 8,000,000 is not the 8,114,880 of memory.areas_bytes"),
        ({"largest_object_bytes": 61_824}, "largest_object_bytes 61,824 is not the 8,053,056"),
        ({"psram_mapped_bytes": 8 << 20 | 1}, "psram_mapped_bytes 8,388,609 is more than"),
        ({"psram_mapped_bytes": 4 << 20}, "heap_bytes 8,114,880 is more than memory.psram_mapped_bytes"),
    ],
)
def test_a_split_heap_adds_up(tmp_path, values, named):
    with pytest.raises(BadInput) as refused:
        boards.read(split_s3(tmp_path, **values))
    assert named in str(refused.value)


@pytest.mark.parametrize("name", ["esp32", "esp32_psram", "esp32c3", "esp32s3", "esp32s3_psram"])
def test_the_largest_object_is_what_an_area_can_grow_to(name):
    """MicroPython adds an area of n + max(2048, 13 n / 512) bytes for an object of n."""
    board = boards.load(name)
    assert board.machine.split_heap
    note = board.facts["memory.areas_bytes"].note
    room = int(re.search(r"largest new area of ([\d,]+) bytes", note)[1].replace(",", ""))
    n = board.machine.largest_object_bytes
    assert n + max(2048, 13 * n // 512) <= room < n + 16 + max(2048, 13 * (n + 16) // 512)
    assert board.machine.heap_bytes == sum(board.areas_bytes)


def test_only_mapped_psram_is_memory():
    """The first ESP32 has an address for 4 MiB of its 8 MB."""
    board = boards.load("esp32_psram")
    assert board.facts["memory.psram_bytes"].value == 8 << 20
    assert board.facts["memory.psram_mapped_bytes"].value == 4 << 20
    assert board.machine.heap_bytes < 4 << 20
    assert boards.load("esp32s3_psram").machine.heap_bytes > 7 << 20


@pytest.mark.parametrize("name", NAMES)
def test_memories_of_a_board_are_those_of_its_facts(name):
    board = boards.load(name)
    sizes = {"SRAM": "memory.sram_bytes", "PSRAM": "memory.psram_mapped_bytes", "flash": "flash.chip_bytes"}
    for memory in board.memories:
        assert memory.size_bytes == board.facts[sizes[memory.name]]
    assert sorted(memory.role for memory in board.memories if memory.role != "cache") == ["main", "weights"]


STORY = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
    " One day, she saw a big, r"
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_every_board_tells_the_same_story(name, tmp_path, needs_data, capfd):
    model, figures = needs_data("stories260K/stories260K.bin"), tmp_path / "told.json"
    qemu_fixtures.needed_by(name)
    arguments = ["--board", name, "--model", str(model), "--tokens", "40", "--greedy"]
    assert cli.main(["stories", *arguments, "--json", str(figures)]) == 0
    told = json.loads(figures.read_text())
    assert told["text"] == STORY
    assert (told["largest_object_bytes"] or 0) <= boards.load(name).machine.largest_object_bytes
    assert STORY in capfd.readouterr().out


def test_every_board_tells_the_same_with_a_tiny_model(tmp_path, capfd):
    model, _ = write_tiny(tmp_path, seq_len=256)
    texts = set()
    for name in boards.real_names():
        figures = tmp_path / f"{name}.json"
        arguments = ["--board", name, "--model", str(model), "--tokens", "20", "--greedy"]
        assert cli.main(["stories", *arguments, "--json", str(figures)]) == 0
        texts.add(json.loads(figures.read_text())["text"])
    assert len(texts) == 1
    assert len(texts.pop()) >= 20


def test_the_command_lists_boards_and_their_sources(tmp_path, capfd):
    path = tmp_path / "boards.json"
    assert cli.main(["boards", "--json", str(path)]) == 0
    assert [board["name"] for board in json.loads(path.read_text())["boards"]] == NAMES
    assert "239,776" in capfd.readouterr().out
    assert cli.main(["boards", "esp32_psram"]) == 0
    out = capfd.readouterr().out
    assert "4,194,304 B (4.00 MiB)" in out
    assert "PSRAM.read_bytes_per_s" in out
    assert "20 MB/s" in out
    assert cli.main(["boards", "esp33"]) == 2


def set_value(section, key, value):
    def change(data):
        data[section][key]["value"] = value

    change.__name__ = f"{key}={value}"
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
        (
            set_value("flash", "storage_at_bytes", 655361),
            "flash.storage_at_bytes 655,361 is no multiple of flash.erase_bytes 4,096",
        ),
        (
            set_value("flash", "storage_at_bytes", 655360 + 4096),
            "flash.storage_at_bytes and flash.storage_bytes end at 2,101,248, after the 2,097,152",
        ),
        (
            set_value("flash", "firmware_bytes", 655361),
            "flash.firmware_bytes 655,361 is more than flash.storage_at_bytes 655,360",
        ),
        (
            lambda data: data["flash"].pop("storage_at_bytes"),
            "flash.storage_at_bytes belongs to rp2 boards, and only there",
        ),
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
        (
            lambda data: data["memory"]["heap_bytes"].update(kind="chosen"),
            "a board has no chosen facts",
        ),
        (lambda data: data["memories"].clear(), "memories"),
        (lambda data: data["memories"][0].update(role="best"), "memories.0.role"),
        (lambda data: data["memories"][1].update(latency_ns=400), "memories.1.latency_ns"),
        (
            lambda data: data["memory"].update(areas_bytes={**AREAS, "value": [1, 2]}),
            "areas_bytes belongs to boards with a split heap",
        ),
        (
            lambda data: data["memory"].update(psram_bytes={**AREAS, "value": 8 << 20}),
            "psram_bytes and memory.psram_mapped_bytes belong together",
        ),
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
