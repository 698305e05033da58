"""The emulator: its fence holds to the byte, its flash keeps the rules, its report is true."""

import json
import textwrap
from dataclasses import replace

import pytest

from kvlab import boards, cli
from kvlab.paths import BOARDS
from unix_port import launcher
from unix_port.launcher import FlashFile
from unix_port.port import PortError

PICO = boards.load("rp2040").machine
S3 = boards.load("esp32s3").machine


@pytest.fixture
def emulate(tmp_path):
    """`emulate(source, *args, machine=PICO, ...)`: the report of a script given as text."""

    def run(source, *args, machine=PICO, **how):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(source))
        return launcher.emulate(path, args, machine, timeout_s=60, **how)

    return run


def ok(report):
    """The report of a run that must have gone well."""
    assert report.outcome == "ok", report.stderr
    return report


# --- the fence -----------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [PICO, S3], ids=lambda machine: machine.name)
def test_the_fence_stands_at_the_boards_heap(emulate, machine):
    report = ok(emulate("import gc; print(gc.mem_free())", machine=machine))
    assert report.heap_limit_bytes == machine.heap_bytes
    # What the script sees is that, less its own compiled code.
    assert machine.heap_bytes - 1024 < int(report.stdout) < machine.heap_bytes


def test_the_heap_is_one_piece_as_on_the_board(emulate):
    ok(emulate(f"b = bytearray({PICO.largest_object_bytes})"))
    assert emulate(f"b = bytearray({PICO.heap_bytes})").outcome == "does not fit"


