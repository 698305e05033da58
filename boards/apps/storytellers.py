"""Stories as asyncio tasks: three are told at once, the others wait; whatever else there is to do goes on.

    kvlab emulate boards/apps/storytellers.py --board rp2350 --compiled --flash boards/models/stories.mkvm@0
    mpremote run boards/apps/storytellers.py        on a board that `kvlab deploy` has been to
    python boards/apps/storytellers.py boards/models/stories.mkvm       on CPython, slowly

All begin alike: the first one computes that, the others find it, also those that start when it has ended.
The argument is a board image; without one it is the board's own. A turn of a story allocates nothing;
asyncio does, some hundred bytes at every switch.
"""

import asyncio
import sys

from stories import many
from stories.app import stdout
from stories.sampler import Sampler
from stories.tokenizer import Tokenizer

BEGINNING = "Once upon a time, there was a little dragon who lived in a big forest. One day"
ENDINGS = ("", " he", ", the dragon saw", " it was", " the sun", ", a bird")


async def storyteller(llama, arena, waiting, begun, done):
    """A task: takes the next story that waits and tells it, a token at a time, until none waits."""
    while waiting:
        number, prompt, tokens, sampler = waiting.pop(0)
        if number:
            await begun.wait()  # what the first one has computed is found, and the arena counts on it
        story = many.Story(llama, arena, prompt, tokens, sampler, task=number)
        while not story.ended:
            story.turn()
            if story.told or story.ended:
                begun.set()
            await asyncio.sleep(0)  # the others' turn
        done(number, story)
        story.close()


async def heartbeat(counts):
    """Stands for the rest of a program, such as buttons, sensors and a radio."""
    while True:
        counts[0] += 1
        await asyncio.sleep(0)


async def tell(texts, at_once=3, tokens=60, seed=1, done=None, block_tokens=16, **chosen):
    """Tell a story from each of the texts; returns (figures, tokens of each story).

    done(number, story) is called as a story ends. chosen: options of stories.app.open_model().
    """
    llama, arena, prompts = many.open_arena(texts, tokens, at_once, block_tokens, **chosen)
    found = [None] * len(texts)
    reused = [0] * len(texts)

    def ended(number, story):
        found[number] = story.tokens()
        reused[number] = story.reused
        if done is not None:
            done(number, story, llama)

    waiting = []
    for i in range(len(texts)):
        waiting.append((i, prompts[i], tokens, Sampler(llama, seed=seed + i)))
    begun = asyncio.Event()
    counts = [0]
    beat = asyncio.create_task(heartbeat(counts))
    await asyncio.gather(*[storyteller(llama, arena, waiting, begun, ended) for _ in range(at_once)])
    beat.cancel()
    stats = arena.stats()
    figures = {
        "reused_tokens": reused,
        "heartbeats": counts[0],
        "peak_blocks": stats["peak_blocks"],
        "total_blocks": stats["total_blocks"],
    }
    return figures, found


def main(argv):
    write = stdout()

    def done(number, story, llama):
        write(("--- story %d of %d ---\n" % (number + 1, len(ENDINGS))).encode())
        story.write(Tokenizer(llama.image), write)
        write(b"\n\n")

    texts = [BEGINNING + text for text in ENDINGS]
    figures, _ = asyncio.run(tell(texts, done=done, model=argv[0] if argv else None))
    for key in figures:
        print("# %s: %s" % (key, figures[key]))


if __name__ == "__main__":
    main(sys.argv[1:])
