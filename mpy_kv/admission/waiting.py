"""Admission for asyncio: a task waits for its ticket without asking again and again.

    gate = Gate(Admission(...))
    ticket = gate.admission.submit(task, prompt_tokens, max_tokens)
    gate.step()                      # whenever something may have changed: a submit, a finish, blocks freed
    await gate.wait(ticket)          # admitted now
    ...
    gate.finish(ticket, tokens)      # steps, and wakes those that come in by it

Steps go through the gate, as only it knows whom to wake; so do cancel and finish. A task that is cancelled
while it waits gives up its ticket. Who was preempted finds its ticket WAITING again: it waits anew.
One event a ticket, made at construction; `await` itself allocates a little.
"""

import asyncio

from ..errors import BadHandle
from .admission import RUNNING


class Gate:
    """`admission`: the queue. preempted: function(ticket), called by a step for each it preempted."""

    def __init__(self, admission, preempted=None):
        self.admission = admission
        self._preempted = preempted
        self._events = [asyncio.Event() for _ in range(admission.tickets)]
        self._available = None  # what the last step was told
        self._telling = False
        self._again = False  # whether a callback asked for a step

    async def wait(self, ticket):
        """Returns when the ticket runs, at once if it does. BadHandle when it is cancelled meanwhile."""
        admission = self.admission
        event = self._events[admission.slot(ticket)]
        try:
            while admission.state(ticket) != RUNNING:
                event.clear()
                await event.wait()
        except asyncio.CancelledError:
            try:
                self.cancel(ticket, self._available)
            except BadHandle:  # cancelled by others in the same moment
                pass
            raise

    def step(self, available_blocks=None):
        """As Admission.step; wakes those it admits, then tells who was preempted. A step that is asked for by
        what it tells comes after it, and returns 0."""
        self._available = available_blocks
        if self._telling:
            self._again = True
            return 0
        count = self.admission.step(available_blocks)
        self._tell()
        return count

    def growth(self, ticket, blocks, available_blocks=None):
        """As Admission.growth; what a ticket that gave way has left may let others in: steps."""
        self._available = available_blocks
        grown = self.admission.growth(ticket, blocks, available_blocks)
        self._again = not grown
        self._tell()
        return grown

    def finish(self, ticket, tokens=None, available_blocks=None):
        """As Admission.finish, and a step."""
        self.admission.finish(ticket, tokens)
        self.step(available_blocks)

    def cancel(self, ticket, available_blocks=None):
        """As Admission.cancel, and a step; who waits for the ticket gets BadHandle."""
        event = self._events[self.admission.slot(ticket)]
        self.admission.cancel(ticket)
        event.set()
        self.step(available_blocks)

    def _tell(self):
        """Wake whom the last call admitted, call back for whom it preempted, and step again if that was asked
        for; an exception of a callback is raised when all is told."""
        admission = self.admission
        failed = None
        while True:
            for i in range(admission.n_admitted):
                self._wake(admission.admitted[i])
            gone = list(admission.preempted[: admission.n_preempted])
            if self._preempted is not None:
                outer = self._telling
                self._telling = True
                for ticket in gone:
                    try:
                        self._preempted(ticket)
                    except Exception as error:
                        failed = failed or error
                self._telling = outer
            if self._telling or not self._again:
                break
            self._again = False
            admission.step(self._available)
        if failed is not None:
            raise failed

    def _wake(self, ticket):
        self._events[self.admission.slot(ticket)].set()