@pytest.mark.parametrize("count", [1, 10, 100])
def test_what_fits_passes_and_a_little_more_does_not(emulate, count):
    source = f"""
        kept = [None] * {count}
        for i in range({count}):
            kept[i] = bytearray(%d)
        """
    room = (PICO.heap_bytes - 2048) // count
    ok(emulate(source % (room - 64)))
    report = emulate(source % (room + 2048 // count + 64))
    assert report.outcome == "does not fit"
    assert report.status == 1
    assert report.error.startswith("MemoryError: memory allocation failed, allocating ")
    assert report.verdict.startswith("does not fit: ")
    assert f"{PICO.heap_bytes:,}" in report.verdict
    assert not report.fits


def test_a_full_heap_leaves_room_to_report(emulate):
    """Many small objects, so that no hole of any size is left when the script dies."""
    report = emulate(
        """
        import emu
        chain = None
        for i in range(3000):
            emu.sample()
        while True:
            chain = (chain,)
        """
    )
    assert report.outcome == "does not fit"
    assert report.heap_live_end_bytes > PICO.heap_bytes - 2048
    assert len(report.samples) > 1000


def test_garbage_is_no_need(emulate):
    report = ok(emulate("for i in range(1000): bytearray(10_000)"))
    assert report.allocated_bytes > 10_000_000
    assert report.heap_live_end_bytes < 1024


def test_another_heap_than_the_boards(emulate):
    assert ok(emulate("bytearray(400_000)", heap_bytes=500_000)).heap_limit_bytes == 500_000
    assert emulate("bytearray(40_000)", heap_bytes=32_768).outcome == "does not fit"


def test_the_flash_takes_nothing_from_the_heap(emulate):
    large = replace(PICO, flash_bytes=8 << 20)
    report = ok(emulate(f"bytearray({PICO.largest_object_bytes})", machine=large))
    assert report.heap_limit_bytes == PICO.heap_bytes


def test_an_object_larger_than_the_board_has_in_one_piece(emulate):
    report = emulate("bytearray(100_000)", machine=replace(PICO, largest_object_bytes=90_000))
    assert report.ok
    assert not report.fits
    assert report.verdict == (
        "does not fit: one bytearray of 100,000 bytes, and the board has 90,000 in one piece"
    )


def test_smallest_heap(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("a = bytearray(100_000)\nb = bytearray(20_000)\n")
    size = launcher.smallest_heap(path, (), PICO, resolution_bytes=256)
    assert 120_000 < size < 124_000
    assert launcher.emulate(path, (), PICO, heap_bytes=size).ok
    assert not launcher.emulate(path, (), PICO, heap_bytes=size - 1024).ok


def test_smallest_heap_looks_above_the_boards_when_it_must(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("a = bytearray(300_000)\n")
    assert 300_000 < launcher.smallest_heap(path, (), PICO) < 304_000


def test_smallest_heap_of_what_never_runs(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("1 / 0\n")
    assert launcher.smallest_heap(path, (), PICO) is None
    path.write_text("a = bytearray(1 << 24)\n")
    assert launcher.smallest_heap(path, (), PICO) is None


# --- how a run ends ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "outcome", "status"),
    [
        ("", "ok", 0),
        ("import sys; sys.exit()", "ok", 0),
        ("import sys; sys.exit(0)", "ok", 0),
        ("import machine; machine.reset()", "ok", 0),
        ("import sys; sys.exit(3)", "failed", 3),
        ("import sys; sys.exit('sorry')", "failed", 1),
        ("1 / 0", "failed", 1),
        ("def f(:", "failed", 1),
        ("import no_such_module", "failed", 1),
        ("raise KeyboardInterrupt", "interrupted", 130),
        ("import os, sys; os.system('kill -9 $PPID')", "crashed", 1),
    ],
)
def test_every_end_is_told(emulate, source, outcome, status):
    report = emulate(source)
    assert (report.outcome, report.status) == (outcome, status)
    assert report.ok == (outcome == "ok")
    assert report.verdict.startswith("fits" if report.ok else outcome)


def test_an_exception_shows_its_traceback(emulate):
    report = emulate("def f():\n    return {}['key']\nf()")
    assert report.error == "KeyError: key"
    assert 'script.py", line 2, in f' in report.stderr


def test_a_promise_broken_under_the_heap_lock_is_a_fault_not_a_lack_of_room(emulate):
    report = emulate(
        """
        import micropython
        micropython.heap_lock()
        micropython.heap_lock()
        [micropython]
        """
    )
    assert report.outcome == "failed"
    assert report.error == "MemoryError: memory allocation failed, heap is locked"


def test_a_run_is_stopped_at_its_timeout(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("print('on', end='')\nwhile True: pass\n")
    report = launcher.emulate(path, (), PICO, timeout_s=0.5)
    assert report.outcome == "timed out"
    assert report.error == "no end after 0.5 s"
    assert report.stdout == "on"
    assert report.heap_live_peak_bytes is None


def test_arguments_and_names(emulate):
    report = ok(emulate("import sys; print(sys.argv[1:], __name__)", "--x", 3, "two words"))
    assert report.stdout == "['--x', '3', 'two words'] __main__\n"


def test_modules_beside_the_script_are_found(emulate, tmp_path):
    (tmp_path / "beside.py").write_text("answer = 42\n")
    assert ok(emulate("import beside; print(beside.answer)")).stdout == "42\n"


def test_output_is_kept_and_passed_on(emulate, capsys):
    report = ok(emulate("print('story: ünicode')", stream=True))
    assert report.stdout == "story: ünicode\n"
    assert capsys.readouterr().out == report.stdout


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"heap_bytes": 100}, "a heap of 100 bytes"),
        ({"heap_bytes": -1}, "a heap of -1 bytes"),
        ({"cut_after": -1}, "the first is 0"),
        ({"flash": [FlashFile(b"1234", PICO.flash_bytes - 3)]}, "do not fit the 1,441,792 bytes"),
        ({"flash": [FlashFile(b"1234", -1)]}, "do not fit"),
        (
            {"flash": [FlashFile(b"1234", 0, "a"), FlashFile(b"x", 3, "b")]},
            "b at 3 overlaps a at 0..4",
        ),
    ],
)
def test_bad_input(emulate, how, message):
    with pytest.raises(PortError, match=message):
        emulate("", **how)


def test_no_script(tmp_path):
    with pytest.raises(PortError, match="no script"):
        launcher.emulate(tmp_path / "gone.py", (), PICO)


# --- what is watched -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "size", "kind"),
    [
        ("x = 1", 0, None),
        ("bytearray(5000)", 5000, "bytearray"),
        ("bytearray(b'x' * 300)", 300, "bytearray"),
        ("bytearray('x' * 300, 'utf-8')", 300, "bytearray"),
        ("bytearray(); bytearray(range(200))", 200, "bytearray"),
        ("from array import array; array('i', [0] * 1000)", 4000, "array"),
        ("from array import array; array('h', bytes(1000))", 1000, "array"),
        ("import array; array.array('q', range(100))", 800, "array"),
        ("import array; array.array('f'); bytearray(7)", 7, "bytearray"),
        ("bytearray(10); bytearray(30); bytearray(20)", 30, "bytearray"),
        ("try: bytearray(1 << 20)\nexcept MemoryError: bytearray(9)", 9, "bytearray"),
    ],
)
def test_the_largest_object(emulate, source, size, kind):
    report = ok(emulate(source))
    assert (report.largest_object_bytes, report.largest_object_kind) == (size, kind)


