"""`x.addcmul_(x, x)`: pointwise ops in place whose operands are the tensor itself, of any size."""

import numpy as np
import pytest

from tests.oracle import torch, tt
from toytorch.facts.schema import REQUIRED
from toytorch.ops import registry

NAMES = sorted(
    name
    for name, op in registry.items()
    if op.kind == "pointwise"
    and len(op.tensor_at) > 1
    and hasattr(tt.Tensor, f"{name}_")
    and hasattr(torch.Tensor, f"{name}_")
)


@pytest.mark.parametrize("count", [7, 5000, 300_000])
@pytest.mark.parametrize("name", NAMES)
def test_the_tensor_itself(name, count):
    op = registry[name]
    numbers = np.linspace(0.5, 2.0, count)

    def run(m, kind):
        x = m.tensor(numbers.astype(kind))
        if "int" in kind:
            x = m.tensor((numbers * 4).astype(kind))
        given = [(x if i in op.tensor_at else 0.5) for i in range(len(op.schema.args))]
        lacking = [a.default is REQUIRED or i in op.tensor_at for i, a in enumerate(op.schema.args)]
        args = [g for g, wanted in zip(given, lacking) if wanted]
        return getattr(x, f"{name}_")(*args[1:]).double().numpy()

    compared = 0
    for kind in ("float32", "float64", "int64"):
        try:
            want = run(torch, kind)
        except (RuntimeError, TypeError, NotImplementedError):
            continue  # of these types there is no such op
        np.testing.assert_allclose(run(tt, kind), want, 1e-5, 1e-6)
        compared += 1
    assert compared
