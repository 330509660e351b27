"""A few eigenvalues of large symmetric matrices, for which only products with them are needed.

Locally optimal block preconditioned conjugate gradients: every step looks for the best approximations
in the span of the last ones X, of the directions P in which these moved, and of the residuals W.
Knyazev 2001, SIAM J. Sci. Comput. 23(2); when to stop: Duersch et al. 2018, ibid. 40(5), section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import toytorch
from toytorch.autograd.function import Function, FunctionCtx
from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.ops.linalg.cholesky import linalg_cholesky
from toytorch.ops.linalg.eigen import eigh
from toytorch.ops.linalg.triangular import solve_triangular_op

Tracker: TypeAlias = Callable[["LOBPCG"], object] | None
SPACING = {types.float32: 1.2e-07, types.float64: 2.23e-16}
ROUNDS = 3  # of making directions orthogonal to others: rounding needs a second, lost ones a third


def times(a: Tensor | None, x: Tensor) -> Tensor:
    """a·x, for None as the identity."""
    return x if a is None else a @ x


class LOBPCG:
    """One matrix's iteration; a tracker sees it after each step, and may set `bvars["force_stop"]`.

    X, E, R   eigenvectors (m, n), eigenvalues (n,) and residuals A·X - B·X·E (m, n)
    S         what the next approximations are looked for in
    ivars     "istep", "iterations_left", "converged_count"
    tvars     "rerr": residuals relative to the size of what they are the difference of
    """

    def __init__(
        self,
        A: Tensor,
        B: Tensor | None,
        X: Tensor,
        iK: Tensor | None,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Tracker,
    ) -> None:
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.ivars = {"istep": 0, "iterations_left": iparams["niter"], "converged_count": 0}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Tensor] = {}
        self.E, self.R, self.S = toytorch.zeros(iparams["n"], dtype=X.dtype), X, X

    def run(self) -> None:
        """Steps until all that are wanted have converged, or no steps are left."""
        norm = float(self.X.norm())
        self.fvars["X_norm"] = norm
        for name, matrix in (("A_norm", self.A), ("B_norm", self.B)):
            self.fvars[name] = float(times(matrix, self.X).norm()) / norm
        while True:
            self.update()
            if self.tracker is not None:
                self.tracker(self)
            done = self.ivars["converged_count"] >= self.iparams["k"]
            if done or self.bvars.get("force_stop") or self.ivars["iterations_left"] == 0:
                return

    def update(self) -> None:
        """The best approximations in the span of S, and the span of the next step."""
        fixed, n = self.ivars["converged_count"], self.iparams["n"]
        first = self.ivars["istep"] == 0
        E, Z = self.best(self.X if first else self.S)
        new = n if first else n - fixed
        moved = None
        if not first:
            within = Z[:, :new].clone()
            within[:new] = 0  # without the share of the last approximations
            moved = self.S @ within
        found = (self.X if first else self.S) @ Z[:, :new]
        self.X = found if first else toytorch.cat([self.X[:, :fixed], found], 1)
        self.E = E[:new] if first else toytorch.cat([self.E[:fixed], E[:new]])
        self.R = times(self.A, self.X) - times(self.B, self.X) * self.E
        fixed = self.ivars["converged_count"] = max(fixed, self.converged())
        directions = times(self.iK, self.R[:, fixed:])
        if moved is not None:
            directions = toytorch.cat(
                [moved[:, max(0, moved.shape[1] - n + fixed) :], directions], 1
            )
        directions = self.apart(directions)
        self.S = toytorch.cat([self.X[:, fixed:], directions], 1)
        self.ivars["istep"] += 1
        self.ivars["iterations_left"] -= 1

    def best(self, S: Tensor) -> tuple[Tensor, Tensor]:
        """Eigenvalues of the problem within a span, the best first, and the vectors' coordinates."""
        inner = S.mT @ times(self.B, S)
        size = inner.diagonal().rsqrt()
        lower = linalg_cholesky(inner * size * size[:, None])
        left: Any = solve_triangular_op.function(lower, size.diag(), upper=False)
        reduced = left @ (S.mT @ times(self.A, S)) @ left.mT
        E, Z = eigh((reduced + reduced.mT) / 2)
        Z = left.mT @ Z
        return (E.flip(0), Z.flip(1)) if self.bparams["largest"] else (E, Z)

    def apart(self, U: Tensor) -> Tensor:
        """Directions orthogonal to all approximations; method "ortho" makes them so to each other, too,
        and leaves out those that are none of their own."""
        BX = times(self.B, self.X)
        for _ in range(ROUNDS):
            U = U - self.X @ (BX.mT @ U)
            lengths = U.norm(dim=0)
            U = U[:, lengths > 0] / lengths[lengths > 0]
            if self.method != "ortho":
                continue
            found, Q = eigh(U.mT @ times(self.B, U))
            kept = (
                found > SPACING[U.dtype] * U.shape[1] * found.max() if found.numel() else found > 0
            )
            U = U @ (Q[:, kept] * found[kept].rsqrt())
        return U

    def converged(self) -> int:
        """How many of the first approximations are good enough."""
        size = self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"]
        self.tvars["rerr"] = found = self.R.norm(dim=0) / (self.X.norm(dim=0) * size)
        good: list[bool] = (found < self.fparams["tol"]).tolist()
        return good.index(False) if False in good else len(good)