def test_the_watch_does_not_show(emulate):
    ok(
        emulate(
            """
            from array import array
            import array as module
            b, a = bytearray(4), array("h", [1, -2])
            assert isinstance(b, bytearray) and isinstance(b[1:], bytearray)
            assert isinstance(a, array) and isinstance(a, module.array)
            assert isinstance(b, (int, (bytes, bytearray))) and not isinstance(b, (array, int))
            assert not isinstance(1, bytearray) and isinstance(1, int)
            class Buffer(bytearray):
                pass
            assert issubclass(Buffer, bytearray) and isinstance(Buffer(3), bytearray)
            assert len(Buffer(3)) == 3 and a[1] == -2 and bytes(b) == bytes(4)
            for wrong in (lambda: bytearray(-1), lambda: array("?", 1), lambda: bytearray(1.5)):
                try:
                    wrong()
                except (TypeError, ValueError, MemoryError, OverflowError):
                    continue
                raise AssertionError
            """
        )
    )


def test_making_a_buffer_costs_what_it_costs(emulate):
    """The stand-in itself allocates nothing."""
    ok(
        emulate(
            """
            import builtins, micropython
            from array import array
            real = type(bytearray(1))
            def cost(make):
                make(1000)
                before = micropython.mem_total()
                make(1000)
                return micropython.mem_total() - before
            assert cost(bytearray) == cost(real), (cost(bytearray), cost(real))
            """
        )
    )


def test_machine_code_is_measured(emulate):
    function = textwrap.dedent(
        """
        @micropython.viper
        def f%d(p: ptr8, n: int) -> int:
            s = 0
            for i in range(n):
                s += p[i] * %d
            return s
        """
    )
    none = ok(emulate("import micropython"))
    one = ok(emulate("import micropython" + function % (1, 1)))
    ten = ok(emulate("import micropython" + "".join(function % (i, i) for i in range(10))))
    assert none.native_code_bytes == 0
    assert 50 < one.native_code_bytes < 1000
    assert ten.native_code_bytes == pytest.approx(10 * one.native_code_bytes, rel=0.05)
    assert any("machine code" in note for note in one.notes)
    assert not any("machine code" in note for note in none.notes)


def test_marks_tell_what_fills_the_heap(emulate):
    report = ok(
        emulate(
            """
            from emu import mark
            mark("start")
            a = bytearray(50_000)
            mark("first")
            bytearray(100_000)
            b = bytearray(20_000)
            mark("second")
            b = None
            """
        )
    )
    start, first, second = report.marks
    assert [mark.label for mark in report.marks] == ["start", "first", "second"]
    assert 50_000 <= first.live_bytes - start.live_bytes < 51_000
    assert 20_000 <= second.live_bytes - first.live_bytes < 21_000
    assert start.us <= first.us <= second.us
    assert report.heap_live_peak_bytes == second.live_bytes
    assert report.heap_live_end_bytes < second.live_bytes - 19_000


def test_samples_and_marks_allocate_nothing(emulate):
    ok(
        emulate(
            """
            import micropython
            from emu import mark, sample
            before = after = i = 0
            before = micropython.mem_total()
            micropython.heap_lock()
            for i in range(3000):
                sample()
            for i in range(100):
                mark("again")
            micropython.heap_unlock()
            after = micropython.mem_total()
            assert before == after, after - before
            """
        )
    )


