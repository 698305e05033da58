"""Starts of the stories app, one after the other, each with another file of verdicts; the checks that ran.

usage: verdicts.py FILE    prints {what: [checks that ran, ...]} as JSON, of many starts the sets of these
Kernels are loaded once and a check is only noted: what a start decides is seen, at the cost of nothing else.
"""

import json
import os
import sys

import stories.kernels
from mpy_kv import kernels
from mpy_kv.transient import load_module

PATH = sys.argv[1]
ALL = ["mpy_kv.kernels", "stories.kernels"]
FAMILIES = (kernels.FAMILY, stories.kernels.FAMILY)
ran = []
fails = []


def loaded(family):
    """Have a family load no native code again."""
    functions = family._viper()
    family._viper = lambda: functions


def noted(family, found):
    ran.append(family.package)
    return "differs" if fails else None


def remembered(key):
    """Files of kernels do not change here."""
    keys = {}

    def of(family, name):
        if (family.package, name) not in keys:
            keys[family.package, name] = key(family, name)
        return keys[family.package, name]

    return of


for each in FAMILIES:
    loaded(each)
trial = load_module("mpy_kv.kernels.trial")
trial._differs = noted
trial.key = remembered(trial.key)
starting = load_module("stories.starting")


def start(path=PATH, check=False, keep=False):
    """Packages whose sets were checked."""
    ran.clear()
    if not keep:
        for family in FAMILIES:
            family._found.clear()
            family.reasons.clear()
            family.checked = ()
    of_types, families = starting.families("int8", None)
    known = starting.take(path, check, families)
    starting.sets(None, "int8", of_types)
    starting.note(path, known, families)
    return sorted(ran)


def read():
    with open(PATH, "rb") as file:
        return file.read()


def write(data):
    with open(PATH, "wb") as file:
        file.write(data)


def of_each(files, whole):
    """What ran, without repetition, over starts that find these files; each must leave a whole one."""
    found = []
    for data in files:
        write(data)
        seen = start()
        if read() != whole:
            seen = "the file was not made anew"
        if seen not in found:
            found.append(seen)
    return found


def flipped(data):
    for at in range(len(data)):
        for bit in range(8):
            yield data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


found = {"first": start(), "second": start()}
whole = read()
found["cut"] = of_each((whole[:n] for n in range(len(whole))), whole)
found["flipped"] = of_each(flipped(whole), whole)
found["longer"] = of_each([whole + b"\n", whole + whole, whole + b"\0", b"\n" + whole], whole)
found["whole again"] = of_each([whole], whole)

verdicts = load_module("stories.verdicts")
keys = verdicts.read(PATH)
verdicts.write(PATH, [keys[0], keys[1].replace("mpy ", "mpy 1")])
found["one of another version"] = [start(), start(), read() == whole]
verdicts.write(PATH, [key.replace("viper", "thumb") for key in keys])
found["of another set"] = [start(), start()]
other = "mpy_kv.kernels.float16\tviper\tkept"
verdicts.write(PATH, [other, keys[0]])
found["of another type beside it"] = [start(), other in verdicts.read(PATH), start()]

found["--check"] = [start(check=True), start()]
found["--check of what is loaded"] = [start(check=True, keep=True), start(keep=True)]
found["no file"] = [start(""), start("")]
found["no folder"] = [start(PATH + ".none/file"), start(PATH + ".none/file")]
os.mkdir(PATH + ".folder")
found["a folder"] = [start(PATH + ".folder"), start(PATH + ".folder")]

os.remove(PATH)
fails.append(1)
found["fails"] = [start(), start()]
fails.clear()
found["passes"] = [start(), start()]
print(json.dumps(found))
