"""The package as others install it: package.json, one version everywhere, a licence."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import kvlab
from kvlab.paths import ROOT


def load_script(name: str):
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


package_json = load_script("package_json")


def test_package_json_lists_exactly_the_device_package():
    listed = json.loads((ROOT / "package.json").read_text())["urls"]
    tree = sorted(
        p.relative_to(ROOT).as_posix()
        for p in (ROOT / "mpy_kv").rglob("*")
        if p.suffix in (".py", ".mpy")
    )
    assert [target for target, _ in listed] == tree
    assert all(target == source for target, source in listed)
    assert (ROOT / "package.json").read_text() == package_json.wanted()


def test_package_json_check_notices_a_new_file(tmp_path: Path):
    (tmp_path / "mpy_kv").mkdir()
    (tmp_path / "mpy_kv" / "__init__.py").write_text('__version__ = "9.9.9"\n')
    before = package_json.wanted(tmp_path)
    assert json.loads(before)["version"] == "9.9.9"
    (tmp_path / "mpy_kv" / "new.py").write_text("")
    assert ["mpy_kv/new.py", "mpy_kv/new.py"] in json.loads(package_json.wanted(tmp_path))["urls"]


def test_one_version_everywhere():
    project = re.search(
        r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    ).group(1)
    changelog = re.search(
        r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    ).group(1)
    packaged = json.loads((ROOT / "package.json").read_text())["version"]
    assert {package_json.version(), project, changelog, packaged} == {kvlab.__version__}


def test_device_version_is_the_same_under_micropython(upy):
    assert upy.run("import mpy_kv; print(mpy_kv.__version__)").strip() == kvlab.__version__


def test_product_names_no_machine_of_its_makers():
    """No absolute path of a development machine, no host of a package registry."""
    bad = re.compile(r"(?<![\w.])/(?:work|farm|root|home)/|\bpypi\.org|pythonhosted|npmjs\.")
    for folder in ("mpy_kv", "unix_port", "boards", "tools", "docs", "host_tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".json", ".toml") and path != Path(__file__):
                found = bad.search(path.read_text(encoding="utf-8"))
                assert found is None, f"{path.relative_to(ROOT)}: {found.group(0)}"


def test_running_python_is_supported():
    assert sys.version_info >= (3, 10)