@pytest.mark.parametrize("calls", [1, 2048, 2049, 5000, 20_000])
def test_samples_thin_out_instead_of_ending(emulate, calls):
    report = ok(emulate(f"from emu import sample\nfor i in range({calls}): sample()"))
    times = [us for us, _ in report.samples]
    assert min(calls, 1024) <= len(times) <= 2048
    assert times == sorted(times)
    assert times[-1] > 0.7 * times[0] + 0.7 * (times[-1] - times[0])
    # They cover the whole run: the last kept call is within one stride of the last.
    assert times[-1] >= 0.8 * report.seconds * 1e6 or calls < 2048


def test_samples_show_growth(emulate):
    report = ok(
        emulate(
            """
            from emu import sample
            kept = []
            for i in range(100):
                kept.append(bytearray(1000))
                sample()
            """
        )
    )
    used = [bytes_ for _, bytes_ in report.samples]
    assert used == sorted(used)
    assert used[-1] - used[0] >= 99_000


# --- modules of the board ------------------------------------------------------------------------


def test_only_the_boards_modules_exist(emulate):
    source = "import machine, {}\ntry:\n import {}\nexcept ImportError:\n print('absent')"
    assert ok(emulate(source.format("rp2", "esp32"))).stdout == "absent\n"
    assert ok(emulate(source.format("esp32", "rp2"), machine=S3)).stdout == "absent\n"


def test_the_clock(emulate):
    report = ok(
        emulate(
            """
            import machine
            assert machine.freq() == 125_000_000
            machine.freq(133_000_000)
            try:
                machine.freq(10 ** 9)
            except ValueError:
                print(machine.freq())
            try:
                machine.freq(200_000_000)
            except ValueError as error:
                print(error)
            """
        )
    )
    assert report.stdout == "133000000\nfrequency 200000000: more than the core's voltage allows\n"
    assert report.clock_hz == 133_000_000


def test_only_rp2_chips_have_registers(emulate):
    source = "import machine; print(hasattr(machine, 'mem32'))"
    assert ok(emulate(source)).stdout == "True\n"
    assert ok(emulate(source, machine=S3)).stdout == "False\n"
    report = emulate("import machine; machine.mem32[0x40064004]")
    assert "no register at 0x40064004 here" in report.stderr


# --- flash ---------------------------------------------------------------------------------------


def test_flash_is_read_where_it_lies(emulate):
    report = ok(
        emulate(
            """
            import rp2, uctypes, gc
            flash = rp2.Flash(start=4096, len=8192)
            gc.collect()
            before = gc.mem_alloc()
            view = memoryview(flash)
            assert len(view) == 8192 and gc.mem_alloc() - before <= 64
            assert bytes(view[:5]) == b"hello" and view[5] == 0xFF
            whole = memoryview(rp2.Flash())
            assert uctypes.addressof(view) == uctypes.addressof(whole) + 4096
            assert len(whole) == 1408 * 1024
            try:
                view[0] = 1
            except TypeError:
                print("read-only")
            @micropython.viper
            def first(p: ptr8) -> int:
                return p[0]
            assert first(flash) == ord("h")
            # A program shows at once in every view: it is the same memory.
            flash.writeblocks(0, b"J", 0)
            assert view[0] == ord("h") & ord("J")
            """.replace("import rp2", "import micropython, rp2"),
            flash=[FlashFile(b"hello", 4096)],
        )
    )
    assert report.stdout == "read-only\n"


def test_the_flash_has_the_addresses_of_the_chip(emulate):
    """uctypes tells and takes them: of the storage, and of what lies before it. All else has its own."""
    report = ok(
        emulate(
            """
            import rp2
            from uctypes import UINT8, addressof, bytearray_at
            from mpy_kv import port
            assert port.addressof is addressof
            storage = memoryview(rp2.Flash())
            at = addressof(storage)
            assert (at, addressof(storage[4096:])) == (0x100A0000, 0x100A1000)
            assert bytes(bytearray_at(at, 4)) == b"two\\xff"
            before = bytearray_at(at - 8192, 8192)
            assert bytes(before[:6]) == b"hello\\xff" and before[4096] == 0xFF
            assert addressof(before) == at - 8192 and addressof(memoryview(before)[3:]) == at - 8189
            # Where nothing was put, and over the border: a copy.
            assert bytes(bytearray_at(0x10000000, 3)) == b"\\xff\\xff\\xff"
            assert bytes(bytearray_at(at - 8194, 4)) == b"\\xff\\xffhe"
            assert bytes(bytearray_at(at - 2, 5)) == b"\\xff\\xfftwo"
            own = bytearray(b"own")
            assert bytes(bytearray_at(addressof(own), 3)) == b"own"
            # It is the flash itself.
            rp2.Flash().writeblocks(0, b"x", 0)
            assert bytearray_at(at, 1)[0] == ord("x") & ord("t")
            """,
            flash=[FlashFile(b"hello", -8192), FlashFile(b"two")],
        )
    )
    assert report.flash_bytes == 1408 * 1024


