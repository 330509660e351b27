"""Samples of linear algebra: factorisations, solutions, norms, distances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.ops.samples.base import (
    S,
    Sample,
    V,
    boolean,
    c64,
    c128,
    const,
    entry,
    f32,
    f64,
    i64,
    t,
    torch,
)


def well(*shape: int, dtype: Any = f64) -> Any:
    """Square matrices far from singular."""
    x = t(shape, dtype)
    return x + 3 * shape[-1] ** 0.5 * torch.eye(shape[-1], dtype=dtype)


def positive(*shape: int, dtype: Any = f64) -> Any:
    """Positive definite matrices."""
    x = t(shape, dtype)
    return x @ x.mH + 2 * torch.eye(shape[-1], dtype=dtype)


def listed(*samples: Sample) -> Callable[[], Iterator[Sample]]:
    return lambda: iter(samples)


def squares(make: Any = well, **kwargs: Any) -> Callable[[], Iterator[Sample]]:
    """One matrix, batches, none, of several types and layouts."""

    def draw() -> Iterator[Sample]:
        yield S(make(3, 3), **kwargs)
        yield S(make(2, 2, 3, 3), **kwargs)
        yield S(make(3, 3).mT, **kwargs)
        yield S(make(1, 1), **kwargs)
        yield S(make(0, 0), **kwargs)
        yield Sample((make(0, 2, 2),), kwargs, second=False)
        yield Sample((make(3, 3, dtype=f32),), kwargs, second=False)
        yield S(make(2, 3, 3, dtype=c128), **kwargs)
        yield V(make(3, 3, dtype=c64), **kwargs)

    return draw


for name in ("linalg.det", "det", "linalg.inv", "inverse", "linalg.slogdet", "slogdet", "logdet",
             "linalg.inv_ex"):  # fmt: skip
    entry(name, squares(), slack=10)


def _det_singular() -> Iterator[Sample]:
    x = const([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    yield Sample((x,), second=False, note="singular")
    yield Sample((torch.zeros(2, 2, dtype=f64),), second=False, note="zeros")


entry("linalg_det_at_zero", _det_singular, call=lambda side: side.root.linalg.det, slack=10)


def _systems(*, vectors: bool = True) -> Iterator[Sample]:
    yield S(well(3, 3), t((3, 2)))
    yield S(well(2, 3, 3), t((2, 3, 2)))
    yield S(well(2, 1, 3, 3), t((4, 3, 2)))
    yield S(well(3, 3).mT, t((2, 3)).mT)
    yield S(well(3, 3), t((3, 0)))
    yield S(well(3, 3, dtype=c128), t((3, 2), c128))
    yield Sample((well(3, 3, dtype=f32), t((3, 2), f32)), second=False)
    yield Sample((well(3, 3), t((2, 3))), {"left": False})
    if vectors:
        yield S(well(3, 3), t((3,)))
        yield S(well(2, 3, 3), t((2, 3)))


entry("linalg.solve", _systems, slack=10)
entry("linalg.solve_ex", _systems, slack=10)


def _triangles() -> Iterator[Sample]:
    for s in _systems(vectors=False):
        for upper in (False, True):
            yield Sample(s.args, {**s.kwargs, "upper": upper})
    yield S(well(3, 3), t((3, 2)), upper=True, unitriangular=True)
    yield V(well(40, 40), t((40, 3)), upper=False)
    yield V(well(40, 40), t((3, 40)), upper=True, left=False)
    yield V(torch.zeros(2, 2, dtype=f64), t((2, 1), low=1), upper=False)


entry("linalg.solve_triangular", _triangles, slack=10)
entry("triangular_solve", listed(
    S(t((3, 2)), well(3, 3)), S(t((2, 3, 1)), well(2, 3, 3), upper=False),
    S(t((3, 2), c128), well(3, 3, dtype=c128), transpose=True),
    S(t((3, 2)), well(3, 3), unitriangular=True)), slack=10,
    covers=("triangular_solve.coefficient",))  # fmt: skip

# -- factorisations -------------------------------------------------------------------------------


def symmetric(root: Any, f: Any) -> Any:
    """f of the Hermitian part of its first argument, so that every element has a gradient."""
    return lambda x, *rest, **kwargs: f((x + x.mH) * 0.5, *rest, **kwargs)


for name in ("linalg.cholesky", "linalg.cholesky_ex", "cholesky"):
    path = name.split(".")[-1]
    home = "linalg" if "." in name else ""

    def _cholesky(side: Any, path: str = path, home: str = home) -> Any:
        f = getattr(getattr(side.root, home) if home else side.root, path)
        return symmetric(side.root, f)

    entry(name, squares(positive), call=_cholesky, slack=10)
entry("linalg_cholesky_upper", squares(positive, upper=True), slack=10,
      call=lambda side: symmetric(side.root, side.root.linalg.cholesky))  # fmt: skip


def _factors(dtype: Any = f64) -> Any:
    return torch.linalg.cholesky(positive(3, 3, dtype=dtype))


def lower(f: Any, place: int) -> Any:
    """f of the lower triangle of one argument, the only part that has an influence."""

    def call(*args: Any, **kwargs: Any) -> Any:
        parts = list(args)
        parts[place] = parts[place].tril()
        return f(*parts, **kwargs)

    return call


entry("cholesky_solve", listed(S(t((3, 2)), _factors()), S(t((3, 2), c128), _factors(c128)),
      S(t((2, 3, 2)), _factors())), call=lambda side: lower(side.root.cholesky_solve, 1),
      slack=10)  # fmt: skip
entry("cholesky_inverse", listed(S(_factors()), S(_factors(c128))), slack=10,
      call=lambda side: lower(side.root.cholesky_inverse, 0))  # fmt: skip


def rectangles(**kwargs: Any) -> Iterator[Sample]:
    yield S(t((3, 3)), **kwargs)
    yield S(t((4, 2)), **kwargs)
    yield S(t((2, 4)), **kwargs)
    yield S(t((2, 3, 2)), **kwargs)
    yield S(t((4, 3)).mT, **kwargs)
    yield S(t((3, 2), c128), **kwargs)
    yield S(t((2, 3), c128), **kwargs)
    yield Sample((t((3, 2), f32),), kwargs, second=False)
    yield Sample((t((0, 3)),), kwargs, second=False)
    yield Sample((t((2, 3, 0)),), kwargs, second=False)


def _qr() -> Iterator[Sample]:
    yield from rectangles()
    yield S(t((3, 3)), "complete")
    yield S(t((2, 3)), "complete")
    yield V(t((4, 2)), "complete")
    yield V(t((4, 2)), "r")


entry("linalg.qr", _qr, slack=10)
entry("qr", lambda: rectangles(), slack=10)
entry("geqrf", listed(V(t((4, 3))), V(t((2, 2, 3))), V(t((3, 3), c128)), V(t((3, 2), f32))),
      slack=10)  # fmt: skip


def _reflections() -> Iterator[Sample]:
    yield S(t((4, 3)), t((3,)))
    yield S(t((4, 3)), t((2,)))
    yield S(t((2, 3, 3)), t((2, 3)))
    yield S(t((3, 2), c128), t((2,), c128))
    yield V(t((4, 3), f32), t((3,), f32))


entry("linalg.householder_product", _reflections, slack=20)


def _ormqr() -> Iterator[Sample]:
    for left in (True, False):
        for transpose in (True, False):
            shape = (4, 2) if left else (2, 4)
            yield S(t((4, 3)), t((3,)), t(shape), left, transpose)
    yield S(t((4, 2), c128), t((2,), c128), t((4, 3), c128), True, True)
    yield S(t((4, 2), c128), t((2,), c128), t((3, 4), c128), False, False)
    yield V(t((2, 4, 2)), t((2, 2)), t((2, 4, 3)))


entry("ormqr", _ormqr, slack=20)


def sizes(f: Any, *gauged: int) -> Any:
    """f with the absolute values of results whose signs or phases nothing determines."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return [r.abs() if i in gauged else r for i, r in enumerate(f(*args, **kwargs))]

    return call


