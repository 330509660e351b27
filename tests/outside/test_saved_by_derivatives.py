"""What derivatives save, how the gradients lie, and types of losses."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, attempt, torch, tt
from tests.outside import forms, grads, signatures
from tests.outside import statements as st
from tests.outside.alike import alike_for

pytest.importorskip("expecttest", reason="samples come from PyTorch's database")
pytestmark = pytest.mark.filterwarnings("ignore")

LIE = "addmm norm std std_mean var nansum nanmean mean take linalg.multi_dot nn.functional.pairwise_distance"
LIE += " nn.functional.adaptive_avg_pool1d linalg.vector_norm dist"


def entries(name: str) -> list[tuple[int, Any]]:
    return [(i, info) for i, info in enumerate(signatures.database()) if info.name == name]


@pytest.mark.parametrize("name", LIE.split())
def test_gradients_lie_as_pytorch_has_them(name: str) -> None:
    for i, info in entries(name):
        some = [s for s in st.samples(i) if any(t.dim() > 1 for t in st.inside(s))][:4]
        for s, layouts, way in itertools.product(
            some, itertools.product(grads.LAYOUTS, repeat=2), ("ones", "sum")
        ):
            given = s, signatures.where(info), dict(enumerate(layouts)), way
            a = grads.attempt(ORACLE, *given)
            if a is not None and not isinstance(a, str):
                found = grads.differ(a, grads.attempt(SUBJECT, *given))
                assert found in ("", "node"), (s, layouts, way)


SAVED = (
    "take put index_add index_copy masked_select complex fft.fft fft.rfft linalg.householder_product ormqr"
    " linalg.lstsq cholesky_solve special.log_ndtr linalg.qr linalg.svdvals nn.functional.layer_norm erfinv"
)


@pytest.mark.parametrize("name", SAVED.split())
def test_what_derivatives_save(name: str) -> None:
    for i, info in entries(name):
        for s in [s for s in st.samples(i) if s.input is not None][:5]:
            for kind, place in (("result", 0), ("operand", 0), ("operand", 1), ("operand", 2)):
                given = s, signatures.where(info), kind, place
                assert written(SUBJECT, *given) == written(ORACLE, *given), (s, kind, place)


def written(side: Side, s: Any, name: str, kind: str, place: int) -> str | None:
    """What a backward pass says after a result, or an operand, was written to."""
    m, leaves, products = side.root, list[Any](), list[Any]()

    def times(x: Any) -> Any:
        if isinstance(x, m.Tensor) and x.requires_grad:
            products.append(x * 1)
            return products[-1]
        return type(x)(times(v) for v in x) if type(x) in (list, tuple) else x

    args = [times(grads.laid(m, a, {}, leaves)) for a in side.carry([s.input, *s.args], {})]
    kwargs = side.carry(s.kwargs, {})

    def run() -> None:
        made = grads.tensors(m, forms.found(m, name)(*args, **kwargs))
        targets = made if kind == "result" else products
        results = [r for r in made if r.requires_grad]
        if not results or place >= len(targets):
            return
        with m.no_grad():
            targets[place].zero_()
        m.autograd.grad(results, leaves, [m.ones_like(r) for r in results], allow_unused=True)

    _, refused = attempt(run)
    return type(refused).__name__ if refused is not None else None


LOSSES = "mse_loss huber_loss nll_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div"


@pytest.mark.parametrize("name", LOSSES.split())
def test_losses_of_two_types(name: str) -> None:
    kinds = ("float32", "bfloat16", "int64", "bool", "float64")
    for dtype, other, shape, wanted in itertools.product(
        kinds, kinds, ((2, 3), (3,), ()), (0, 1, 2)
    ):

        def what(m: Any, dtype: str, other: str, shape: Any, wanted: int) -> Any:
            x = m.ones(shape, dtype=getattr(m, dtype))
            y = m.ones(shape, dtype=getattr(m, other))
            leaves = [t.requires_grad_() for t, on in ((x, wanted == 1), (y, wanted == 2)) if on]
            made = getattr(m.nn.functional, name)(x, y)
            return [made, *(m.autograd.grad(made, leaves) if leaves else ())]

        alike_for(what, dtype, other, shape, wanted)


GIVEN: tuple[tuple[Any, ...], ...] = (
    (), (0.5,), (0,), (0, 1), (0.1, 0.9), ("t",), ("t", "t"), (0, "i", "t"), ("m", 0.5), ("m", "t"),
)  # fmt: skip
NO_MATHEMATICS = ("set", "apply", "map", "requires", "share", "resize", "rename")
METHODS = [
    name.removesuffix("_")
    for name in dir(torch.Tensor)
    if name.endswith("_")
    and not name.startswith(("_", *NO_MATHEMATICS))
    and hasattr(tt.Tensor, name)
]


def lasts(m: Any, name: str, given: tuple[Any, ...]) -> bool | None:
    """Whether gradients can be computed twice, where they can be at all: nothing was let go of."""
    t = m.full((3, 3), 0.3)
    named = {"t": t, "i": m.tensor([0, 1, 2]), "m": t > 0}
    x = m.full((3, 3), 0.4, requires_grad=True)
    m.manual_seed(0)
    try:
        y = getattr(x + 0, name)(*(named.get(v, v) for v in given))
        y.backward(m.ones_like(y))
    except Exception:
        return None
    try:
        y.backward(m.ones_like(y))
    except RuntimeError:
        return False
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("end", ["", "_"])
@pytest.mark.parametrize("name", METHODS)
def test_what_nobody_asks_for_is_not_let_go_of(name: str, end: str) -> None:
    if not hasattr(tt.Tensor, name + end):
        return
    for given in GIVEN:
        theirs, ours = (lasts(m, name + end, given) for m in (torch, tt))
        assert None in (theirs, ours) or ours is theirs, given
