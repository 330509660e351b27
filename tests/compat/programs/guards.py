"""What programs ask and set before they start: seeds, devices, determinism, precision, versions."""

import os
import random

import numpy as np
import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    cudnn.deterministic = True
    cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)


set_seed(0)
use_cuda = torch.cuda.is_available()
device = "cuda" if use_cuda else "mps" if torch.backends.mps.is_available() else "cpu"
print(device, torch.device(device).type, torch.cuda.device_count() > 0)
print(torch.are_deterministic_algorithms_enabled())
torch.set_float32_matmul_precision("high")
print(torch.get_float32_matmul_precision())
print(isinstance(torch.__config__.show(), str), torch.__version__.count(".") >= 2)
state = torch.get_rng_state()
a = torch.rand(3)
torch.set_rng_state(state)
print(torch.equal(a, torch.rand(3)), state.dtype)
with torch.random.fork_rng():
    torch.manual_seed(1)
    torch.randn(4)
b = torch.rand(2)
torch.set_rng_state(state)
torch.rand(3)
print(torch.equal(b, torch.rand(2)))
distributed = dist.is_available() and dist.is_initialized()
rank = dist.get_rank() if distributed else 0
world = int(os.environ.get("WORLD_SIZE", "1"))
model = torch.nn.Linear(2, 2)
if world > 1:
    model = DDP(model)
print(rank, world, type(model).__name__, model.weight.device, next(model.parameters()).is_cuda)
torch.use_deterministic_algorithms(False)
torch.set_float32_matmul_precision("highest")
print(torch.get_default_dtype(), torch.finfo(torch.float32).eps, torch.iinfo(torch.int16).max)
x = torch.ones(2, 3, device=device, dtype=torch.float16)
print(x.element_size() * x.nelement(), x.type(), x.is_contiguous(), x.stride(), x.layout)
print(torch.is_tensor(x), torch.is_floating_point(x), torch.can_cast(torch.int64, torch.float32))
print(torch.cuda.memory_allocated() if not use_cuda else 0, torch.version.cuda is None or use_cuda)