def _svd() -> Iterator[Sample]:
    yield from rectangles(full_matrices=False)
    yield S(t((3, 2)), full_matrices=True)
    yield V(t((2, 3, 2), f32))


entry("linalg.svd", _svd, slack=50, forms=False,
      call=lambda side: sizes(side.root.linalg.svd, 0, 2))  # fmt: skip
entry("svd", lambda: rectangles(), slack=50, forms=False,
      call=lambda side: sizes(side.root.svd, 0, 2))  # fmt: skip
entry("linalg.svdvals", lambda: rectangles(), slack=20)
entry("linalg.eigh", squares(positive), slack=50,
      call=lambda side: symmetric(side.root, sizes(side.root.linalg.eigh, 1)))  # fmt: skip
entry("linalg.eigvalsh", squares(positive), slack=20,
      call=lambda side: symmetric(side.root, side.root.linalg.eigvalsh))  # fmt: skip


def spread(side: Any, name: str, f: Any) -> Any:
    """Eigenvalues in the order of their real and imaginary parts: LAPACK's own order is free."""

    def call(x: Any) -> Any:
        found = f(x)
        values = found[0] if name == "eig" else found
        order = (values.real + 1e-3 * values.imag).argsort(-1)
        values = values.gather(-1, order)
        if name == "eigvals":
            return values
        vectors = found[1].abs()
        return values, vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape))

    return call


