"""`cuda.kernel` on tensors of a device: CuPy's (or its stand-in), and simulated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toytorch as torch
from toytorch.cuda import KernelError, RaceError, kernel

FOLDER = Path(__file__).parents[2] / "examples" / "kernels"
ADD = (FOLDER / "add.cu").read_text()


def test_cupy_launches_on_its_arrays(device: Any) -> None:
    x, out = torch.arange(100.0, device="cuda"), torch.zeros(100, device="cuda")
    before = out._version
    assert kernel(ADD)[4, 32](x, x, out, 100) is None
    assert out.cpu().tolist() == [2.0 * i for i in range(100)]
    assert out._version == before + 1


def test_numbers_get_the_types_of_the_parameters_on_a_card(device: Any) -> None:
    source = """extern "C" __global__ void fill(double* x, double v, long long n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] = v;
    }"""
    x = torch.zeros(10, device="cuda", dtype=torch.float64)
    kernel(source)[1, 32](x, 3, 10)
    assert x.cpu().tolist() == [3.0] * 10
    with pytest.raises(TypeError, match=r"`n` is 'long long', and got 2\.5"):
        kernel(source)[1, 32](x, 3, 2.5)


def test_a_simulated_device_is_charged_with_the_launch() -> None:
    with torch.cuda.simulate() as simulation:
        x, out = torch.arange(100.0, device="cuda"), torch.zeros(100, device="cuda")
        done = kernel(ADD)[4, 32](x, x, out, 100)
        assert done is not None and done.totals.flops == 100
        assert out.cpu().tolist() == [2.0 * i for i in range(100)]
        assert "add" in [span.name for span in simulation.timeline.spans if span.kind == "kernel"]


def test_streams_race_over_kernels_too() -> None:
    with torch.cuda.simulate():
        x, out = torch.arange(100.0, device="cuda"), torch.zeros(100, device="cuda")
        torch.cuda.synchronize()
        add = kernel(ADD)
        with torch.cuda.stream(torch.cuda.Stream()):
            add[4, 32](x, x, out, 100)
        with pytest.raises(RaceError, match="add"):
            add[4, 32](x, x, out, 100)


def test_faults_are_reported_on_a_simulated_device() -> None:
    with torch.cuda.simulate():
        x, out = torch.arange(100.0, device="cuda"), torch.zeros(90, device="cuda")
        with pytest.raises(KernelError, match="index 90 of 90 elements of `out`"):
            kernel(ADD)[4, 32](x, x, out, 100)


def test_tensors_of_host_and_device_do_not_mix() -> None:
    with torch.cuda.simulate():
        x, out = torch.arange(100.0, device="cuda"), torch.zeros(100)
        with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu!"):
            kernel(ADD)[4, 32](x, x, out, 100)
