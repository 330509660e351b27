"""Every module, by family; the names of files are PyTorch's."""

from types import FunctionType as _FunctionType

from toytorch.facts.package import show as _show
from toytorch.nn.modules.activation import *
from toytorch.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss
from toytorch.nn.modules.attention import MultiheadAttention
from toytorch.nn.modules.batchnorm import *
from toytorch.nn.modules.batchnorm import _BatchNorm
from toytorch.nn.modules.channelshuffle import ChannelShuffle
from toytorch.nn.modules.container import ModuleDict, ModuleList, Sequential
from toytorch.nn.modules.container_parameters import ParameterDict, ParameterList
from toytorch.nn.modules.conv import *
from toytorch.nn.modules.distance import CosineSimilarity, PairwiseDistance
from toytorch.nn.modules.dropout import *
from toytorch.nn.modules.flatten import Flatten, Unflatten
from toytorch.nn.modules.fold import Fold, Unfold
from toytorch.nn.modules.instancenorm import (
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
)
from toytorch.nn.modules.lazy_conv import (
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
)
from toytorch.nn.modules.linear import Bilinear, Identity, LazyLinear, Linear
from toytorch.nn.modules.loss import *
from toytorch.nn.modules.loss_linear import LinearCrossEntropyLoss
from toytorch.nn.modules.loss_margin import *
from toytorch.nn.modules.module import Module
from toytorch.nn.modules.normalization import *
from toytorch.nn.modules.padding import *
from toytorch.nn.modules.pixelshuffle import PixelShuffle, PixelUnshuffle
from toytorch.nn.modules.pooling import *
from toytorch.nn.modules.rnn import GRU, LSTM, RNN, RNNBase
from toytorch.nn.modules.rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from toytorch.nn.modules.softmax import GLU, LogSoftmax, Softmax, Softmax2d, Softmin
from toytorch.nn.modules.sparse import Embedding, EmbeddingBag
from toytorch.nn.modules.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from toytorch.nn.modules.upsampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

# What several classes take from one that PyTorch has not, or not with this method.
_SHARED = {
    "__init__": "_WidePool _NormBase ELU _PadNd _ConstantPadNd _Conv _ConvTransposeNd _MarginLoss _GatedCell"
    " _FractionalMaxPoolNd InPlace _LazyConv Along _MaxUnpoolNd _Layer _ZeroPadNd",
    "forward": "_AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _WidePool _Conv _ConvTransposeNd _FractionalMaxPoolNd"
    " RNNBase InPlace _LPPoolNd _Plain _MaxPoolNd _MaxUnpoolNd",
}


def _say_own_names(classes: list[object]) -> None:
    """Has errors about the arguments of shared methods name the class that a program knows."""
    for cls in classes:
        for name, owners in _SHARED.items():
            old = getattr(cls, name, None)
            if not isinstance(cls, type) or name in vars(cls) or not isinstance(old, _FunctionType):
                continue
            if old.__qualname__.partition(".")[0] in owners.split():
                made = _FunctionType(
                    old.__code__, old.__globals__, name, old.__defaults__, old.__closure__
                )
                made.__dict__.update(old.__dict__)
                made.__annotations__, made.__kwdefaults__ = old.__annotations__, old.__kwdefaults__
                made.__doc__, made.__module__ = old.__doc__, old.__module__
                made.__qualname__ = f"{cls.__name__}.{name}"
                setattr(cls, name, made)


_say_own_names([_BatchNorm, *globals().values()])
_show(globals())