class _Eigenpairs(Function):
    """E and U of A·U = U·E, with their derivatives:

    dE = diag(Uᵀ·dA·U);  du = (λ - A)⁺·dA·u, where the pseudoinverse is zero along u.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, A: Tensor, find: Callable[[Tensor], Any]) -> Any:
        E, U = find(A)
        ctx.save_for_backward(A, E, U)
        return E, U

    @staticmethod
    def backward(ctx: FunctionCtx, g_E: Tensor, g_U: Tensor) -> Any:
        A, E, U = ctx.saved_tensors
        values, vectors = eigh(A)
        gaps = E[..., None, :] - values[..., :, None]  # (m, k); the nearest value is u's own
        own = gaps.abs() == gaps.abs().amin(-2, keepdim=True)
        inverse = gaps.masked_fill(own, math.inf).reciprocal()
        along = vectors @ (inverse * (vectors.mT @ g_U))
        return (U * g_E[..., None, :] + along) @ U.mT, None


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Tracker = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest or smallest eigenvalues of A·x = λ·B·x, (*, k), and their vectors, (*, m, k).

    A     (*, m, m), symmetric and dense, or sparse (m, m)
    B     positive definite, of A's shape; the identity where it is not given
    X, n  the approximations to start from, (*, m, n), or how many random ones
    iK    (m, m): a preconditioner, by which residuals are multiplied
    tol   of residuals, relative to what they are the difference of; the root of the type's spacing

    Raises ValueError where A has fewer than 3n rows. Gradients flow to a dense A where B is not given.
    Like `torch.lobpcg`.

    >>> E, X = lobpcg(torch.arange(1., 10.).diag(), k=2)
    >>> [round(value, 3) for value in E.tolist()]
    [9.0, 8.0]
    """
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    kind = A.dtype if A.dtype in SPACING else types.float32
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x "
            f"the number of requested eigenpairs (={n})"
        )
    iparams = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter}
    fparams = {"tol": SPACING[kind] ** 0.5 if tol is None else tol}
    bparams = {"largest": True if largest is None else largest}
    method = "ortho" if method is None else method
    if method == "ortho":
        iparams |= ortho_iparams or {}
        fparams |= ortho_fparams or {}
        bparams |= ortho_bparams or {}

    def one(A: Tensor, B: Tensor | None, X: Tensor | None) -> tuple[Tensor, Tensor]:
        start = toytorch.randn((m, n), dtype=kind, device=A.device) if X is None else X
        if tuple(start.shape) != (m, n):
            raise AssertionError(f"X shape mismatch: got {start.shape}, expected {(m, n)}")
        worker = LOBPCG(A, B, start, iK, iparams, fparams, bparams, method, tracker)
        worker.run()
        return worker.E[:k], worker.X[:, :k]

    def find(A: Tensor) -> tuple[Tensor, Tensor]:
        if A.ndim == 2:
            return one(A, B, X)
        stacks = [A, B, X]
        flat = [None if t is None else t.reshape([-1, *t.shape[-2:]]) for t in stacks]
        made = []
        for i in range(math.prod(A.shape[:-2])):
            iparams["batch_index"] = i
            made.append(one(*(t if t is None else t[i] for t in flat)))  # type: ignore[arg-type]  # A is there
        E, U = (toytorch.stack([pair[i] for pair in made]) for i in (0, 1))
        return E.reshape([*A.shape[:-2], k]), U.reshape([*A.shape[:-2], m, k])

    if not A.requires_grad and (B is None or not B.requires_grad):
        with no_grad():
            return find(A)
    words = "lobpcg.backward does not support {} yet. Note that lobpcg.forward does though."
    if A.is_sparse:
        raise ValueError(words.format("sparse input"))
    if B is not None:
        raise ValueError("lobpcg.backward does not support backward with B != I yet.")
    found: tuple[Tensor, Tensor] = _Eigenpairs.apply((A + A.mT) / 2, find)
    return found