@pytest.mark.parametrize(
    ("machine", "offset", "size"),
    [(PICO, -655_361, 1), (PICO, -4096, 4097), (S3, -1, 1), (PICO, 0, 1_441_793)],
)
def test_what_lies_before_the_storage_fits_there(emulate, machine, offset, size):
    with pytest.raises(PortError, match=f"{size:,} bytes at {offset:,} do not fit"):
        emulate("", machine=machine, flash=[FlashFile(bytes(size), offset)])


@pytest.mark.parametrize(
    "arguments", ["start=1", "start=-4096", "len=0", "len=100", "start=4096, len=1408*1024"]
)
def test_flash_windows_are_whole_blocks_inside_the_storage(emulate, arguments):
    report = emulate(f"import rp2; rp2.Flash({arguments})")
    assert report.error.startswith("ValueError")


BLOCK_RULES = """
    flash = DEVICE
    assert flash.ioctl(4, 0) == SIZE // 4096 and flash.ioctl(5, 0) == 4096
    buf = bytearray(4096)
    flash.readblocks(0, buf)
    assert buf == b"\\xff" * 4096
    # Programming only clears bits.
    flash.writeblocks(0, b"\\xf0\\x0f", 10)
    flash.writeblocks(0, b"\\x3c\\xff", 10)
    flash.readblocks(0, buf)
    assert buf[9:13] == b"\\xff\\x30\\x0f\\xff", bytes(buf[9:13])
    # Writing without an offset erases first, whole blocks only.
    flash.writeblocks(0, bytes(8192))
    flash.readblocks(1, buf)
    assert buf == bytes(4096)
    flash.ioctl(6, 0)
    flash.readblocks(0, memoryview(buf)[:4], 4094)
    assert buf[:4] == b"\\xff\\xff\\x00\\x00"
    flash.writeblocks(2, b"12345", 254)
    small = bytearray(5)
    flash.readblocks(2, small, 254)
    assert small == b"12345"
    # Reading is free.
    import micropython
    view = memoryview(buf)
    before = after = 0
    before = micropython.mem_total()
    flash.readblocks(2, view)
    after = micropython.mem_total()
    assert before == after
    for wrong in ((SIZE // 4096, buf), (-1, buf), (0, bytearray(SIZE + 1))):
        try:
            flash.readblocks(*wrong)
        except OSError:
            continue
        raise AssertionError(wrong)
    try:
        flash.writeblocks(0, b"123")
    except ValueError:
        print("whole blocks")
    """


@pytest.mark.parametrize(
    ("machine", "device"),
    [
        (PICO, "__import__('rp2').Flash()"),
        (PICO, "__import__('rp2').Flash(start=8192)"),
        (S3, "__import__('esp32').Partition('vfs')"),
    ],
)
def test_flash_keeps_the_rules(emulate, machine, device):
    size = machine.flash_bytes - (8192 if "8192" in device else 0)
    # The heap is made larger: the test reads past the end with a buffer of the whole size.
    report = ok(
        emulate(
            BLOCK_RULES.replace("DEVICE", device).replace("SIZE", str(size)),
            machine=machine,
            heap_bytes=8 << 20,
        )
    )
    assert report.stdout == "whole blocks\n"
    assert report.flash_erases == 3
    assert report.flash_programs == 1 + 1 + 32 + 2
    assert report.flash_lost_bits == 2 + 4


