"""A story as an asyncio task: the text is the app's, others have their turn between layers, and a task that
is cancelled leaves the cache as it was before the step."""

from __future__ import annotations

import asyncio
import json

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
import story_task
from stories import app
from stories.beside import Burst, Task, ticks_us
from stories.sampler import Sampler
from stories_fixtures import llama, tiny

from kvlab import shipped
from mpy_kv.bus import slots
from mpy_kv.bus.schedule import Schedule
from unix_port import port

PROMPT = "the one"
RATES = {"kv_read": 10**7, "kv_write": 10**6, "weights": 10**7, "io": 10**6}
IMAGE = tiny("no multiple of 32")[2]  # whose classifier is one call
LAYERS = 2
# Of a token: it is chosen, two layers, the rest, the classifier, commit.
TURNS = 1 + LAYERS + 1 + 1 + 1


def told_at_once(tokens: int, **options) -> bytes:
    parts: list[bytes] = []
    m = llama(IMAGE, window=30, sinks=2)
    app.tell(m, prompt=PROMPT, tokens=tokens, write=lambda b: parts.append(bytes(b)), **options)
    return b"".join(parts)


def as_task(parts: list[bytes], **more) -> Task:
    m = llama(IMAGE, window=30, sinks=2)
    return Task(m, Sampler(m, seed=3), lambda b: parts.append(bytes(b)), **more)


def ids(task: Task) -> list[int]:
    return task.tokenizer.encode(PROMPT)


def driven(task: Task, *arguments) -> int:
    """Turns that a story gives away, where nothing else runs."""
    story = task.tell(*arguments)
    turns = 0
    while True:
        try:
            story.send(None)
        except StopIteration:
            return turns
        turns += 1


def test_the_text_of_the_app_turn_by_turn() -> None:
    parts: list[bytes] = []
    task = as_task(parts)
    prompt = ids(task)
    assert driven(task, 20, prompt) == TURNS * (20 + len(prompt)) - (len(prompt) - 1)
    assert b"".join(parts) == told_at_once(20, seed=3)
    assert task.told == 20
    assert task.llama.cache.length == 20 + len(prompt)


def test_with_a_schedule() -> None:
    """No other turns where nobody asks for the bus, and no other text."""
    parts: list[bytes] = []
    task = as_task(parts)
    schedule = slots.make(task.llama.image, task.llama.cache.geometry, RATES)
    now = [0]

    def ticks() -> int:
        now[0] += 7
        return now[0]

    task = as_task(parts, schedule=schedule, now=ticks)
    prompt = ids(task)
    assert driven(task, 20, prompt) == TURNS * (20 + len(prompt)) - (len(prompt) - 1)
    assert b"".join(parts) == told_at_once(20, seed=3)


class Radio(Schedule):
    """Somebody asks in each slot, from an interrupt, and comes when told."""

    def __init__(self) -> None:
        super().__init__([(900, 90), (20, 5), (4000, 200), (64, 16)])
        self.radio = self.task(64)
        self.comes: int | None = None
        self.bursts = self.slots = self.held = 0

    def enter(self, slot: int, now: int) -> int:
        if self.comes is not None and now >= self.comes and self.may(now, self.radio, 64) == 0:
            self.bursts += 1
            self.comes = None
        wait = super().enter(slot, now)
        if wait:
            self.held += 1
        elif slot != 3:
            self.slots += 1
            if self.comes is None:
                self.comes = now + self.may(now, self.radio, 64)
        return int(wait)


def test_the_story_waits_for_a_burst_between_two_slots() -> None:
    parts: list[bytes] = []
    clock = [0]

    def ticks() -> int:
        clock[0] += 4
        return clock[0]

    schedule = Radio()
    task = as_task(parts, schedule=schedule, now=ticks)
    driven(task, 5, ids(task))
    assert b"".join(parts) == told_at_once(5, seed=3)
    tokens = 5 + len(ids(task))
    assert schedule.slots == tokens * (3 * LAYERS + 1 + 1) - (len(ids(task)) - 1)
    assert schedule.bursts > schedule.slots // 4
    assert schedule.held > schedule.bursts


