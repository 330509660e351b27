"""Every module, by family; the names of files are PyTorch's."""

from toytorch.facts.package import show as _show
from toytorch.nn.modules.activation import *
from toytorch.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss
from toytorch.nn.modules.attention import MultiheadAttention
from toytorch.nn.modules.batchnorm import *
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

_show(globals())
