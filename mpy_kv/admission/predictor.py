"""How many tokens will the answer of this task be? Quantiles of what was seen, in fixed memory.

One histogram a task, and one of all tasks together. Its bins are log-spaced: 0..7 one token each, then eight
an octave up to 2^17, so that 120 of them hold any length and the upper edge of a bin, which is the answer, is
at most an eighth above what was seen. When a histogram has counted `memory` answers, all its counts are
halved: old ones fade, and a count fits 16 bits. 240 bytes a task and 240 for all, nothing allocated after
construction, no floats.

Tasks are ids, 0 .. 2^29 - 1, kept exactly (two tasks never share a row by chance) in a table of `tasks` rows,
found from id % rows on. When all rows are taken a new task gets none: it learns into, and is predicted from,
the row of all tasks; tasks that have a row keep it. reset() forgets everything.

The transitions are native module-level functions of ints and arrays: the host compiles the same source.
"""

try:
    import micropython
except ImportError:
    from .. import cpython as micropython

from array import array

from ..errors import BadArgument

BINS = 120
MOST_TOKENS = (1 << 17) - 1  # the upper edge of the last bin; longer answers count as that long
MOST_TASK = (1 << 29) - 1


@micropython.native
def find_row(ids, rows, task):
    """Row of a task; where it has none, -1 - the row it may take, or -1 - rows when all are taken."""
    r = task % rows
    n = rows
    while n:
        if ids[r] == task:
            return r
        if ids[r] < 0:
            return -1 - r
        r += 1
        if r == rows:
            r = 0
        n -= 1
    return -1 - rows


@micropython.native
def bin_of(tokens):
    """The bin that counts answers of that many tokens (0 .. MOST_TOKENS)."""
    shift = 0
    while tokens >> shift > 15:
        shift += 1
    if shift or tokens > 7:
        return (shift << 3) + (tokens >> shift)
    return tokens


@micropython.native
def edge_of(i):
    """The most tokens that bin i counts."""
    if i < 16:
        return i
    shift = (i >> 3) - 1
    return (((i & 7) + 9) << shift) - 1


@micropython.native
def count_one(counts, totals, row, i, memory):
    """One more answer in bin i of a row; halves the row when it has `memory` of them."""
    at = row * 120
    counts[at + i] += 1
    total = totals[row] + 1
    if total >= memory:
        total = 0
        end = at + 120
        while at < end:
            n = counts[at] >> 1
            counts[at] = n
            total += n
            at += 1
    totals[row] = total
    return total


@micropython.native
def quantile_bin(counts, row, first, per_mille, least):
    """The lowest bin with at least that share of the answers that lie in bins >= first in or below it.

    -1 where there are fewer than `least` (>= 1) such answers.
    """
    end = row * 120 + 120
    at = row * 120 + first
    total = 0
    while at < end:
        total += counts[at]
        at += 1
    if total < least:
        return -1
    wanted = (total * per_mille + 999) // 1000
    if wanted < 1:
        wanted = 1
    i = first - 1
    at = row * 120 + i
    while wanted > 0:
        i += 1
        at += 1
        wanted -= counts[at]
    return i


class LengthPredictor:
    """`tasks` rows (1..1024) for tasks of their own.

    per_mille: share of answers that shall be no longer than predicted, 1..1000.
    least: answers that a histogram must hold before it is believed, 1..memory / 2.
    memory: answers after which counts are halved, 2..65535.
    """

    def __init__(self, tasks=16, per_mille=900, least=16, memory=1024):
        _whole("tasks", tasks, 1, 1024)
        _whole("per_mille", per_mille, 1, 1000)
        _whole("memory", memory, 2, 65535)
        _whole("least", least, 1, memory // 2)
        self.tasks = tasks
        self.per_mille = per_mille
        self.least = least
        self.memory = memory
        self._ids = array("i", [-1] * tasks)  # task of a row, -1: none yet
        # Row `tasks` is that of all tasks.
        self._totals = array("H", [0] * (tasks + 1))
        self._counts = array("H", [0] * ((tasks + 1) * BINS))

    def memory_bytes(self):
        """Bytes of all its arrays."""
        return 4 * self.tasks + 2 * (self.tasks + 1) * (BINS + 1)

    # Native, as their frames would be too large for bytecode's stack: those are allocated.
    @micropython.native
    def observe(self, task, tokens):
        """An answer of that task has ended, `tokens` long. Allocates nothing."""
        _whole("task", task, 0, MOST_TASK)
        _whole("tokens", tokens, 0, 1 << 29)
        i = bin_of(min(tokens, MOST_TOKENS))
        row = find_row(self._ids, self.tasks, task)
        if row < 0:
            row = -1 - row
            if row < self.tasks:
                self._ids[row] = task
        if row < self.tasks:
            count_one(self._counts, self._totals, row, i, self.memory)
        count_one(self._counts, self._totals, self.tasks, i, self.memory)

    @micropython.native
    def predict(self, task, limit, done=0):
        """Tokens that an answer of that task will have in all, done + 1 .. limit. Allocates nothing.

        The quantile of the task's answers, or with `done` tokens there already of those answers only that
        were longer. Too few of them: of all tasks'. Too few there too: `limit`, or twice `done` where that is
        less and `done` not 0 (a tail nobody has seen is taken to be as long as what led to it).
        """
        _whole("task", task, 0, MOST_TASK)
        _whole("limit", limit, 1, 1 << 29)
        _whole("done", done, 0, limit - 1)
        first = bin_of(min(done + 1, MOST_TOKENS)) if done else 0
        i = -1
        row = find_row(self._ids, self.tasks, task)
        if row >= 0:
            i = quantile_bin(self._counts, row, first, self.per_mille, self.least)
        if i < 0:
            i = quantile_bin(self._counts, self.tasks, first, self.per_mille, self.least)
        if i >= 0:
            return max(done + 1, min(limit, edge_of(i)))
        return min(limit, 2 * done) if done else limit

    def seen(self, task):
        """Answers of that task that its histogram holds (after halvings); of all tasks with None."""
        if task is None:
            return self._totals[self.tasks]
        _whole("task", task, 0, MOST_TASK)
        row = find_row(self._ids, self.tasks, task)
        return self._totals[row] if row >= 0 else 0

    def reset(self):
        """Forget all answers and tasks."""
        for i in range(len(self._counts)):
            self._counts[i] = 0
        for i in range(self.tasks):
            self._ids[i] = -1
            self._totals[i] = 0
        self._totals[self.tasks] = 0

    def check(self):
        """Number of broken invariants (0 = sound)."""
        bad = 0
        for row in range(self.tasks + 1):
            at = row * BINS
            if sum(self._counts[at + i] for i in range(BINS)) != self._totals[row]:
                bad += 1
            if row < self.tasks and self._ids[row] < 0 and self._totals[row]:
                bad += 1  # counts of nobody
        for row in range(self.tasks):
            if self._ids[row] >= 0 and find_row(self._ids, self.tasks, self._ids[row]) != row:
                bad += 1  # cannot be found, or twice
        return bad


def _whole(name, value, least, most):
    if type(value) is not int or not least <= value <= most:
        raise BadArgument("%s must be %d..%d, got %r" % (name, least, most, value))