def test_partitions_of_the_esp32(emulate):
    report = ok(
        emulate(
            """
            from esp32 import Partition
            found = Partition.find(Partition.TYPE_DATA, label="vfs")
            print(found[0].info(), len(Partition.find(Partition.TYPE_DATA)))
            assert not Partition.find(Partition.TYPE_APP) and not Partition.find(1, label="x")
            try:
                memoryview(found[0])
            except TypeError:
                print("not mapped")
            try:
                Partition("nvs")
            except OSError as error:
                print(error.errno)
            """,
            machine=S3,
        )
    )
    assert report.stdout == f"(1, 129, 3211264, {S3.flash_bytes}, 'vfs', False) 1\nnot mapped\n2\n"


def test_littlefs_lives_in_the_flash(emulate):
    """What one run writes the next one finds: a real file system, through the block protocol."""
    first = ok(
        emulate(
            """
            import os, rp2
            bdev = rp2.Flash()
            os.VfsLfs2.mkfs(bdev, progsize=256)
            os.mount(os.VfsLfs2(bdev, progsize=256), "/flash")
            with open("/flash/a.txt", "w") as f:
                f.write("hello" * 2000)
            """,
            keep_flash=True,
        )
    )
    assert first.flash_lost_bits == 0
    assert first.flash_erases >= 3
    source = """
        import os, rp2
        os.mount(os.VfsLfs2(rp2.Flash(), progsize=256), "/flash")
        print(len(open("/flash/a.txt").read()))
        """
    assert ok(emulate(source, flash=[FlashFile(first.flash_after)])).stdout == "10000\n"


WRITER = """
    import rp2
    flash = rp2.Flash()
    try:
        flash.writeblocks(0, b"A" * 4096)
        flash.ioctl(6, 1)
        flash.writeblocks(1, b"B" * 300, 0)
    except Exception:
        print("not seen")
    """


def test_the_power_can_go_in_every_operation(emulate):
    """Erase, 16 pages, erase, 2 pages: 20 operations. The one that is cut is done by half."""
    old = bytes(range(256)) * 32
    for k in range(20):
        report = emulate(WRITER, cut_after=k, flash=[FlashFile(old)], keep_flash=True)
        assert report.outcome == "power cut"
        assert "not seen" not in report.stdout
        after = report.flash_after
        if k == 0:
            want = b"\xff" * 2048 + old[2048:]
        elif k < 17:
            done = (k - 1) * 256 + 128
            want = b"A" * done + b"\xff" * (4096 - done) + old[4096:]
        elif k == 17:
            want = b"A" * 4096 + b"\xff" * 2048 + old[4096 + 2048 :]
        else:
            done = 128 if k == 18 else 256 + 22
            want = b"A" * 4096 + b"B" * done + b"\xff" * (4096 - done)
        assert after[:8192] == want, k
        assert after[8192:] == b"\xff" * (PICO.flash_bytes - 8192)
    assert ok(emulate(WRITER, cut_after=20)).flash_programs == 18


def test_without_power_nothing_works(emulate):
    report = emulate(
        """
        import rp2
        from emu.flash import PowerCut
        flash = rp2.Flash()
        try:
            flash.ioctl(6, 0)
        except PowerCut:
            pass
        flash.ioctl(6, 1)
        """,
        cut_after=0,
    )
    assert report.outcome == "power cut"


# --- the command ---------------------------------------------------------------------------------