class Book:
    """A tracker that admits every third time, and notes."""

    def __init__(self) -> None:
        self.said: list[tuple[int, int]] = []
        self.cancelled: list[int] = []

    def request(self, now: int, task: int, nbytes: int) -> int:
        self.said.append((task, nbytes))
        return 0 if len(self.said) % 3 == 0 else 5

    def cancel(self, task: int) -> None:
        self.cancelled.append(task)


def test_bursts_of_others_between_two_slots() -> None:
    """Each is admitted by the tracker once, goes where no slot is, and the text is the same."""
    parts: list[bytes] = []
    clock = [0]

    def ticks() -> int:
        clock[0] += 4
        return clock[0]

    schedule = Schedule([(900, 90), (20, 5), (4000, 200), (64, 16)])
    task = as_task(parts, schedule=schedule, now=ticks)
    book = Book()
    burst = Burst(schedule, 64, book, 7, ticks)
    went = []

    async def radio() -> None:
        while True:
            await burst.of(20)
            assert schedule.may(clock[0], 0, 20) == 5  # its own runs
            went.append(clock[0])
            await asyncio.sleep(0)

    async def both() -> None:
        other = asyncio.ensure_future(radio())
        await task.tell(5, ids(task))
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other

    asyncio.run(both())
    assert b"".join(parts) == told_at_once(5, seed=3)
    assert len(went) > 20
    assert len(book.said) in (3 * len(went), 3 * len(went) + 1, 3 * len(went) + 2)
    assert set(book.said) == {(7, 20)}


def test_a_burst_that_is_cancelled_is_waited_for_no_more() -> None:
    schedule = Schedule([(900, 90), (20, 5), (4000, 200), (64, 16)])
    book = Book()
    burst = Burst(schedule, 64, None, 0, lambda: 10)
    of_tracker = Burst(Schedule([(900, 90), (20, 5), (4000, 200), (64, 16)]), 64, book, 3, lambda: 10)

    async def wait(one: Burst) -> None:
        await one.of(64)

    async def cancelled(one: Burst) -> None:
        waits = asyncio.ensure_future(wait(one))
        await asyncio.sleep(0)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits

    assert schedule.enter(2, 0) == 0
    asyncio.run(cancelled(burst))
    assert schedule.enter(0, 100) == 0
    asyncio.run(cancelled(of_tracker))
    assert book.cancelled == [3]


@pytest.mark.parametrize("turn", [0, 1, 2, 9, 4 * TURNS + 3])
def test_a_cancelled_story_goes_on(turn: int) -> None:
    """The cache is as it was before the step, and the text, told on, the same."""
    parts: list[bytes] = []
    task = as_task(parts)
    prompt = ids(task)

    async def tell() -> None:
        story = asyncio.ensure_future(task.tell(20, prompt))
        for _ in range(turn + 1):
            await asyncio.sleep(0)
        length = task.llama.cache.length
        assert story.cancel()
        with pytest.raises(asyncio.CancelledError):
            await story
        assert task.llama.cache.length == length
        assert task.llama.cache.check() == 0
        await task.tell(20 - task.told)

    asyncio.run(tell())
    assert b"".join(parts) == told_at_once(20, seed=3)
    assert task.llama.cache.length == 20 + len(prompt)


def test_others_have_their_turn_between_layers() -> None:
    parts: list[bytes] = []
    m = llama(IMAGE, window=30, sinks=2)
    how = {"prompt": PROMPT, "tokens": 10, "seed": 3, "write": lambda b: parts.append(bytes(b))}
    figures = asyncio.run(story_task.tell(m, **how))
    assert b"".join(parts) == told_at_once(10, seed=3)
    assert figures["tokens"] == 10
    prompt = figures["prompt_tokens"]
    turns = TURNS * (10 + prompt) - (prompt - 1)
    assert turns - 4 <= figures["beats"] <= turns + 4
    assert figures["longest_between_beats_us"] > 0


def test_stop_ends_with_the_story() -> None:
    """As the app does: of a story whose end is drawn at once."""
    parts: list[bytes] = []
    task = as_task(parts, stop=True)
    task.sampler.sample = lambda: task.tokenizer.eos
    assert driven(task, 20, ids(task)) == TURNS * len(ids(task)) - (len(ids(task)) - 1) + 1
    assert task.ended
    assert task.told == 1


