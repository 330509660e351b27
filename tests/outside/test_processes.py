"""Tensors that processes share, and how processes end: programs print the same under both names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.oracle import SELFTEST

pytest.importorskip("torch", reason="PyTorch, the oracle of these programs, is absent")
pytestmark = pytest.mark.skipif(SELFTEST, reason="PyTorch is compared with itself")
ROOT = Path(__file__).parents[2]

PROGRAMS = {
    "a network in shared memory is trained by other processes": """
        import torch
        import torch.multiprocessing as mp
        from torch import nn

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
                self.second.weight = self.first.weight
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, x):
                self.calls += 1
                return self.second(self.first(x).relu())

        def train(rank, net, answers, heard):
            torch.manual_seed(rank)
            rule = torch.optim.SGD(net.parameters(), 0.05)
            for _ in range(20):
                x = torch.randn(8, 4)
                rule.zero_grad()
                (net(x) - x).pow(2).mean().backward()
                rule.step()
            print(net.second.weight is net.first.weight, net.calls.is_shared(), flush=True)
            view = net.first.weight.detach()[1:, 2]
            answers.put((torch.arange(3), net.calls, {"a view": view}))
            heard.wait()

        if __name__ == "__main__":
            torch.manual_seed(0)
            for method in ("spawn", "fork"):
                context = mp.get_context(method)
                net = Tied()
                net.share_memory()
                answers, heard = context.Queue(), context.Event()
                process = context.Process(target=train, args=(0, net, answers, heard))
                process.start()
                a, calls, found = answers.get()
                print(a, calls, found["a view"], found["a view"].stride())
                calls += 5
                heard.set()
                process.join()
                print(net.calls, net.first.weight)
    """,
    "errors of processes are raised where they were started": """
        import os
        import torch
        import torch.multiprocessing as mp

        def fails(rank):
            if rank == 1:
                raise ValueError("of the second")

        def leaves(rank):
            os._exit(3)

        if __name__ == "__main__":
            weight = torch.ones(2, requires_grad=True)
            for f in (
                lambda: mp.spawn(fails, nprocs=2),
                lambda: mp.spawn(leaves, nprocs=1),
                lambda: mp.start_processes(leaves, join=False, start_method="fork").join(),
                lambda: mp.get_context("spawn").SimpleQueue().put(weight * 2),
                lambda: mp.set_sharing_strategy("none of them"),
            ):
                try:
                    print(f())
                except Exception as e:
                    said = str(e).strip().splitlines()
                    code = getattr(e, "exit_code", None)
                    print(type(e).__name__, said[0].partition("{")[0], said[-1][:20], code)
    """,
}


def printed(name: str, path: Path) -> str:
    """What a program prints where `torch` is that package."""
    package = [] if name == "torch" else ["-m", name]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *package, str(path)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_processes_print_the_same(program: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(dedent(PROGRAMS[program]))
    theirs = printed("torch", path)
    assert theirs
    assert printed("toytorch", path) == theirs
