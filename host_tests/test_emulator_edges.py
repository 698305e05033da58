"""Around a run of the emulator: long names, odd text, files that cannot be written, signals, programs
that are no MicroPython.
"""

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiny_model
from stories_fixtures import tiny

from commandline.errors import FellShort
from kvlab import boards, cli, story
from kvlab.paths import ROOT
from unix_port import compiled, launcher, pipes, port, processes
from unix_port.errors import PortError

PICO = boards.load("rp2040").machine
S3 = boards.load("esp32s3").machine
UNIX_BOARDS = [name for name in boards.names() if not boards.load(name).emulated]
KVLAB = [sys.executable, "-m", "kvlab"]


@pytest.fixture
def emulate(tmp_path):
    """`emulate(source, *args, machine=PICO, ...)`: the report of a script given as text."""

    def run(source, *args, machine=PICO, **how):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(source))
        return launcher.emulate(path, args, machine, **{"timeout_s": 60, **how})

    return run


@pytest.fixture
def command(tmp_path, capfd):
    """`command("emulate", ..., source=...)`: (exit status, stdout, stderr) of kvlab."""

    def run(*words, source="print('ran')"):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(source))
        status = cli.main([word.replace("SCRIPT", str(path)) for word in words])
        return status, *capfd.readouterr()

    return run


def one_line(text):
    """stderr must be one line of error."""
    assert text.startswith("kvlab: error: "), text
    assert text.count("\n") == 1, text
    return text


def ok(report):
    """The report of a run that must have gone well."""
    assert report.outcome == "ok", report.stderr
    return report


