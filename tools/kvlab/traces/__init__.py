"""Traces of real services as one stream of requests, whatever the file looks like.

    for request in traces.open_trace("AzureLLMInferenceTrace_conv.csv"):
        request.arrival_s, request.prompt_tokens, request.output_tokens, request.task, request.blocks

A reader holds a line at a time (of WEKA's one conversation, of RAGPulse also the lengths of its components),
so a trace may be larger than memory, and may be iterated over again. Blank lines are skipped; anything else
that is wrong is BadInput, one line that names the file, the line and what was expected there.
"""

from .detect import open_trace
from .order import in_order, together
from .request import Blocks, Request, Trace

__all__ = ["Blocks", "Request", "Trace", "in_order", "open_trace", "together"]
