"""Changes to pictures, under torchvision's names: tensors (…, C, H, W) in, tensors out.

`ToTensor` takes NumPy arrays (H, W, C). What is random draws from toytorch's default generator.
"""

from toytorch.vision.transforms import functional
from toytorch.vision.transforms.chains import (
    Compose,
    Lambda,
    RandomApply,
    RandomChoice,
    RandomOrder,
)
from toytorch.vision.transforms.functional import InterpolationMode
from toytorch.vision.transforms.geometry import (
    CenterCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)
from toytorch.vision.transforms.values import (
    ColorJitter,
    ConvertImageDtype,
    Grayscale,
    Normalize,
    PILToTensor,
    RandomErasing,
    ToTensor,
)

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "Grayscale",
    "InterpolationMode",
    "Lambda",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomAffine",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomOrder",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
    "functional",
]
