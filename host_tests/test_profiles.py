"""Profiles: memories with sources, the recommended defaults, files refused by the place that is wrong."""

import json

import pytest

from commandline.errors import BadInput
from kvlab import cli, profiles

RECOMMENDED = {
    "allocator": "slab+region",
    "layout": "paged",
    "eviction": "sliding-window",
    "codec": "int8",
    "bandwidth": "aware",
    "isolation": "region",
}


def test_the_profiles_small_to_large():
    assert profiles.names() == ["mcu", "soc", "edge", "server"]
    main = [profiles.load(name).memories[0] for name in profiles.names()]
    assert all(memory.role == "main" for memory in main)
    assert [memory.size_bytes.value for memory in main] == sorted(m.size_bytes.value for m in main)
    assert [memory.read_bytes_per_s.value for memory in main] == sorted(
        m.read_bytes_per_s.value for m in main
    )


@pytest.mark.parametrize("name", profiles.names())
def test_every_fact_has_a_source_and_what_is_no_measurement_says_so(name):
    profile = profiles.load(name)
    for memory in profile.memories:
        for fact in memory.facts().values():
            assert len(fact.source) >= 8
            assert fact.kind != "derived" or fact.note, f"{name}: {memory.name}"


@pytest.mark.parametrize("name", ["soc", "edge", "server"])
def test_the_recommended_defaults(name):
    defaults = profiles.load(name).defaults
    assert {key: defaults[key] for key in RECOMMENDED} == RECOMMENDED


def test_a_microcontroller_differs():
    defaults = profiles.load("mcu").defaults
    assert defaults["allocator"] == "fixed"
    assert defaults["layout"] == "contiguous"
    assert defaults["isolation"] == "one-request"
    assert defaults["window_tokens"] == 256
    assert defaults["codec"] == "int8"


def test_unknown_profile():
    with pytest.raises(BadInput, match='did you mean "server"'):
        profiles.load("sever")
    with pytest.raises(BadInput, match="profiles: mcu, soc, edge, server"):
        profiles.load("../boards/rp2040")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d["memories"][0]["size_bytes"].update(value=-1), "memories.0.size_bytes.value"),
        (lambda d: d["memories"][0]["size_bytes"].pop("source"), "'source' is a required property"),
        (lambda d: d["memories"][0].update(role="extension"), "0 of role main, one is needed"),
        (lambda d: d["defaults"].update(codec="int2"), "defaults.codec"),
        (lambda d: d["defaults"].pop("layout"), "'layout' is a required property"),
        (lambda d: d["reserved_bytes"].update(value=10**14), "is all of LPDDR4X"),
        (lambda d: d.update(name="sock"), 'name "sock" is not that of its file'),
    ],
)
def test_a_wrong_file_is_refused_by_the_place_in_it(tmp_path, change, named):
    data = json.loads((profiles.FOLDER / "soc.json").read_text())
    change(data)
    path = tmp_path / "soc.json"
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput) as refused:
        profiles.read(path)
    assert named in str(refused.value)


def test_the_command(tmp_path, capfd):
    path = tmp_path / "profiles.json"
    assert cli.main(["profiles", "--json", str(path)]) == 0
    listed = json.loads(path.read_text())["profiles"]
    assert [profile["name"] for profile in listed] == profiles.names()
    assert listed[3]["memories"][0]["read_bytes_per_s"]["value"] == 3_350_000_000_000
    out = capfd.readouterr().out
    assert "3350 GB/s" in out
    assert "memory_curves.csv" in out
    assert "allocator slab+region" in out
    assert cli.main(["profiles", "sever"]) == 2
