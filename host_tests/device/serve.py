"""Runs scripts one after the other in one start, for which modules are imported and kernels compiled once.

usage: serve.py    a line of stdin: JSON [SCRIPT, ARGUMENT, ...]. After what the script prints comes END with
its exit status.
"""

import gc
import json
import sys

END = "\0end %d\n"


def run(path, arguments):
    """The exit status, as if it had been started."""
    sys.argv[:] = [path] + arguments
    try:
        execfile(path, {"__name__": "__main__"})
    except SystemExit as ended:
        code = ended.args[0] if ended.args else None
        if code is None or isinstance(code, int):
            return code or 0
        sys.stderr.write("%s\n" % code)
        return 1
    except BaseException as error:
        sys.print_exception(error, sys.stderr)
        return 1
    return 0


while True:
    line = sys.stdin.readline()
    if not line:
        break
    path, *arguments = json.loads(line)
    status = run(path, arguments)
    gc.collect()
    sys.stdout.write(END % status)
