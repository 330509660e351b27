"""Runs programs one after the other, under PyTorch or under toytorch with PyTorch's name.

python run_all.py toytorch mnist_cnn vae      prints {name: {"out": …, "error": …}} as JSON
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
import time
import traceback
import warnings
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


def run(name: str) -> dict[str, object]:
    """What a program prints, how it ends and how long it takes."""
    out, error, start = io.StringIO(), "", time.perf_counter()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name="__main__")
        except (Exception, SystemExit):
            error = traceback.format_exc()
    return {"out": out.getvalue(), "error": error, "seconds": time.perf_counter() - start}


def main(package: str, names: list[str]) -> None:
    sys.path.insert(0, str(PROGRAMS))
    if package == "toytorch":
        from toytorch.alias import install

        install()
    import torch

    torch.set_num_threads(1)
    found = {}
    for name in names:
        torch.manual_seed(0)
        torch.set_default_dtype(torch.float32)
        found[name] = run(name)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