def test_ticks_are_of_the_period_of_a_schedule() -> None:
    before, after = ticks_us(), ticks_us()
    assert 0 <= before < 1 << 30
    assert (after - before) % (1 << 30) < 1_000_000


# --- In MicroPython -------------------------------------------------------------------------------

ALLOCATED = """
import sys
import asyncio, json, micropython
import story_task
from stories.beside import Task
from stories.sampler import Sampler
from stories.telling import open_model

llama = open_model(sys.argv[1], window=40)
story = Task(llama, Sampler(llama), lambda text: None)

async def slept(turns):
    for _ in range(turns):
        await asyncio.sleep_ms(0)

async def bytes_of(work):
    before = micropython.mem_total()
    await work
    return micropython.mem_total() - before

async def main():
    await story.tell(20, [1])
    before = story.told
    told = await bytes_of(story.tell(30))
    turns = 30 * (1 + llama.layers + 1 + 1 + 1)
    return told, await bytes_of(slept(turns)), turns

print(json.dumps(asyncio.run(main())))
"""


def test_a_turn_allocates_what_asyncio_does(upy) -> None:
    """sleep_ms(0) so many times takes the same."""
    told, slept, turns = json.loads(upy.run(ALLOCATED, [shipped.image(shipped.NAMES[0])]))
    assert turns == 30 * 9
    assert told <= slept + 200  # the coroutine itself


def test_the_program_on_the_unix_port() -> None:
    words = ["--model", shipped.image(shipped.NAMES[0]), "--tokens", 12, "--greedy", "--prompt", "One day"]
    program = port.ROOT / "boards" / "apps" / "story_task.py"
    done = port.run([str(program), *map(str, words)])
    assert done.status == 0, done.stderr
    plain = "import sys, stories\nstories.main(sys.argv[1:])"
    want = port.run(["-c", plain, *map(str, words)]).stdout.split("\n# ")[0]
    assert want.startswith("One day")
    assert done.stdout.split("\n# ")[0] == want
    assert "# tokens: 12\n" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--requests", 2], "requests is not for a story as a task: leave it out"),
        (["--tokens", "many"], "--tokens needs a whole number, got 'many'"),
        (["--window", 0, "--model", shipped.image(shipped.NAMES[0])], "--window must be"),
    ],
)
def test_what_the_program_refuses(words: list[object], said: str) -> None:
    done = port.run([str(port.ROOT / "boards" / "apps" / "story_task.py"), *map(str, words)])
    assert done.status == 2
    assert done.stderr.startswith("stories: error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


BURSTS = """
import asyncio, json, micropython, time
from mpy_kv.bus.schedule import IO, WEIGHTS, Schedule
from stories.beside import Burst, Turn, ticks_us

schedule = Schedule([(900, 90), (20, 5), (4000, 3000), (64, 16)])
burst = Burst(schedule, 64)
turn = Turn()
waits = []
slots = [0]

async def model():
    while slots[0] < 30:
        while schedule.enter(WEIGHTS, ticks_us()):
            await turn
        time.sleep_us(2000)
        schedule.enter(IO, ticks_us())
        slots[0] += 1
        await turn

async def radio():
    while slots[0] < 30:
        start = time.ticks_us()
        await burst.of(64)
        waits.append(time.ticks_diff(time.ticks_us(), start))
        await turn2

turn2 = Turn()

async def cancelled():
    schedule.enter(WEIGHTS, ticks_us())
    task = asyncio.create_task(radio())
    await turn
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return schedule.enter(IO, ticks_us()) + schedule.enter(WEIGHTS, ticks_us())

async def main():
    await asyncio.gather(model(), radio())
    slots[0] = 0
    return len(waits), await cancelled()

print(json.dumps(asyncio.run(main())))
"""


def test_bursts_on_the_unix_port(upy) -> None:
    """One a gap at least; one that is cancelled is waited for no more."""
    bursts, waited = json.loads(upy.run(BURSTS))
    assert bursts >= 25
    assert waited == 0
