"""Members of modules by their names, and the handles of hooks."""

import torch
from torch import nn
from torch.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor

print(type(torch.ones(1, requires_grad=True).register_hook(print)))
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))
print(type(net[0]._forward_hooks))
acc = NamedMemberAccessor(net)
for call in (
    lambda: acc.get_tensor("0.weight").shape,
    lambda: acc.check_keys(["0.weight", "x"]),
    lambda: acc.swap_tensor("0.bias", torch.zeros(2)).shape,
    lambda: acc.get_submodule("1"),
    lambda: acc.get_tensor("0.x"),
    lambda: acc.get_submodule("7"),
    lambda: acc.set_tensor("0.bias", torch.ones(2)),
    lambda: [n for n, _ in acc.named_tensors()],
    lambda: acc.del_tensor("0.bias"),
    lambda: net[0].bias,
    lambda: acc.swap_tensors_dict({"1.bias": torch.ones(3), "1.foo": torch.ones(1)}),
    lambda: net[1].bias.sum() != 3,
    lambda: acc.swap_tensors_dict(
        {"1.bias": torch.ones(3), "1.foo": torch.ones(1)}, allow_missing=True
    )[1],
    lambda: acc.set_tensors(["1.bias"], []),
    lambda: acc.swap_submodule("1", nn.ReLU()),
    lambda: net,
    lambda: acc.swap_submodule("9", nn.ReLU()),
    lambda: swap_tensor(net, "a.b", torch.ones(1)),
    lambda: swap_tensor(net, "x", 3),
    lambda: acc.set_tensor("0.in_features", torch.ones(1)),
    lambda: acc.get_tensor("0.out_features"),
    lambda: acc.del_tensors(["0.q"]),
):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__, error)