def _general() -> Iterator[Sample]:
    yield S(const([[1.0, 2.0, 0.5], [0.3, 4.0, 1.0], [0.7, 0.1, -2.0]]))
    yield S(const([[[1.0, 2.0], [-3.0, 0.5]], [[2.0, 1.0], [0.0, -1.0]]]))
    yield S(t((3, 3), c128))
    yield V(t((2, 2), f32))


for name in ("eig", "eigvals"):
    entry(f"linalg.{name}", _general, slack=50, call=lambda side, name=name: spread(
        side, name, getattr(side.root.linalg, name)))  # fmt: skip


def _lu() -> Iterator[Sample]:
    yield S(well(3, 3))
    yield S(t((2, 4, 2)))
    yield S(t((2, 4)))
    yield S(t((3, 2), c128))
    yield S(well(3, 3), pivot=False)
    yield V(t((70, 40)))
    yield V(t((3, 3), f32))
    yield V(t((2, 3, 0)))


for name in ("linalg.lu", "linalg.lu_factor_ex", "lu"):
    entry(name, _lu, slack=20)
entry("linalg.lu_factor", lambda: (s for s in _lu() if 0 not in s.args[0].shape), slack=20)


def _factored(*shape: int, dtype: Any = f64) -> Any:
    return torch.linalg.lu_factor(well(*shape, dtype=dtype))


def _lu_solve() -> Iterator[Sample]:
    for left in (True, False):
        for adjoint in (True, False):
            b = t((3, 2) if left else (2, 3))
            yield S(*_factored(3, 3), b, left=left, adjoint=adjoint)
    yield S(*_factored(3, 3, dtype=c128), t((3, 2), c128), adjoint=True)
    yield S(*_factored(2, 3, 3), t((3, 2)))


entry("linalg.lu_solve", _lu_solve, slack=20)
entry("lu_solve", listed(S(t((3, 2)), *_factored(3, 3)),
      S(t((2, 3, 1)), *_factored(2, 3, 3))), slack=20)  # fmt: skip


def _unpack(side: Any) -> Any:
    """lu_unpack with exchanges that fit: PyTorch crashes where they do not."""

    def call(lu: Any, **kwargs: Any) -> Any:
        m, k = lu.shape[-2], min(lu.shape[-2:])
        pivots = side.root.full((*lu.shape[:-2], k), m, dtype=side.root.int32, device=lu.device)
        return side.root.lu_unpack(lu, pivots, **kwargs)

    return call


entry("lu_unpack", listed(
    S(t((3, 3))), S(t((4, 2))), S(t((2, 4))), S(t((2, 3, 3), c128)),
    V(t((3, 3)), unpack_data=False), S(t((3, 3)), unpack_pivots=False)),
    call=_unpack, forms=False)  # fmt: skip


def _indefinite(*shape: int, dtype: Any = f64, hermitian: bool = False) -> Any:
    x = t(shape, dtype)
    return x + (x.mH if hermitian else x.mT)


def _ldl() -> Iterator[Sample]:
    for n in (1, 2, 5, 8):
        yield V(_indefinite(n, n))
        yield V(_indefinite(2, n, n, dtype=c128))
        yield V(_indefinite(n, n, dtype=c128, hermitian=True), hermitian=True)
    yield V(_indefinite(4, 4, dtype=f32))


entry("linalg.ldl_factor", _ldl, slack=20)
entry("linalg.ldl_factor_ex", _ldl, slack=20)


def _ldl_solve() -> Iterator[Sample]:
    yield V(*torch.linalg.ldl_factor(_indefinite(5, 5)), t((5, 2)))
    yield V(*torch.linalg.ldl_factor(_indefinite(2, 4, 4)), t((4, 2)))
    made = torch.linalg.ldl_factor(_indefinite(4, 4, dtype=c128, hermitian=True), hermitian=True)
    yield V(*made, t((4, 2), c128), hermitian=True)
    yield V(*torch.linalg.ldl_factor(_indefinite(4, 4, dtype=c128)), t((4, 2), c128))


entry("linalg.ldl_solve", _ldl_solve, slack=20)