def test_command_reports(tmp_path, capfd):
    path, image, figures = tmp_path / "s.py", tmp_path / "m.bin", tmp_path / "out" / "r.json"
    path.write_text(
        "import rp2, sys\nprint(bytes(memoryview(rp2.Flash())[8192:8195]), sys.argv[1:])\n"
    )
    image.write_bytes(b"abc")
    arguments = ["emulate", str(path), "--board", "rp2040", "--peak", "--json", str(figures)]
    assert cli.main([*arguments, "--flash", f"{image}@8KiB", "--", "--board", "x"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("b'abc' ['--board', 'x']\n")
    assert err == ""
    for words in ("239,776 B (234.2 KiB)", "smallest that runs", "64-bit words"):
        assert words in out
    report = json.loads(figures.read_text())
    assert report["board"] == "rp2040"
    assert report["verdict"] == "fits"
    assert report["fits"] is True
    assert report["heap_limit_bytes"] == 239_776
    assert launcher.MIN_HEAP_BYTES < report["heap_peak_bytes"] < 10_000
    assert report["clock_hz"] == 125_000_000
    assert report["flash_bytes"] == 1408 * 1024
    assert report["notes"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("bytearray(10 ** 6)", "kvlab: error: does not fit: MemoryError: "),
        ("raise SystemExit(5)", "kvlab: error: failed: exit status 5"),
        ("{}['x']", "kvlab: error: failed: KeyError: x"),
    ],
)
def test_command_that_falls_short(tmp_path, capfd, source, message):
    path, figures = tmp_path / "s.py", tmp_path / "r.json"
    path.write_text(source)
    assert cli.main(["emulate", str(path), "--json", str(figures)]) == 1
    assert message in capfd.readouterr().err
    assert json.loads(figures.read_text())["fits"] is False


@pytest.mark.parametrize(
    ("source", "words", "suggested"),
    [
        ("bytearray(10 ** 6)", [], True),
        ("bytearray(10 ** 6)", ["--compiled"], False),
        ("bytearray(238_000)", [], False),
        ("{}['x']", [], False),
    ],
    ids=["sources", "compiled", "in one piece", "another fault"],
)
def test_what_may_take_less_heap_is_suggested(tmp_path, capfd, source, words, suggested):
    path, figures = tmp_path / "s.py", tmp_path / "r.json"
    path.write_text(source)
    assert cli.main(["emulate", str(path), "--json", str(figures), *words]) == 1
    said = "; where it imports mpy_kv or an app, add --compiled, which takes less"
    assert capfd.readouterr().err.endswith(f"{said}\n") is suggested
    assert json.loads(figures.read_text())["verdict"].endswith(said) is suggested


def test_hello_runs_on_every_board(capfd):
    for name in boards.real_names():
        assert (
            cli.main(
                [
                    "emulate",
                    str(BOARDS.parent / "unix_port" / "side" / "hello.py"),
                    "--board",
                    name,
                ]
            )
            == 0
        )
        assert "hello from a board with" in capfd.readouterr().out


LOGGER = """
    import rp2, sys
    from mpy_kv.flash_log import FlashLog
    from mpy_kv.flash_log.formatting import format_log
    from mpy_kv.flash_log.opening import open_log
    flash = rp2.Flash(len=32 * 4096)
    def log():
        return FlashLog(flash, 3000, slots=1, blocks=40)
    if sys.argv[1:] == ["format"]:
        format_log(log())
        sys.exit(0)
    log = open_log(log())
    while log.step():
        pass
    slot = log.find(3) if log.find(3) >= 0 else log.begin(3)
    into = bytearray(3000)
    print([log.read(slot, i, into) == 3000 and into == bytes([i]) * 3000 for i in range(log.count[slot])])
    while log.count[slot] < 20:
        i = log.count[slot]
        log.put(slot, i, bytes([i]) * 3000, [0, 3000])
        while log.step():
            pass
    log.sync(slot)
    """


def test_a_torn_cut_leaves_what_chips_leave(emulate):
    """A flash log on the board's flash outlives a cut every so many operations, whatever bits are weak
    then."""
    report = ok(emulate(LOGGER, "format", keep_flash=True))
    flash, state, seen = [FlashFile(report.flash_after)], None, []
    for k in range(12):
        how = {"cut_after": 37, "torn": k + 1, "flash_state": state, "keep_flash": True}
        report = emulate(LOGGER, flash=flash, **how)
        flash, state = [FlashFile(report.flash_after)], report.flash_state
        found = json.loads(report.stdout.lower().strip() or "[]")
        assert all(found)
        seen.append(len(found))
        assert report.outcome in ("power cut", "ok"), report.stderr
    assert seen[-1] >= 3
    report = ok(emulate(LOGGER, flash=flash, flash_state=state, keep_flash=True))
    report = ok(emulate(LOGGER, flash=[FlashFile(report.flash_after)], flash_state=report.flash_state))
    assert report.stdout == str([True] * 20) + "\n"
