"""Two requests with a shared prefix: what both begin with is computed and stored once.

    kvlab deploy --board rp2040 --mpy --requests      then paste this, or
    mpremote run examples/shared_prefix.py
    kvlab emulate examples/shared_prefix.py --board rp2040 --compiled --flash boards/models/stories.mkvm@0

Prints both stories, told in turns, and of each how many tokens of its beginning were there already: whole
blocks of 8.
"""

import sys

from stories import many
from stories.sampler import Sampler
from stories.telling import stdout
from stories.tokenizer import Tokenizer

PREFIX = "Once upon a time there was a little girl named Lily. She had a red ball and"
TOKENS = 24  # of each story

model = sys.argv[1] if len(sys.argv) > 1 else None  # None: the board's own
texts = [PREFIX + " she", PREFIX + " a dog"]
llama, requests, prompts = many.open_arena(texts, TOKENS, block_tokens=8, window=64, model=model)
tokenizer = Tokenizer(llama.image)
stories = []
for task, prompt in enumerate(prompts):
    story = many.Story(llama, requests, prompt, TOKENS, Sampler(llama, "0"), task=task)  # temperature 0
    stories.append(story)
    while not story.told:
        story.turn()  # its prompt, so that the next one finds it
while not all([story.ended for story in stories]):
    for story in stories:
        if not story.ended:
            story.turn()

shared = requests.stats()["shared_blocks"]
for story, prompt in zip(stories, prompts):
    story.write(tokenizer, stdout())
    print()
    print("%d of the %d tokens it begins with were there" % (story.reused, len(prompt)))
    story.close()
print("%d blocks of 8 tokens were held by both" % shared)
