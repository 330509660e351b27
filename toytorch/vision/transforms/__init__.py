"""Changes to pictures, under torchvision's names: tensors (…, C, H, W) in, tensors out.

`ToTensor` takes NumPy arrays (H, W, C). What is random draws from toytorch's default generator.
"""

from toytorch.facts.package import show as _show
from toytorch.vision.transforms import functional
from toytorch.vision.transforms.chains import *
from toytorch.vision.transforms.functional import InterpolationMode
from toytorch.vision.transforms.geometry import *
from toytorch.vision.transforms.values import *

_show(globals(), "functional")