def _lstsq() -> Iterator[Sample]:
    for driver in ("gels", "gelsy"):
        yield S(t((4, 2)), t((4, 3)), driver=driver)
        yield S(t((2, 2, 3)), t((2, 2, 1)), driver=driver)
    yield V(t((4, 2)), t((4, 3)), driver="gelsd")
    yield S(t((4, 2), c128), t((4, 1), c128), driver="gels")
    yield V(t((4, 2), c128), t((4, 1), c128), driver="gelss")
    yield S(t((2, 4, 2)), t((2, 4)))
    yield V(const([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]), t((3, 1)), driver="gelsy")


entry("linalg.lstsq", _lstsq, slack=50)


def _pinv() -> Iterator[Sample]:
    yield from rectangles()
    yield V(t((3, 3)), hermitian=True)
    yield V(t((4, 3)), atol=0.5)
    yield V(t((2, 4, 3)), rtol=torch.tensor([0.3, 0.1], dtype=f64))
    yield V(const([[1.0, 1.0], [1.0, 1.0]]))


entry("linalg.pinv", _pinv, slack=50)
entry("pinverse", lambda: rectangles(), slack=50)
entry("linalg.matrix_rank", listed(
    V(t((4, 3))), V(const([[1.0, 1.0], [1.0, 1.0]])), V(t((2, 3, 3)), hermitian=True),
    V(t((3, 3)), tol=0.5), V(t((3, 3)), atol=1.0, rtol=0.1), V(t((0, 3)))))  # fmt: skip
for name in ("svd_lowrank", "pca_lowrank"):
    entry(name, listed(V(t((5, 4)), 2), V(t((2, 3, 6)), 2)), values=False)

# -- norms and distances --------------------------------------------------------------------------

INF = float("inf")


def _matrix_norms() -> Iterator[Sample]:
    for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
        yield S(t((3, 4)), ord)
        yield S(t((2, 3, 2)), ord, keepdim=True)
    yield S(t((2, 3, 4)), 1, (0, 2))
    yield S(t((3, 2), c128), "nuc")
    yield V(t((3, 2), f32), 2, dtype=f64)


entry("linalg.matrix_norm", _matrix_norms, slack=20)


def _norms() -> Iterator[Sample]:
    for ord in (None, 0, 1, 2, 3, -1, INF, -INF, 0.5):
        yield S(t((4,)), ord)
        yield S(t((2, 3)), ord, 1)
    for ord in ("fro", "nuc", 1, 2, INF):
        yield S(t((3, 2)), ord)
    yield S(t((2, 3, 4)))
    yield S(t((2, 3, 4)), dim=(0, 1, 2), keepdim=True)
    yield S(t((3, 2), c128), 2)
    for ord in (None, 1, 2, 3, INF, "nuc"):
        yield Sample((torch.zeros(2, 2, dtype=f64), ord), second=False, note="at zero")


entry("linalg.norm", _norms, slack=20)


def _vector_norms() -> Iterator[Sample]:
    for ord in (0, 1, 2, 3, -1, INF, -INF, 0.5):
        yield S(t((2, 3)), ord)
        yield S(t((2, 3)), ord, (0,), True)
    yield S(t((3,), c128), 3)
    yield V(t((3,), f32), dtype=f64)


entry("linalg.vector_norm", _vector_norms, slack=20)


def _conditions() -> Iterator[Sample]:
    for p in (None, 2, -2, 1, INF, "fro", "nuc"):
        yield S(well(3, 3), p)
    yield S(t((2, 4, 3)))
    yield V(torch.zeros(2, 2, dtype=f64), 1)


entry("linalg.cond", _conditions, slack=50)


def _cdist() -> Iterator[Sample]:
    for p in (0.0, 1.0, 2.0, 3.0, 0.5, INF):
        yield Sample((t((3, 4)), t((2, 4)), p), second=p == 2)
    yield S(t((2, 1, 3, 4)), t((3, 2, 4)))
    yield S(t((30, 3)), t((2, 3)))
    yield S(t((3, 4)), t((2, 4)), compute_mode="donot_use_mm_for_euclid_dist")
    yield V(t((3, 4), f32), t((0, 4), f32))
    x = t((3, 2))
    yield Sample((x, x.clone()), second=False, note="distances of zero")


entry("cdist", _cdist, slack=10)
entry("renorm", listed(S(t((3, 4)), 2, 0, 1.0), S(t((3, 4)), 1, 1, 2.5), S(t((2, 3, 2)), 3, -1, 1),
      S(t((3, 4), layout="transposed"), INF, 0, 1.5), V(t((2, 3), f32), 2, 0, 1.0)),
      slack=10)  # fmt: skip

