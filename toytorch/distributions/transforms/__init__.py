"""Functions with inverses, and what they do to volumes.

>>> t = AffineTransform(1.0, 2.0)
>>> t.inv(torch.tensor([3.0])), t.log_abs_det_jacobian(torch.tensor([0.0]), torch.tensor([1.0]))
(tensor([1.]), tensor([0.6931]))
"""

import toytorch as torch  # for the example
from toytorch.distributions.transforms.base import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    _InverseTransform,
    identity_transform,
)
from toytorch.distributions.transforms.elementwise import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    _clipped_sigmoid,
)
from toytorch.distributions.transforms.parts import CatTransform, StackTransform
from toytorch.distributions.transforms.vectors import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from toytorch.facts.package import show as _show

_show(globals())
