"""Runs programs that say `.cuda()`: under PyTorch on its CPU, under toytorch on simulated devices.

python run_cuda.py pytorch convnet attention      prints what each prints, as JSON

PyTorch without CUDA cannot run such a program, so there devices are renamed and streams, graphs and
pinned memory do nothing, which changes no result.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "cuda_programs"


class Nothing:
    """A stream, an event, a context: takes every call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Whatever it is given."""

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *error: Any) -> None:
        """Nothing to leave."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: Nothing()


def on_the_cpu(torch: Any, source: str) -> str:
    """A program as PyTorch without CUDA can run it; graphs are replaced by calling again."""
    for name in ("Stream", "Event", "stream", "current_stream", "synchronize"):
        setattr(torch.cuda, name, Nothing)
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *args, **kwargs: self
    torch.Tensor.record_stream = lambda self, stream: None
    torch.cuda.is_available = lambda: True
    source = source.replace("torch.cuda.is_available()", "True").replace('"cuda"', '"cpu"')
    # A captured step becomes a function that each replay calls.
    source = source.replace("with torch.cuda.graph(g):", "def g_replay():\n    global static_loss")
    source = source.replace(
        "    static_loss.backward()", "    optimizer.zero_grad()\n    static_loss.backward()"
    )
    return source.replace("g.replay()", "g_replay()").replace("torch.cuda.CUDAGraph()", "None")


def main(package: str, *names: str) -> None:
    sys.path.insert(0, str(PROGRAMS))
    if package == "toytorch":
        from toytorch.alias import install

        install()
    import torch

    torch.set_num_threads(1)
    said = {}
    for name in names:
        source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
        if package == "pytorch":
            source = on_the_cpu(torch, source)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(source, name, "exec"), {"__name__": "__main__"})
        said[name] = output.getvalue()
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