def alive(pid):
    """Whether a process has not ended, waited for or not."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return bool(listed.stdout.strip()) and not listed.stdout.startswith("Z")


def gone(pid, within_s=10):
    """Whether a process ends; one that was killed may take a moment on a busy machine."""
    deadline = time.monotonic() + within_s
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# --- names ---------------------------------------------------------------------------------------


def deep(folder, count=300):
    """A folder below `folder` whose path is longer than `count` bytes."""
    while len(str(folder)) < count:
        folder = folder / ("d" * 100)
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "word",
    ["", "x" * 255, "x" * 256, "x" * 100_000, "ü" * 200, "two\nlines", "\u2028", "😀", '"\\', "\0"],
    ids=lambda word: f"{len(word)} of {ascii(word[:1])}",
)
def test_any_argument_arrives(emulate, word):
    report = ok(emulate("import sys; print(len(sys.argv), sys.argv[1:])", "-x", word, "end"))
    assert report.stdout.startswith("4 ['-x', ")
    script = "import sys; sys.stdout.write(sys.argv[1])"
    assert ok(emulate(script, word)).stdout == word


def test_the_script_has_its_own_name(emulate, tmp_path):
    report = ok(emulate("import sys; print(sys.argv[0])"))
    assert report.stdout == f"{tmp_path / 'script.py'}\n"


@pytest.mark.parametrize("name", ["ü" * 100 + ".py", "a:b.py", "x" * 252 + ".py", "not utf-8 \udcff.py"])
def test_a_script_of_any_name_runs(tmp_path, name):
    folder = deep(tmp_path / name[:-3][:100])
    (folder / name).write_text("import beside, sys; print(beside.answer, len(sys.argv[0]))\n")
    (folder / "beside.py").write_text("answer = 42\n")
    report = ok(launcher.emulate(folder / name, (), PICO, timeout_s=60))
    assert report.stdout == f"42 {len(str(folder / name))}\n"


def test_a_traceback_names_the_true_files(tmp_path):
    folder = deep(tmp_path)
    (folder / "script.py").write_text("import beside\nbeside.fall()\n")
    (folder / "beside.py").write_text("def fall():\n    1 / 0\n")
    report = launcher.emulate(folder / "script.py", (), PICO, timeout_s=60)
    assert f'File "{folder}/script.py", line 2' in report.stderr
    assert f'File "{folder}/beside.py", line 2, in fall' in report.stderr


def test_what_lies_in_our_folder_is_not_taken_for_the_emulators(emulate, tmp_path, monkeypatch):
    for name in ("boot", "machine", "emu", "rp2"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    monkeypatch.chdir(tmp_path)
    ok(emulate("import machine, emu, rp2; print(machine.freq(), open('script.py').read(6))"))


PROBE = """
    import gc
    print(gc.mem_free())
    import beside, json, stories
    gc.collect()
    print(gc.mem_free())
    kept = bytearray(20_000)
    """


def test_no_path_argument_or_environment_takes_heap(tmp_path, monkeypatch):
    """The same to the byte, from a short and a long everything: script, TMPDIR, repository, words."""

    def probe(folder, words, env):
        (folder / "script.py").write_text(textwrap.dedent(PROBE))
        (folder / "beside.py").write_text("x = 'beside'\n")
        (folder / "tmp").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
        how = {"env": env, "timeout_s": 60, "compiled": True}
        report = ok(launcher.emulate(folder / "script.py", words, PICO, **how))
        least = launcher.smallest_heap(
            folder / "script.py", words, PICO, resolution_bytes=1024, first=report, **how
        )
        marks = [mark.live_bytes for mark in report.marks]
        return report.stdout, report.allocated_bytes, report.heap_live_end_bytes, marks, least

    near = tmp_path / "n"
    near.mkdir()
    short = probe(near, (), {})
    far = deep(tmp_path)
    root = far / "repository"
    root.symlink_to(ROOT)
    monkeypatch.setattr(launcher, "SIDE", root / "unix_port" / "side")
    monkeypatch.setattr(port, "MODULE_PATH", (root, root / "boards" / "apps"))
    assert probe(far, ["word" * 2000] * 9, {"LONG": "value" * 1000}) == short


def test_a_long_prompt_and_a_long_temporary_folder(tmp_path, monkeypatch):
    """On a board that reads its model from a file."""
    monkeypatch.setattr("tempfile.tempdir", str(deep(tmp_path)))
    telling = story.Telling(tokens=3, prompt="ab" * 130)
    told = story.tell(boards.load("esp32s3"), tiny()[2], telling)
    assert told.figures["text"].startswith(telling.prompt)


def test_an_argument_that_is_no_text(command):
    status, out, err = command("emulate", "SCRIPT", "--", "caf\udce9")
    assert status == 2
    assert "not UTF-8" in one_line(err)
    assert out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["script.py", "x" * 256], "256 bytes"),
        (["d" * 300 + "/script.py"], "no name or argument of more than 255"),
        (["-c", "pass", "ü" * 128], "256 bytes"),
        (["-c", "pass", "\udcff"], "not UTF-8"),
        (["-c", "pass", "\0"], "zero byte"),
    ],
)
def test_words_that_would_end_the_interpreter_are_refused(words, message):
    with pytest.raises(PortError, match=message):
        port.run(words)


def test_code_may_be_long():
    assert port.run(["-c", "print(1)" + " " * 1000]).stdout == "1\n"


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error"),
    [
        ("ValueError('a\\u2028b\\x85c\\nd')", "ValueError: a b c d"),
        ("ValueError('a' + chr(0xd800) + 'b')", "ValueError: a\ufffd\ufffd\ufffdb"),
        ("ValueError('x' * 100_000)", "ValueError: " + "x" * 500 + "..."),
        ("ValueError('ü' * 100_000)", "ValueError: " + "ü" * 500 + "..."),
        ("Silent()", "Silent: <its text raises RuntimeError>"),
        ("Stopping()", "Stopping: <its text raises SystemExit>"),
    ],
)
def test_any_text_of_an_error_is_told(emulate, make, error):
    report = emulate(
        f"""
        class Silent(Exception):
            def __str__(self):
                raise RuntimeError
        class Stopping(Exception):
            def __str__(self):
                raise SystemExit
        raise {make}
        """,
        heap_bytes=1 << 20,
    )
    assert (report.outcome, report.error) == ("failed", error)
    assert "Traceback" in report.stderr


def test_an_error_text_that_fills_the_heap_is_told(emulate):
    """No copy of it has room."""
    report = emulate("text = 'x' * 200_000\nraise ValueError(text)")
    assert report.error == "ValueError: " + "x" * 500 + "..."


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("'a\\u2028b'", "a\u2028b"),
        ("'a\\x85b\\nc'", "a\x85b\nc"),
        ("chr(0xd800)", "\ufffd\ufffd\ufffd"),
        ("'x' * 50_000", "x" * 500 + "..."),
        ("Silent()", "<its text raises RuntimeError>"),
        ("5", "5"),
    ],
)
def test_any_label_of_a_mark_is_told(emulate, label, told):
    report = ok(
        emulate(
            f"""
            from emu import mark
            class Silent:
                def __str__(self):
                    raise RuntimeError
            mark({label})
            """
        )
    )
    assert [mark.label for mark in report.marks] == [told]


@pytest.mark.parametrize(
    ("value", "status", "said"),
    [
        ("'sorry, no'", 1, "sorry, no\n"),
        ("''", 1, "\n"),
        ("None", 0, ""),
        ("True", 1, ""),
        ("False", 0, ""),
        ("-1", 255, ""),
        ("256", 0, ""),
        ("[1, 2]", 1, "[1, 2]\n"),
        ("1.5", 1, "1.5\n"),
    ],
)
def test_sys_exit_does_as_in_cpython(emulate, value, status, said):
    source = f"import sys; sys.exit({value})"
    of_python = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert (of_python.returncode, of_python.stderr) == (status, said)
    report = emulate(source)
    assert (report.status, report.stderr) == (status, said)
    assert report.outcome == ("failed" if status else "ok")


def test_a_stream_that_cannot_show_it_gets_question_marks(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    done = port.run(["-c", "print('\\xfcber', 5)\nprint('end')"], stream=True, timeout_s=60)
    assert done.stdout == "über 5\nend\n"
    assert raw.getvalue() == b"?ber 5\nend\n"


def test_the_command_on_a_terminal_of_ascii_ends(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("for i in range(50): print('ünicode 😀' * 500)\nraise ValueError('ö')\n")
    done = subprocess.run(
        [*KVLAB, "emulate", str(path)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stdout.count(b"nicode") == 25_000
    assert b"kvlab: error: failed: ValueError: " in done.stderr


# --- the time that is up -------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "-1", "0"])
def test_timeouts_that_are_none(emulate, command, seconds):
    with pytest.raises(PortError, match="timeout"):
        emulate("", timeout_s=float(seconds))
    status, _, err = command("emulate", "SCRIPT", "--timeout", seconds)
    assert status == 2
    assert "--timeout" in one_line(err)


IN_THE_BACKGROUND = """
    import os
    os.system("sh -c 'echo $$; exec sleep 1000' & sleep 0")
    print("end of the script")
    """


def test_what_a_script_leaves_running_does_not_hold_us(emulate):
    report = ok(emulate(IN_THE_BACKGROUND, timeout_s=None))
    assert "end of the script" in report.stdout
    assert all(gone(int(line)) for line in report.stdout.splitlines() if line.isdigit())


def test_nor_past_the_timeout(emulate):
    report = emulate(IN_THE_BACKGROUND + "while True: pass\n", timeout_s=3)
    assert report.outcome == "timed out"
    pids = [int(line) for line in report.stdout.splitlines() if line.isdigit()]
    assert len(pids) == 1
    assert gone(pids[0])


def test_nor_what_has_left_its_group(emulate, tmp_path, monkeypatch):
    """Nobody can kill that, so its pipe is read for a moment more and then left."""
    monkeypatch.setattr(pipes, "DRAIN_S", 0.2)
    os.mkfifo(tmp_path / "left")
    (tmp_path / "leave.py").write_text(
        "import os, time\nos.setsid()\nopen('left', 'w').write(str(os.getpid()))\ntime.sleep(1000)\n"
    )
    source = f"import os; os.system('{sys.executable} leave.py & read pid < left; echo $pid')"
    report = ok(emulate(source, cwd=tmp_path, timeout_s=None))
    pid = int(report.stdout)
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


# --- signals -------------------------------------------------------------------------------------

SPINNING = """
    import os, sys
    print(sys.path[0])
    os.system("echo $PPID")
    print("on")
    while True:
        pass
    """


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_board_too_and_leaves_nothing(tmp_path, number, status):
    (tmp_path / "script.py").write_text(textwrap.dedent(SPINNING))
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        [*KVLAB, "emulate", str(tmp_path / "script.py")],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # One ignored by whoever started the tests, as nohup does, stays ignored.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        home = Path(process.stdout.readline().strip())
        pid = int(process.stdout.readline())
        assert process.stdout.readline() == "on\n"
        assert home.exists()
        process.send_signal(number)
        try:
            assert process.wait(30) == status
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read().strip() in ("kvlab: interrupted", "kvlab: terminated")
    assert gone(pid)
    assert not home.parent.exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_signal_ends_work_in_threads(tmp_path):
    """bench loss, all its workers waiting for an interpreter that never answers."""
    checkpoint, _ = tiny_model.write_tiny(tmp_path, seq_len=64)
    (tmp_path / "text.txt").write_text("ab ba " * 40 + "\n\n" + "ba ab " * 40)
    os.mkfifo(tmp_path / "started")
    endless = tmp_path / "micropython"
    endless.write_text(f"#!/bin/sh\necho on > {tmp_path}/started\nexec sleep 1000\n")
    endless.chmod(0o755)
    words = ["bench", "loss", "--model", str(checkpoint), "--text", str(tmp_path / "text.txt")]
    with subprocess.Popen(
        [*KVLAB, *words],
        env={**os.environ, port.INTERPRETER_ENV: str(endless)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            with open(tmp_path / "started") as started:  # until one opens the other end
                assert started.readline() == "on\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr is not None
            assert process.stderr.read().strip() == "kvlab: interrupted"
        finally:
            process.kill()


def test_signals_are_as_before_afterwards(emulate):
    before = [signal.getsignal(number) for number in processes.SIGNALS]
    with processes.stopped_by_signals(), pytest.raises(processes.Terminated) as end:
        signal.raise_signal(signal.SIGTERM)
    assert end.value.status == 143
    assert [signal.getsignal(number) for number in processes.SIGNALS] == before
    ok(emulate(""))


def test_nothing_starts_while_all_is_stopped(emulate):
    with processes.stopped_by_signals():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(PortError, match="stopped"):
            emulate("")


def test_what_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with processes.stopped_by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_while_a_process_is_registered_waits_for_that(monkeypatch):
    """Acting on it there would wait for the lock that this thread holds, or leave the process."""
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *words, **how):
            signal.raise_signal(signal.SIGTERM)
            super().__init__(*words, **how)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with (
        processes.stopped_by_signals(),
        pytest.raises(processes.Terminated),
        processes.started(["sleep", "1000"]),
    ):
        pass
    assert started[0].wait(30) == -signal.SIGKILL


# --- files that cannot be written ----------------------------------------------------------------


def test_the_flash_is_written_where_it_was_asked_for(command, tmp_path):
    target = tmp_path / "new" / "flash.bin"
    source = "import rp2; rp2.Flash().writeblocks(1, b'abc', 0)"
    assert command("emulate", "SCRIPT", "--flash-out", str(target), source=source)[0] == 0
    assert target.read_bytes() == b"\xff" * 4096 + b"abc" + b"\xff" * (PICO.flash_bytes - 4099)


@pytest.mark.parametrize("target", ["{tmp}", "{tmp}/file/flash.bin", "/dev/full"])
def test_a_bad_place_for_the_flash_is_refused_before_the_run(command, tmp_path, target):
    (tmp_path / "file").write_text("")
    status, out, err = command("emulate", "SCRIPT", "--flash-out", target.format(tmp=tmp_path))
    assert status == 2
    assert "--flash-out" in one_line(err)
    assert "ran" not in out


def test_a_disk_that_is_full_after_the_run(command, tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("commandline.files.replace_file", full)
    status, out, err = command("emulate", "SCRIPT", "--flash-out", str(tmp_path / "flash.bin"))
    assert status == 2
    assert "No space left" in one_line(err)
    assert "ran" in out


@pytest.mark.parametrize("how", ["write", "folder"])
def test_a_full_temporary_folder_is_one_line(command, tmp_path, monkeypatch, how):
    def full(*_words, **_how):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "x"))

    if how == "write":
        monkeypatch.setattr(Path, "write_bytes", full)
    else:
        monkeypatch.setattr("tempfile.mkdtemp", full)
    status, _, err = command("emulate", "SCRIPT")
    assert status == 2
    assert "No space left" in one_line(err)
    assert "TMPDIR" in err


def test_a_report_that_is_cut_short_says_why(emulate):
    """As when the temporary folder is full once the script has ended."""
    report = emulate("from emu import native; native.code_bytes = open")
    assert report.outcome == "crashed"
    assert "exit status 1 and no report: TypeError" in report.error


def test_a_flash_that_could_not_be_kept_is_an_error(emulate):
    in_the_way = "import os, sys; os.mkdir(sys.path[1].replace('/side', '/data/flash_after'))"
    with pytest.raises(PortError, match="TMPDIR"):
        emulate(in_the_way, keep_flash=True)


@pytest.fixture
def tiny_package(tmp_path):
    folder = tmp_path / "source" / "tiny"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("x = 1\n")
    return {folder: "tiny"}


def test_without_a_cache_modules_are_compiled_into_a_temporary_folder(tmp_path, monkeypatch, tiny_package):
    (tmp_path / "out").write_text("a file where the folder would be")
    monkeypatch.setattr(compiled, "CACHE", tmp_path / "out" / "compiled")
    made = compiled.compile_tree(tiny_package, "x64")
    assert (made / "tiny" / "__init__.mpy").is_file()
    assert compiled.compile_tree(tiny_package, "x64") == made


def test_with_no_place_at_all_that_is_one_line(tmp_path, monkeypatch, tiny_package):
    def full(*_words, **_how):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(compiled, "CACHE", tmp_path / "cache")
    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    compiled._private_cache.cache_clear()
    with pytest.raises(PortError, match="no place for compiled modules.*TMPDIR"):
        compiled.compile_tree(tiny_package, "x64")


def refuse(*_words, **_how):
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_somebody_elses_compiler_is_used_as_it_is(monkeypatch):
    program = compiled.compiler()
    monkeypatch.setattr(Path, "chmod", refuse)
    assert compiled.compiler() == program


def test_a_compiler_that_may_not_be_run_is_passed_over(monkeypatch):
    monkeypatch.setattr(Path, "chmod", refuse)
    monkeypatch.setattr(os, "access", lambda *_words: False)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(PortError, match="KVLAB_MPY_CROSS"):
        compiled.compiler()


def test_a_compiler_that_does_not_start(tmp_path, monkeypatch, tiny_package):
    broken = tmp_path / "mpy-cross"
    broken.write_bytes(b"\x7fELF of no machine")
    broken.chmod(0o755)
    monkeypatch.setenv(compiled.COMPILER_ENV, str(broken))
    monkeypatch.setattr(compiled, "CACHE", tmp_path / "cache")
    with pytest.raises(PortError, match="does not start.*KVLAB_MPY_CROSS"):
        compiled.compile_tree(tiny_package, "x64")


# --- programs that are no MicroPython ------------------------------------------------------------


@pytest.fixture(params=["gone", "folder", "text", "binary", "true", "echo"])
def no_micropython(request, tmp_path, monkeypatch):
    """$KVLAB_MICROPYTHON names something else."""
    path = tmp_path / "program"
    if request.param == "folder":
        path.mkdir()
    elif request.param == "text":
        path.write_text("not executable")
    elif request.param == "binary":
        path.write_bytes(b"\x7fELF of no machine")
        path.chmod(0o755)
    elif request.param != "gone":
        path = Path(shutil.which(request.param))
    monkeypatch.setenv(port.INTERPRETER_ENV, str(path))
    return path


def test_commands_name_the_variable(no_micropython, command, tmp_path):
    checkpoint, _ = tiny_model.write_tiny(tmp_path, seq_len=64)
    (tmp_path / "text.txt").write_text("ab ba " * 40)
    for words in (
        ["emulate", "SCRIPT"],
        ["stories", "--model", str(checkpoint), "--tokens", "3"],
        ["demo", "--model", str(checkpoint), "--tokens", "8", "--out", str(tmp_path)],
        ["bench", "kernels"],
        ["bench", "loss", "--model", str(checkpoint), "--text", str(tmp_path / "text.txt")],
    ):
        status, _, err = command(*words)
        assert (status, port.INTERPRETER_ENV in one_line(err)) == (2, True), (words, err)
    status, out, err = command("doctor")
    assert status == 1
    assert port.INTERPRETER_ENV in out
    assert "missing: MicroPython, emulator" in one_line(err)


# --- the flash and buffers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "device"), [(PICO, "__import__('rp2').Flash()"), (S3, "__import__('esp32').Partition('vfs')")]
)
def test_blocks_go_through_any_buffer_that_can_be_written(emulate, machine, device):
    report = ok(
        emulate(
            f"""
            import micropython
            from array import array
            flash = {device}
            words = array("i", [1, -2, 0x01020304, 7])
            flash.writeblocks(3, words, 8)
            same = array("i", [0] * 4)
            flash.readblocks(3, same, 8)
            assert list(same) == list(words), same
            raw = bytearray(4)
            flash.readblocks(3, raw, 16)
            assert raw == b"\\x04\\x03\\x02\\x01", raw
            for typecode, size in (("b", 1), ("H", 2), ("I", 4), ("q", 8), ("d", 8)):
                one = array(typecode, [0])
                flash.writeblocks(5, one, 0)
                flash.readblocks(5, raw, size)
                assert raw[0] == 0xFF, typecode
                flash.ioctl(6, 5)
            flash.readblocks(3, memoryview(same)[1:], 8)
            assert list(same) == [1, 1, -2, 0x01020304], same
            last = array("h", [0] * 2048)
            before = after = 0
            before = micropython.mem_total()
            flash.readblocks({machine.flash_bytes // 4096 - 1}, last)
            after = micropython.mem_total()
            assert last[-1] == -1 and before == after
            kept = b"1234"
            for wrong in (kept, memoryview(kept), "text", 5, None, [0] * 4):
                try:
                    flash.readblocks(3, wrong, 8)
                except TypeError:
                    continue
                raise AssertionError(wrong)
            assert kept == b"1234"
            for wrong in (5, None, [0] * 4):
                try:
                    flash.writeblocks(3, wrong, 8)
                except TypeError:
                    continue
                raise AssertionError(wrong)
            try:
                flash.readblocks({machine.flash_bytes // 4096 - 1}, array("i", [0] * 1025))
            except OSError:
                print("ends there")
            """,
            machine=machine,
        )
    )
    assert report.stdout == "ends there\n"


@pytest.mark.parametrize("name", UNIX_BOARDS)
def test_a_model_larger_than_the_flash_does_not_fit(name):
    board = boards.load(name)
    size = board.machine.flash_bytes + 1
    with pytest.raises(FellShort, match=f"does not fit: .*{size:,} bytes.*{size - 1:,} of flash") as error:
        story.tell(board, bytes(size), story.Telling(sinks=0))
    assert error.value.exit_code == 1


def test_a_signal_is_seen_however_late_a_job_ends(monkeypatch):
    """Also one that came before the wait began: the wait comes back of itself and looks."""
    looked = []
    wait = processes.wait

    def counting(jobs, limit, when):
        looked.append(limit)
        if len(looked) == 3:
            release.set()
        return wait(jobs, limit, when)

    release = threading.Event()
    monkeypatch.setattr(processes, "wait", counting)
    monkeypatch.setattr(processes, "LOOK_S", 0.01)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(release.wait, 30) for _ in range(2)]
        assert [job.result() for job in processes.as_completed(jobs)] == [True, True]
    assert len(looked) >= 3


def test_a_signal_waits_where_it_is_held():
    went_on = []

    def work():
        with processes.signals_held():
            with processes.signals_held():  # the inner end is not the end
                signal.raise_signal(signal.SIGINT)
            went_on.append(True)

    with processes.stopped_by_signals(), pytest.raises(KeyboardInterrupt):
        work()
    assert went_on
