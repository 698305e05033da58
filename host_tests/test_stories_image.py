"""Opening a board image: read from a buffer or a file, and every damage refused with its numbers."""

from __future__ import annotations

import io
import struct

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories import tensors
from stories.errors import ImageError
from stories.image import Image
from stories_fixtures import SHAPES, patched, tiny

from kvlab.models.image import Image as HostImage
from kvlab.models.image import with_codecs


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mapped", [True, False])
def test_reads_what_the_host_reads(shape: str, mapped: bool) -> None:
    checkpoint, _, data = tiny(shape)
    image = Image(data if mapped else io.BytesIO(data))
    host = HostImage.parse(data)
    c = checkpoint.config
    for name in ("dim", "hidden", "layers", "heads", "kv_heads", "head_dim", "vocab", "seq_len"):
        assert getattr(image, name) == getattr(c, name), name
    assert image.shared == c.shared
    assert image.model_id == host.header.model_id
    assert [tuple(x) for x in tensors.shifts(image)] == [tuple(x) for x in host.shifts.tolist()]
    for i, entry in enumerate(host.entries):
        offset, rows, columns, _, exponent, _, _ = tensors.entry(image, i)
        assert (offset, rows, columns, exponent) == (entry.offset, entry.rows, entry.cols, entry.exponent)
    assert tensors.classifier(image)[0] == host.entries[0 if c.shared else -1].offset
    assert tensors.final_norm(image)[0] == host.entries[-1 if c.shared else -2].offset


@pytest.mark.parametrize("mapped", [True, False])
def test_the_element_types_of_the_cache(mapped: bool) -> None:
    data = tiny()[2]
    layers = Image(data).layers
    mixed = (["int8", "sparse", "float16", "int8-int4"] * layers)[:layers]
    for codecs, want in ((None, "int8"), (["int8-int4"] * layers, "int8-int4"), (mixed, mixed)):
        made = data if codecs is None else with_codecs(HostImage.parse(data), codecs)
        assert Image(made if mapped else io.BytesIO(made)).codec == want


@pytest.mark.parametrize("more", [1, 4, 15])
def test_element_types_start_on_a_multiple_of_16(more: int) -> None:
    """Whatever the length of the image that they are added to."""
    data = tiny()[2] + bytes(more)
    data = patched(data, 8, "I", len(data))
    layers = Image(data).layers
    made = with_codecs(HostImage.parse(data), ["sparse"] * layers)
    assert Image(made).codec == "sparse"
    assert HostImage.parse(made).codecs == ("sparse",) * layers
    assert len(with_codecs(HostImage.parse(made), ["int8"] * layers)) == len(made)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("size", [0, 1, 15])
def test_a_tokenizer_without_its_counts_is_refused(size: int, mapped: bool) -> None:
    """Where the image ends before them, too."""
    data = tiny()[2] + bytes(size)
    data = patched(data, 8, "I", len(data))
    data = patched(data, 68, "II", len(data) - size, size)
    with pytest.raises(ImageError, match=f"tokenizer of {size} bytes: its counts alone take 16"):
        Image(data if mapped else io.BytesIO(data))


def test_trailing_bytes_of_a_partition_do_no_harm() -> None:
    data = tiny()[2]
    assert Image(data + b"\xff" * 5000).dim == Image(io.BytesIO(data + b"\xff" * 700)).dim == 32


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(
    ("at", "form", "values", "message"),
    [
        (0, "4s", [b"ggml"], "not a board image.*67676d6c.*kvlab convert"),
        (4, "H", [2], "format 2"),
        (8, "I", [1 << 30], "cut short: [0-9]+ of 1073741824"),
        (20, "H", [0], "dim is 0"),
        (20, "H", [8224], "dim is 8224, must be 1..8192"),
        (20, "H", [64], "tensor 0 is 320 x 32"),
        (24, "H", [9], "tensors, 84 expected|[0-9]+ tensors, 83 expected"),
        (26, "H", [3], "heads 3 is not a multiple of kv_heads 2"),
        (28, "H", [0], "kv_heads is 0"),
        (30, "H", [7], "head_dim 7 is odd"),
        (32, "I", [1 << 16], "vocab is 65536"),
        (36, "I", [0], "seq_len is 0"),
        (40, "H", [64], "groups of 64"),
        (44, "H", [320], "bos is 320, must be 0..319"),
        (48, "I", [1 << 29], "eps_q32"),
        (52, "I", [97], "tensor table at 97"),
        (60, "I", [1 << 20], "rope table at 1048576"),
        (64, "I", [8], "shifts at 8"),
        (72, "I", [20], "tokenizer of 20 bytes"),
        (72, "I", [1 << 31], "tokenizer at [0-9]+, 2147483648 bytes"),
        (76, "I", [8], "element types at 8, [0-9] bytes"),
        (76, "I", [1 << 31], "element types at 2147483648"),
    ],
)
def test_a_wrong_header_is_named(at: int, form: str, values: list, message: str, mapped: bool) -> None:
    data = patched(tiny()[2], at, form, *values)
    with pytest.raises(ImageError, match=message):
        Image(data if mapped else io.BytesIO(data))


