"""What forgetting and storing small cost a model in quality: codecs and policies by definition, in numpy.

* `codecs`: groups of numbers -> stored codes, scales and minima, and back, bit for bit;
* `kinds`: the element types of keys and values built from them, what each reads back, its bytes;
* `policies`: which token leaves when a sequence may keep only so many;
* `teacher`: a whole passage at once, its keys and values as stored;
* `decode`: passages token by token, with a policy that evicts;
* `score`: perplexity, KL divergence and agreement against float32 with nothing evicted;
* `text`: the model and the passages it is judged on;
* `trials`, `harness`, `cache`: what is tried, run over passages, its results kept;
* `measure`: the figures of the command;
* `gate`: an element type for each layer's keys and values within a loss budget;
* `ranges`: how far the channels of the keys reach.
"""
