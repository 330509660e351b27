"""Second names of ops: most are NumPy's."""

import functools

from toytorch.core.function import make_function, make_inplace
from toytorch.core.older_forms import rearranged
from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.ops import overloads
from toytorch.ops.creation import convert
from toytorch.ops.define import PUBLIC, on_tensors
from toytorch.ops.elementwise import arithmetic, compare, elementary, floating, limits
from toytorch.ops.linalg import matmul
from toytorch.ops.shaping import in_place, rearrange

# Where the names below are defined.
SOURCES = limits, compare, convert, elementary, floating, in_place, overloads, arithmetic, rearrange

# A second name, and the record it stands for.
ALIASES = {
    "multiply": "mul", "negative": "neg", "absolute": "abs", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le", "not_equal": "ne", "fix": "trunc", "arccos": "acos",
    "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh",
}  # fmt: skip


for _name, _source in ALIASES.items():
    PUBLIC[_name] = registry[_source].function
    setattr(Tensor, _name, registry[_source].function)
# Under this name there never was an older form in which the factor comes first.
_by_older = functools.partial(rearranged, second_name=True)
subtract = PUBLIC["subtract"] = make_function(arithmetic.sub, _by_older)
on_tensors(subtract=subtract, subtract_=make_inplace(arithmetic.sub, _by_older))
for _name, _source in {**ALIASES, "divide": "div", "true_divide": "div", "clip": "clamp"}.items():
    setattr(Tensor, _name + "_", getattr(Tensor, _source + "_"))
# Names from the time when a sparse matrix needed its own.
PUBLIC["spmm"] = PUBLIC["dsmm"] = matmul.mm.function
PUBLIC["saddmm"] = matmul.addmm.function
for _name in ("concat", "concatenate"):
    PUBLIC[_name] = registry["cat"].function
on_tensors(**dict.fromkeys(("divide", "true_divide"), vars(Tensor)["div"]))
# Forms that write into their argument and are functions too.
IN_PLACE = (
    "arccos arccosh arcsin arcsinh arctan arctanh as_strided clamp clamp_max clamp_min "
    "clip detach fill fix gcd lcm ldexp negative resize_as xlogy zero"
)
for _name in IN_PLACE.split():
    PUBLIC[_name + "_"] = getattr(Tensor, _name + "_")
