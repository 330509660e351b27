"""Number theory of integers: greatest common divisors and least common multiples."""

from __future__ import annotations

from toytorch.ops.define import pointwise
from toytorch.ops.elementwise.operand_checks import numbers

gcd = pointwise(
    "gcd(Tensor self, Tensor other) -> Tensor",
    formula="gcd(self, other)",
    checks=numbers("gcd_cpu", lowest=1, highest=1),
    doc="The greatest common divisor.",
    out_history="none",
)
lcm = pointwise(
    "lcm(Tensor self, Tensor other) -> Tensor",
    formula="lcm(self, other)",
    checks=numbers("lcm_cpu", lowest=1, highest=1),
    doc="The least common multiple.",
    out_history="none",
)
