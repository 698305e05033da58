"""tools/viper_lint: each rule refuses what it is for and accepts the same done right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kvlab.paths import ROOT

TOOLS = ROOT / "tools"
sys.path.insert(0, str(TOOLS))
from viper_lint import RULES, lint_paths, lint_text  # noqa: E402
from viper_lint.jumps import armv6m_jumps, armv7m_branches, code  # noqa: E402

HEAD = "import micropython\nfrom micropython import const\n_WIDE = const(0)\n_LIMIT = const(0x3FFFFFFF)\n"
LINES = HEAD.count("\n")


def viper(body: str, head: str = "p: ptr32, h: ptr16, b: ptr8, n: int") -> str:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}@micropython.viper\ndef f({head}) -> int:\n{indented}"


def thumb(body: str, head: str = "r0, r1") -> str:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}@micropython.asm_thumb\ndef f({head}):\n{indented}"


def loop(statements: int, line: str = "x += n") -> str:
    """A function whose loop jumps over that many statements."""
    return viper("x = 0\nwhile x < n:\n" + f"    {line}\n" * statements + "return x")


def native(statements: int) -> str:
    return HEAD + "@micropython.native\ndef f(n):\n    while n:\n" + "        n.a(n)\n" * statements


# rule -> pairs of a text that it refuses and one that nothing refuses
PAIRS = {
    "unary": [
        (viper("x = n + 1\nreturn -x"), viper("x = n + 1\nreturn 0 - x")),
        (viper("x = n + 1\nreturn ~x"), viper("x = n + 1\nreturn x ^ -1")),
        (viper("return -int(n)"), viper("return -(n + 1)")),
        (viper("return -(x := n)"), viper("return -int(p[0])")),
        (viper("return -(n if n else 1)"), viper("return -_LIMIT")),
    ],
    "indexed": [
        (viper("return int(p[n])"), viper("return int(ptr32(int(p) + (n << 2))[0])")),
        (viper("h[n] = 1\nreturn 0"), viper("h[1] = 1\nreturn 0")),
        (viper("q = ptr16(int(b) + 2)\nreturn int(q[n])"), viper("q = ptr8(int(b) + 2)\nreturn int(q[n])")),
        (viper("p[n & 3] += 1\nreturn 0"), viper("b[n & 3] += 1\nreturn 0")),
    ],
    "far-store": [
        (viper("p[32] = n\nreturn 0"), viper("p[31] = n\nreturn 0")),
        (viper("h[4096] = n\nreturn 0"), viper("return int(h[4096])")),
    ],
    "negative-index": [(viper("return int(b[-1])"), viper("return int(b[1])"))],
    "literal": [
        (viper("return n & 0x40000000"), viper("return n & 0x3FFFFFFF")),
        (viper("return n & -0x40000001"), viper("return n & -0x40000000")),
        (viper("return 1 << 30"), viper("one = 1\nreturn one << 30")),
        (viper("return _LIMIT + 1"), viper("return (_LIMIT + 1) >> 1")),
        (viper("return int(n + 1.5)"), viper("return n + 1")),
    ],
    "divide": [
        (viper("return 5 // n"), viper("return 5 // n if n else 0")),
        (viper("return 5 % n"), viper("return n % 5")),
        (viper("n //= int(p[0])\nreturn n"), viper("n //= 3\nreturn n")),
        (
            viper("if n:\n    n -= 1\n    return 5 // n\nreturn 0"),
            viper("if n > 0:\n    return 5 // n\nreturn 0"),
        ),
        (viper("if n >= 0:\n    return 5 // n\nreturn 0"), viper("if n >= 1:\n    return 5 // n\nreturn 0")),
        (viper("if not n:\n    n = 0\nreturn 5 // n"), viper("if not n:\n    return 0\nreturn 5 // n")),
        (
            viper("if n == 0:\n    return 0\nn -= 1\nreturn 5 // n"),
            viper("if n == 0:\n    return 0\nelse:\n    return 5 // n"),
        ),
        (
            viper("if n or p[0]:\n    return 5 // n\nreturn 0"),
            viper("if n and p[0]:\n    return 5 // n\nreturn 0"),
        ),
        (
            viper("while n:\n    n = 5 // n\nreturn n"),
            viper("x = 0\nwhile n != 0:\n    x += 5 // n\nreturn x"),
        ),
    ],
    "signature": [
        (viper("return n", "p: ptr32, n: int = 3"), viper("return n", "p: ptr32, n: int")),
        (viper("return n", "p: ptr32, *, n: int"), viper("return n", "p: ptr32, n: int")),
        (viper("return int(p[0])", "p: ptr32, *n"), viper("return int(p[0])", "p: ptr32")),
        (viper("return int(p[0])", "p: ptr32, **n"), viper("return int(p[0])", "p: ptr32")),
    ],
    "is-none": [
        (viper("if x is None:\n    return 0\nreturn 1", "x"), viper("if n == 0:\n    return 0\nreturn 1")),
        (viper("if x is not None:\n    return 0\nreturn 1", "x"), viper("if n:\n    return 0\nreturn 1")),
    ],
    "global": [
        (viper("return int(len(x))", "x"), viper("return n")),
        (
            "_x = 3\n" + viper("return int(_x)"),
            "from micropython import const\n_x = const(3)\n" + viper("return _x"),
        ),
        (
            viper("x = 0\nfor i in reversed(range(n)):\n    x += int(i)\nreturn x"),
            viper("x = 0\nfor i in range(n):\n    x += i\nreturn x"),
        ),
        (viper("global total\ntotal = n\nreturn 0"), viper("total = n\nreturn total")),
    ],
    "try": [
        (viper("try:\n    n = 1\nfinally:\n    n = 2\nreturn n"), viper("n = 1\nn = 2\nreturn n")),
        (viper("with x:\n    return 1\nreturn 0", "x"), viper("return 1")),
    ],
    "arguments": [
        (viper("return n", "p: ptr8, q: ptr8, a: ptr32, m: int, n: int"), viper("return n")),
    ],
    "order": [
        (viper("return n", "n: int, p: ptr8"), viper("return n", "p: ptr8, n: int")),
        (
            viper("return n", "p: ptr8, n: int, q: ptr8"),
            viper("return n", "p: ptr8, q: ptr8, n: int, a: ptr32"),
        ),
        (viper("return int(p[0])", "self, p: ptr8"), viper("return n", "n: int, m: int")),
    ],
    "far-jump": [
        (loop(200), loop(100)),
        (loop(100, "n = p[0] & 0x12345"), loop(50, "n = p[0] & 0x12345")),
        (native(300), native(60)),
    ],
    "refused": [(viper("return n / 2"), viper("return n // 2"))],
    "mixed": [
        (viper("return int(uint(n) + n)"), viper("return int(uint(n) + uint(n))")),
        (
            viper("u = uint(n)\nif u < n:\n    return 0\nreturn 1"),
            viper("if int(uint(n)) < n:\n    return 0\nreturn 1"),
        ),
        (viper("u = uint(n)\nreturn int(u // 3)"), viper("u = uint(n)\nreturn int(u) // 3")),
        (viper("u = uint(n)\nu += 1\nreturn int(u)"), viper("u = uint(n)\nu += uint(1)\nreturn int(u)")),
    ],
    "uint-result": [(viper("return uint(n)").replace("-> int", "-> uint"), viper("return int(uint(n))"))],
    "shift": [
        (viper("return n << 32"), viper("return n << 31")),
        (viper("return n >> -1"), viper("return n >> 1")),
        (viper("n <<= 32\nreturn n"), viper("if _WIDE:\n    n = n << 32 >> 32\nreturn n")),
        (
            viper("if _WIDE:\n    n += 1\nelse:\n    n = n >> 40\nreturn n"),
            viper("if _WIDE:\n    n = n >> 40\nreturn n"),
        ),
    ],
    "extend": [
        (viper("return int(b[0]) << 24 >> 24"), viper("return (int(b[0]) ^ 0x80) - 0x80")),
        (viper("return (int(h[0]) << 16) >> 16"), viper("return (int(h[0]) << 16) >> 12")),
    ],
    "sign": [
        (viper("if p[0] < 0:\n    return 1\nreturn 0"), viper("if p[0] > 0:\n    return 1\nreturn 0")),
        (
            viper("x = int(p[0])\nif x < -5:\n    return 1\nreturn 0"),
            viper("x = int(p[0])\nif _WIDE:\n    x = x << 32 >> 32\nif x < -5:\n    return 1\nreturn 0"),
        ),
        (
            viper("x = p[0]\nif 0 - n > x:\n    return 1\nreturn 0"),
            viper("x = b[0]\nif 0 - n > x:\n    return 1\nreturn 0"),
        ),
    ],
    "unaligned": [
        (viper("p = ptr32(int(p) + 2)\nreturn int(p[0])"), viper("p = ptr32(int(p) + 8)\nreturn int(p[0])")),
        (viper("h = ptr16(int(h) - 1)\nreturn int(h[0])"), viper("b = ptr8(int(b) - 1)\nreturn int(b[0])")),
        (viper("h = ptr16(int(p) + 3)\nreturn int(h[0])"), viper("h = ptr16(int(p) + 2)\nreturn int(h[0])")),
    ],
    "unbound": [
        (viper("x += n\nreturn x"), viper("x = 0\nx += n\nreturn x")),
        (viper("x = x + n\nreturn x"), viper("while n:\n    x = 1\n    n -= x\nreturn n")),
        (
            HEAD + "class A:\n    @micropython.native\n    def f(self):\n        x += 0\n        return x\n",
            HEAD + "class A:\n    @micropython.native\n    def f(self):\n        x = [y for y in self.z]\n"
            "        return x\n",
        ),
    ],
    "asm-op": [
        (thumb("movw(r0, 0x1234)"), thumb("mov(r0, 0x12)")),
        (thumb("clz(r0, r1)"), thumb("mvn(r0, r1)")),
        (thumb("add(r0, r0)").replace("add", "sdiv"), thumb("add(r0, r0, r1)")),
        (thumb("push({r4, r8})"), thumb("push({r4, r7, lr})\npop({r4, r7, pc})")),
        (thumb("label(A)\nbne_w(A)"), thumb("label(A)\nbne(A)")),
        (thumb("and_(r0, r0, r1)"), thumb('"""What it does."""\nand_(r0, r1)')),
        (thumb("x = 1"), thumb("data(2, 1, 2)\nalign(4)")),
    ],
    "asm-arguments": [
        (thumb("nop()", "r0, r1, r2, r3, r4"), thumb("nop()", "r0, r1, r2, r3")),
        (thumb("nop()", "r1, r0"), thumb("nop()", "")),
        (thumb("nop()", "r0, r1=1"), thumb("nop()", "r0")),
    ],
    "allowance": [
        (
            viper("return n  # viper: allow divide because n is small"),
            viper("return 5 // n  # viper: allow divide because n is small"),
        ),
        (viper("return 5 // n  # viper: allow divide"), viper("return n  # viper: fine")),
        (
            viper("return n  # viper: allow nonsense because so"),
            viper('b = ptr8(b"# viper: allow x")\nreturn n'),
        ),
    ],
}

CASES = [(rule, at) for rule, pairs in PAIRS.items() for at in range(len(pairs))]


def rules_of(text: str) -> set[str]:
    return {finding.rule for finding in lint_text(text, "x.py")}


def test_every_rule_has_a_pair() -> None:
    assert set(PAIRS) == set(RULES)


@pytest.mark.parametrize(("rule", "at"), CASES)
def test_the_bad_one_is_refused(rule: str, at: int) -> None:
    assert rule in rules_of(PAIRS[rule][at][0])


@pytest.mark.parametrize(("rule", "at"), CASES)
def test_its_good_twin_is_accepted(rule: str, at: int) -> None:
    assert lint_text(PAIRS[rule][at][1], "x.py") == []


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"allowance"}))
def test_each_can_be_allowed_where_it_stands(rule: str) -> None:
    text = PAIRS[rule][0][0]
    found = lint_text(text, "x.py")
    assert {finding.rule for finding in found} == {rule}, "a first pair shows one fault alone"
    lines = text.splitlines()
    for finding in found:
        lines[finding.line - 1] += f"  # viper: allow {rule} because the test says so"
    # What the compiler refuses it still does.
    assert rules_of("\n".join(lines) + "\n") <= {"refused"} - {rule}


def test_several_rules_on_one_line() -> None:
    text = viper("return -n // n  # viper: allow unary, divide because the test says so")
    assert lint_text(text, "x.py") == []
    (idle,) = lint_text(text.replace("-n // n", "5 // n"), "x.py")
    assert (idle.rule, idle.detail) == ("allowance", "unary")


def test_an_allowed_function_is_still_measured() -> None:
    text = loop(200).replace("x = 0\n", "x = 5 // n  # viper: allow divide because the test says so\n")
    assert rules_of(text) == {"far-jump"}


def test_plain_functions_are_nobodys_business() -> None:
    assert lint_text("def f(a, *, b=1):\n    return -a // b if a is None else 1 << 40\n", "x.py") == []


def test_a_finding_is_one_line_that_names_the_place() -> None:
    (finding,) = lint_text(viper("x = n\nreturn 5 // x"), "kernels/x.py")
    assert str(finding) == f"kernels/x.py:{LINES + 4}: divide: {RULES['divide'].message} (x)"
    assert all("\n" not in rule.message and len(rule.message) < 100 for rule in RULES.values())


def test_methods_are_measured_as_functions_are() -> None:
    method = "".join(f"    {line}\n" for line in loop(200)[len(HEAD) :].splitlines())
    assert rules_of(f"{HEAD}class A:\n{method}") == {"far-jump"}


def test_jumps_of_armv6m_are_those_of_the_old_layout() -> None:
    """Backward over the same statements, whatever the new compiler pads its forward jumps with."""
    flat = code(loop(100), "armv6m")
    forked = code(loop(100, "x += 1 if n else 2"), "armv6m")
    assert max(map(abs, armv6m_jumps(flat))) < len(flat) <= 2048
    assert max(map(abs, armv6m_jumps(forked))) < len(forked) - 100 * 2 * 6, "two padded jumps each"
    assert min(armv6m_jumps(flat)) < 0 < max(armv6m_jumps(forked))


def test_conditional_branches_of_armv7m() -> None:
    near, far = (list(armv7m_branches(code(loop(n), "armv7m"))) for n in (200, 300))
    assert near != []
    assert max(map(abs, near)) < 4096 < max(map(abs, far))


def test_the_tree_is_clean() -> None:
    assert [str(finding) for finding in lint_paths([ROOT / "mpy_kv", ROOT / "boards"])] == []


# The command


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(TOOLS / "lint_viper.py"), *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_exit_status(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(PAIRS["divide"][0][0])
    found = command(tmp_path)
    assert found.returncode == 1
    assert found.stdout.startswith(f"{file}:{LINES + 3}: divide: ")
    assert command("--ignore", "divide", file).returncode == 0
    file.write_text(PAIRS["far-jump"][0][0])
    assert command(file).returncode == 1
    assert command("--no-jumps", file).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name files or folders"),
        (["gone"], "'gone' does not exist"),
        (["--explain", "nonsense"], "no rule 'nonsense'"),
        (["--ignore", "nonsense", "."], "no rule 'nonsense'"),
    ],
)
def test_bad_input(arguments: list[str], said: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_no_python(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def f(:\n")
    done = command(tmp_path)
    assert done.returncode == 2
    assert f"{tmp_path}/x.py:1: no Python" in done.stderr


def test_explain() -> None:
    said = command("--explain", "indexed").stdout
    assert said.startswith(f"indexed: {RULES['indexed'].message}\n    1.26 and 1.27 scale")
    everything = command("--explain", "all").stdout
    assert all(f"{rule.name}: {rule.message}" in everything for rule in RULES.values())
