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
                self.cancel(ticket)
            except BadHandle:  # cancelled by others in the same moment
                pass
            raise

    def step(self, available_blocks=None):
        """As Admission.step; wakes those it admits."""
        count = self.admission.step(available_blocks)
        self._tell_preempted()
        for i in range(count):
            self._wake(self.admission.admitted[i])
        return count

    def growth(self, ticket, blocks, available_blocks=None):
        """As Admission.growth; what a ticket that gave way has left may let others in: steps."""
        grown = self.admission.growth(ticket, blocks, available_blocks)
        self._tell_preempted()
        if not grown:
            self.step(available_blocks)
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

    def _tell_preempted(self):
        if self._preempted is not None:
            for i in range(self.admission.n_preempted):
                self._preempted(self.admission.preempted[i])

    def _wake(self, ticket):
        self._events[self.admission.slot(ticket)].set()
