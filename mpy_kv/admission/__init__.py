"""Who may come in: a predictor of output lengths, and a bounded queue that admits by priority.

    predictor.LengthPredictor   how long will the answer of this task be: quantiles in fixed memory
    admission.Admission         tickets: submit, step, grow, finish, cancel; decides, never touches blocks
    waiting.Gate                the same for asyncio: `await gate.wait(ticket)`

Nothing is imported here: a program takes the module it needs. None of them asks the time: the same calls give
the same answers on a board and in the host's simulator.
"""

from .. import port as _port

if _port.MICROPYTHON and not _port.EMITTER:
    # As mpy_kv/__init__.py does.
    from ..undecorated import install_all

    install_all("mpy_kv.admission", __file__[: __file__.rfind("/") + 1], ("predictor", "admission"))
