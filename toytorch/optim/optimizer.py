"""What all optimizers share: parameter groups, state, steps; the rule is a subclass's `update`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from toytorch.autograd.modes import enable_grad, no_grad
from toytorch.core.node import Handle
from toytorch.core.tensor import Tensor


class Optimizer:
    """Changes parameters by their gradients.

    A subclass defines `update(param, grad, state, group)`, which writes `param` in place; `state`
    is that parameter's own dictionary, `group` holds the hyperparameters.

    >>> import toytorch as torch
    >>> class Descent(Optimizer):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {"lr": lr})
    ...     def update(self, param, grad, state, group):
    ...         param.sub_(grad * group["lr"])
    >>> x = torch.tensor([1.], requires_grad=True)
    >>> (x * x).sum().backward(); Descent([x]).step(); x
    tensor([0.8000], requires_grad=True)
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of "
                            f"Tensors or dicts, but got {params.type()}")
        self.defaults = defaults
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._pre_hooks: dict[int, Any] = {}
        self._post_hooks: dict[int, Any] = {}
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def update(self, param: Tensor, grad: Tensor, state: dict[str, Any],
               group: dict[str, Any]) -> None:
        """The rule: writes the new value of one parameter in place."""
        raise NotImplementedError(f"{type(self).__name__} does not define update()")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with hyperparameters of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but "
                            "the ordering of tensors in sets will change between runs. Please use a"
                            " list instead.")
        params = list(params)
        named = [p for p in params if isinstance(p, tuple)]
        if named:
            group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is "
                                + type(p).__name__)
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) != len(params):
            raise ValueError("some parameters appear more than once in the parameter group")
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in taken for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        group["params"] = params
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets all gradients, or sets them to 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    if set_to_none:
                        p._grad = None
                    else:
                        p._grad.detach_().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Applies the rule to every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for hook in list(self._pre_hooks.values()):
            hook(self, (closure,), {})
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p._grad is not None:
                        self.update(p, p._grad, self.state[p], group)
        for hook in list(self._post_hooks.values()):
            hook(self, (closure,), {})
        return loss

    def register_step_pre_hook(self, hook: Any) -> Handle:
        """Calls hook(optimizer, args, kwargs) before each step."""
        return Handle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Any) -> Handle:
        """Calls hook(optimizer, args, kwargs) after each step."""
        return Handle(self._post_hooks, hook)

    def state_dict(self) -> dict[str, Any]:
        """State by parameter number, and the groups, as PyTorch arranges them."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            groups.append({**{k: v for k, v in group.items() if k != "params"},
                           "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(p)]: s for p, s in self.state.items() if s and id(p) in numbers}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over state and hyperparameters."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, self.param_groups)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the "
                             "size of optimizer's group")
        params: dict[int, Any] = {}
        for theirs, mine in zip(saved, self.param_groups):
            params.update(zip(theirs["params"], mine["params"]))
        state: dict[Any, dict[str, Any]] = defaultdict(dict)
        for number, values in state_dict["state"].items():
            p = params.get(number)
            if p is not None:
                state[p] = {k: self._like(k, v, p) for k, v in values.items()}
        self.state = state
        for theirs, mine in zip(saved, self.param_groups):
            mine.update({k: v for k, v in theirs.items() if k != "params"})

    @staticmethod
    def _like(name: str, value: Any, param: Tensor) -> Any:
        if not isinstance(value, Tensor):
            return value
        if name == "step":
            return value.clone()
        return value.to(dtype=param.dtype, device=param.device, copy=True)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join(lines) + "\n)"


def check_positive(**values: Any) -> None:
    """Refuses negative hyperparameters."""
    for name, value in values.items():
        if not isinstance(value, Tensor) and not value >= 0.0:
            words = name.replace("_", " ") if name != "weight_decay" else name
            ending = " value" if name in ("epsilon", "momentum", "weight_decay") else ""
            raise ValueError(f"Invalid {words}{ending}: {value}")
