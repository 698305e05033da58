"""A story as an asyncio task beside what else a program has to do: that has its turn between two layers of a
token, not only between two tokens.

    kvlab stories --asyncio --board rp2040          this program, and what a Pico takes between two turns
    mpremote run boards/apps/story_task.py          on a board that `kvlab deploy --part bus` has been to

Options are those of the stories app, as far as they are of one story: a task that is cut off by a reset
begins again. Needs asyncio, which the firmware of all boards here has but qemu_arm's.
"""

import asyncio
import sys

from stories.sampler import Sampler
from stories.telling import allocated, now, open_model, since, stdout

from mpy_kv.errors import BadArgument, KVError
from mpy_kv.transient import load_module, unload_all

HALF = 1 << 29  # of the period of ticks_us()

_OF_MODEL = ("model", "window", "sinks", "group", "codec", "policy", "budget", "kernels")
_OF_MODEL += ("row_buffer_bytes", "check", "verdicts", "stream")
_OF_TASK = ("prompt", "tokens", "temperature", "top_p", "seed", "greedy", "stop")


async def heartbeat(beats, ticks_us):
    """Stands for the rest of a program, such as buttons, sensors and a radio: counts its turns, and the
    longest time between two of them. `beats`: both, and when the last one was."""
    turn = asyncio.sleep_ms if hasattr(asyncio, "sleep_ms") else asyncio.sleep
    beats[2] = ticks_us()
    while True:
        await turn(0)
        at = ticks_us()
        took = at - beats[2]
        if took < 0:
            took = took + HALF + HALF
        beats[0] += 1
        beats[1] = max(beats[1], took)
        beats[2] = at


async def tell(
    llama,
    prompt="",
    tokens=200,
    temperature="0.8",
    top_p="0.9",
    seed=1,
    greedy=False,
    stop=False,
    write=None,
    schedule=None,
):
    """Tell a story beside a heartbeat; the figures as a dict, as those of app.tell(), what asyncio itself
    allocates among them."""
    from stories.beside import Task, ticks_us  # once the cache's buffer has its place

    sampler = Sampler(llama, "0" if greedy else temperature, top_p, seed)
    story = Task(llama, sampler, write or stdout(), stop, schedule)
    # Before the task, as it takes longer than a turn.
    ids = load_module("stories.encoding").prompt(llama, prompt) if prompt else [llama.image.bos]
    unload_all()
    beats = [0, 0, 0]
    beat = asyncio.create_task(heartbeat(beats, ticks_us))
    start = now()
    await story.tell(0, ids)
    prompt_ms = since(start)
    start = now()
    before = allocated() if allocated else 0
    await story.tell(tokens)
    after = allocated() if allocated else 0
    ms = since(start)
    beat.cancel()
    more = after - before if allocated else None
    figures = load_module("stories.report").of_story(story, len(ids), prompt_ms, ms, more, None)
    figures["beats"] = beats[0]
    figures["longest_between_beats_us"] = beats[1]
    return figures


def main(argv):
    command = load_module("stories.command")
    try:
        options = command.parse(argv)
        if options is None:
            print(command.USAGE)
            return
        chosen = {}
        for name in _OF_MODEL:
            if name in options:
                chosen[name] = options.pop(name)
        path = options.pop("json", None)
        for name in options:
            if name not in _OF_TASK:
                raise BadArgument("%s is not for a story as a task: leave it out" % name)
        command = None
        unload_all()  # what the options took
        figures = asyncio.run(tell(open_model(**chosen), **options))
    except KVError as error:
        sys.stderr.write("stories: error: %s\n" % load_module("stories.command").as_typed(error))
        sys.exit(2)
    print()
    if path is not None:
        import json

        with open(path, "w") as f:
            json.dump(figures, f)
    else:
        for key in figures:
            print("# %s: %s" % (key, figures[key]))


if __name__ == "__main__":
    main(sys.argv[1:])