# -- functions and products -----------------------------------------------------------------------


def _exponentials() -> Iterator[Sample]:
    yield S(t((3, 3)))
    yield S(t((2, 2, 2)) * const([[[1.0]], [[9.0]]]))
    yield S(t((2, 2), c128))
    yield S(t((3, 3), f32))
    yield V(torch.zeros(2, 2, dtype=f64))
    yield V(t((0, 0)))


entry("matrix_exp", _exponentials, slack=20)
entry("linalg.matrix_exp", _exponentials, slack=20)


def _powers() -> Iterator[Sample]:
    for n in (0, 1, 2, 3, 5, -1, -2):
        yield S(well(3, 3), n)
    yield S(well(2, 2, 2, dtype=c128), 3)


entry("linalg.matrix_power", _powers, slack=50)
entry("matrix_power", _powers, slack=50)
entry("linalg.multi_dot", listed(
    S([t((2, 3)), t((3, 4)), t((4, 2))]), S([t((3,)), t((3, 4)), t((4,))]),
    S([t((2, 3)), t((3,))]), S([t((5, 2)), t((2, 6)), t((6, 1)), t((1, 4))])), slack=3)  # fmt: skip


def _crosses() -> Iterator[Sample]:
    yield S(t((2, 3)), t((2, 3)))
    yield S(t((3, 2)), t((3, 2)), dim=0)
    yield S(t((3,)), t((3,)))
    yield S(t((2, 1, 3)), t((1, 4, 3)))
    yield S(t((2, 3), c128), t((2, 3), c128))
    yield V(t((2, 3), i64), t((2, 3), i64))


entry("linalg.cross", _crosses)
entry("cross", _crosses)
entry("linalg.vecdot", listed(S(t((2, 3)), t((2, 3))), S(t((3,), c128), t((3,), c128)),
      S(t((3, 2)), t((3, 1)), dim=0)))  # fmt: skip
entry("linalg.vander", listed(S(t((3,))), S(t((2, 3)), N=4), V(t((3,), i64)), S(t((3,), c128))))
entry("linalg.diagonal", listed(S(t((2, 3, 3))), S(t((3, 4)), offset=1), S(t((3, 2, 3)), dim1=0)))
entry("linalg.tensorinv", listed(S(t((2, 3, 6)) + torch.eye(6, dtype=f64).reshape(2, 3, 6) * 8),
      S(well(3, 3), ind=1)), slack=20)  # fmt: skip
entry("linalg.tensorsolve", listed(
    S(t((2, 3, 6)) + torch.eye(6, dtype=f64).reshape(2, 3, 6) * 8, t((2, 3))),
    S(well(6, 6).reshape(2, 3, 6), t((2, 3)), dims=(2,))), slack=20)  # fmt: skip
entry("vdot", listed(S(t((4,)), t((4,))), S(t((4,), c128), t((4,), c128)),
      V(t((4,), i64), t((4,), i64))), slack=3)  # fmt: skip
entry("kron", listed(S(t((2, 3)), t((2, 2))), S(t((2,)), t((3,))), S(t((2, 1, 2)), t((3,))),
      S(t((2,), c128), t((2,))), V(t((2,), i64), t((2,), boolean))))  # fmt: skip

# -- statistics and integrals ---------------------------------------------------------------------


def _covariances() -> Iterator[Sample]:
    yield S(t((2, 4)))
    yield S(t((4,)))
    yield S(t((3, 4)), correction=0)
    yield S(t((2, 3)), fweights=torch.tensor([1, 2, 3]))
    yield S(t((2, 3)), aweights=t((3,), low=0.5))
    yield S(t((2, 3)), fweights=torch.tensor([1, 2, 3]), aweights=t((3,), low=0.5))
    yield S(t((2, 4), c128))
    yield V(t((2, 4), f32))


entry("cov", _covariances, slack=10)
entry("corrcoef", listed(S(t((2, 4))), S(t((3, 5), c128)), V(t((4,)))), slack=20)
for name in ("trapezoid", "trapz", "cumulative_trapezoid"):
    entry(name, listed(S(t((2, 4))), S(t((4,)), t((4,))), S(t((2, 4)), t((2, 4))),
          S(t((2, 4)), dx=0.5, dim=0), S(t((3, 4)), t((3,)), dim=0), V(t((4,), i64)),
          S(t((2, 1)))))  # fmt: skip