def test_a_wrong_tensor_is_named() -> None:
    data = tiny()[2]
    table = struct.unpack_from("<I", data, 52)[0]
    for at, value, message in (
        (0, 1 << 20, "tensor 2 at 1048576"),
        (8, 31, "32 x 31"),
        (16, 99, "exponent 99"),
    ):
        with pytest.raises(ImageError, match=message):
            Image(patched(data, table + 2 * 24 + at, "I", value))


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(
    ("table", "i", "value", "message"),
    [
        ("offsets", 0, 1, "offset 0 is 1, must be 0..0"),
        ("offsets", 200, 0, "offset 200 is 0, must be [1-9][0-9]*.."),
        ("offsets", 200, 1 << 20, "offset 200 is 1048576, must be"),
        ("offsets", 319, (1 << 32) - 1, "offset 319 is 4294967295, must be"),
        ("offsets", 320, 1 << 31, "offset 320 is 2147483648, must be"),
        ("order", 0, 320, "entry 0 of the order is 320; each of 0..319"),
        ("order", 319, 65535, "entry 319 of the order is 65535; each of 0..319"),
        ("order", 100, 0, "entry [0-9]+ of the order is 0; each of 0..319 must be there once"),
    ],
)
def test_a_wrong_tokenizer_is_named(table: str, i: int, value: int, message: str, mapped: bool) -> None:
    """Where reading it later would go beyond its tables, or beyond memory."""
    data = tiny()[2]
    offsets = struct.unpack_from("<I", data, 68)[0] + 16
    order = offsets + 4 * 321 + 2 * 320
    if table == "offsets":
        bad = patched(data, offsets + 4 * i, "I", value)
    else:
        bad = patched(data, order + 2 * i, "H", value)
    with pytest.raises(ImageError, match="tokenizer: " + message):
        Image(bad if mapped else io.BytesIO(bad), check_crc=False)


def test_offsets_take_three_bytes() -> None:
    data = tiny()[2]
    at = struct.unpack_from("<I", data, 68)[0]
    with pytest.raises(ImageError, match="16777216 bytes of text"):
        Image(patched(data, at + 8, "I", 1 << 24))


@pytest.mark.parametrize("mapped", [True, False])
def test_damage_is_found_by_the_checksum(mapped: bool) -> None:
    data = bytearray(tiny()[2])
    data[-20] ^= 1
    source = bytes(data)
    with pytest.raises(ImageError, match="checksum [0-9a-f]{8}, the header says [0-9a-f]{8}"):
        Image(source if mapped else io.BytesIO(source))
    assert Image(source, check_crc=False).dim == 32


@pytest.mark.parametrize("size", [0, 95, 96, 5000, -1])
def test_a_short_file_is_refused(size: int) -> None:
    data = tiny()[2][:size]
    for source in (data, io.BytesIO(data)):
        with pytest.raises(ImageError, match="bytes"):
            Image(source)


def test_not_a_model_at_all() -> None:
    with pytest.raises(ImageError, match="buffer or a file open for reading, got int"):
        Image(7)


def test_an_unaligned_buffer_is_refused_on_the_device(upy, tmp_path) -> None:
    path = tmp_path / "model"
    path.write_bytes(tiny()[2])
    shown = upy.run(
        "import sys, stories\n"
        "data = b'xy' + open(sys.argv[1], 'rb').read()\n"
        "try:\n stories.Image(memoryview(data)[2:])\n"
        "except stories.ImageError as e:\n print(e)\n",
        [path],
    )
    assert "not on a word: align it, or pass the open file" in shown
