"""Where the code of kernels in assembler lies, by which they call one another. Transient: ../transient.py.

Such a kernel gives its own address where its last argument is 0 (tools/kernelgen/kernel.py), so nothing is
assumed about MicroPython's objects but that functions of one kind are of one type. The address holds as long
as the function does: whoever keeps it keeps the kernel set.
"""

MOST = (1 << 30) - 1  # an address beyond is no small int


def address(function, arguments, like):
    """Where the code of `function`, which takes so many arguments, lies; 0 if it is not of the kind of
    `like`, a function in assembler, or None."""
    if like is None or type(function) is not type(like):
        return 0
    return function(*([0] * arguments))
