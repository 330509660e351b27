"""Wrong answers of chapter 07."""

from mytorch.module import Module
from mytorch.tensor import Tensor
from tests.course.wrong import handed_in, like, wrong
from toytorch import nn

# -- modules.register

like(
    "modules.register",
    "None becomes a plain attribute beside the parameter",
    ("        own[kind][name] = None", "        object.__setattr__(self, name, None)"),
)
like(
    "modules.register",
    "a parameter that is assigned anew moves to the end",
    (
        "            if place is not own[kind]:\n                place.pop(name, None)",
        "            place.pop(name, None)",
    ),
)
like(
    "modules.register",
    "a parameter for a buffer's name leaves the buffer where it was",
    (
        "(own, self._parameters, self._modules, self._buffers)",
        "(own, self._parameters, self._modules)",
    ),
)
like(
    "modules.register",
    "only tensors are refused for a parameter's name",
    ("        if value is not None:\n", "        if isinstance(value, torch.Tensor):\n"),
)
like(
    "modules.register",
    "a module's name takes anything",
    ("elif name in self._parameters or name in self._modules:", "elif name in self._parameters:"),
)
like(
    "modules.register",
    "asks for the exact type, so that a subclass of Parameter is none",
    ("if isinstance(value, nn.Parameter):", "if type(value) is nn.Parameter:"),
)
like(
    "modules.register",
    "a buffer that is set to None becomes a plain attribute",
    ("elif name in self._buffers:", "elif name in self._buffers and value is not None:"),
)
like(
    "modules.register",
    "looks into the buffers first, so that a buffer's name never holds a parameter",
    (
        "    elif kind:\n",
        "    elif name in self._buffers:\n        self._buffers[name] = value\n    elif kind:\n",
    ),
)


like(
    "modules.register",
    "only modules are registered",
    ('kind = "_parameters"\n    elif', "kind = None\n    elif"),
)
like(
    "modules.register",
    "modules among the parameters",
    ('        kind = "_modules"', '        kind = "_parameters"'),
)
like(
    "modules.register",
    "too early is passed over in silence",
    ('raise AttributeError("call super().__init__() first")', "return"),
)
like(
    "modules.register",
    "None takes the name away",
    ("own[kind][name] = None", "del own[kind][name]"),
)
like("modules.register", "an error of another kind", ("raise TypeError(", "raise ValueError("))


# -- modules.parameters

like(
    "modules.parameters",
    "skips frozen parameters",
    ("if p is not None and id(p)", "if p is not None and p.requires_grad and id(p)"),
)
like(
    "modules.parameters",
    "takes parameters with one memory for one parameter",
    ("id(p) not in seen", "p.data_ptr() not in seen"),
    ("seen.add(id(p))", "seen.add(p.data_ptr())"),
)
like(
    "modules.parameters",
    "puts the dot in itself, and so twice",
    ("    found = []\n", "    found, prefix = [], prefix + '.' if prefix else prefix\n"),
    ('prefix + name + "."', "prefix + name"),
)
like(
    "modules.parameters",
    "fails for a child that was removed",
    ("        if child is not None:\n            found += named", "        found += named"),
)
like(
    "modules.parameters",
    "each child starts with a copy of what was seen",
    ('prefix + name + ".", seen)', 'prefix + name + ".", set(seen))'),
)


@wrong("modules.parameters", "is the module's own method")
def named_parameters(module, prefix="", seen=None):
    return [(prefix + n, p) for n, p in module.named_parameters()]


@wrong("modules.parameters", "a stack turns the children around")
def named_parameters(module, prefix="", seen=None):
    seen, found, todo = set(), [], [(prefix, module)]
    while todo:
        prefix, now = todo.pop()
        for name, p in now._parameters.items():
            if p is not None and id(p) not in seen:
                seen.add(id(p))
                found.append((prefix + name, p))
        todo += [(prefix + n + ".", c) for n, c in now._modules.items() if c is not None]
    return found


like("modules.parameters", "joins names with an underscore", ('name + "."', 'name + "_"'))
like("modules.parameters", "only the first child", (", seen)\n", ", seen)\n            break\n"))
like(
    "modules.parameters",
    "a dictionary instead of a list",
    ("    return found", "    return dict(found)"),
)


# -- modules.linear

like(
    "modules.linear",
    "the bias is bounded by the outputs",
    (
        "            start = torch.empty(out_features)",
        (
            "            k = 1 / math.sqrt(out_features)\n"
            "            start = torch.empty(out_features)"
        ),
    ),
)
like(
    "modules.linear",
    "the bias starts at zero",
    ("torch.empty(out_features).uniform_(-k, k)", "torch.zeros(out_features)"),
)
like(
    "modules.linear",
    "without bias there is one that is zero",
    ("self.bias = None", "self.bias = torch.zeros(out_features)"),
)
like(
    "modules.linear",
    "the weight wants no gradient",
    (
        "nn.Parameter(weight.uniform_(-k, k))",
        "nn.Parameter(weight.uniform_(-k, k), requires_grad=False)",
    ),
)
like(
    "modules.linear",
    "multiplies by the data, past autograd",
    ("self.weight.t()", "self.weight.data.t()"),
)
like(
    "modules.linear",
    "seeds the generator: all layers start alike",
    ("        k = 1 /", "        torch.manual_seed(0)\n        k = 1 /"),
)
like(
    "modules.linear",
    "normal instead of uniform",
    ("weight.uniform_(-k, k)", "weight.normal_(0, k)"),
)


@wrong("modules.linear", "is nn.Linear")
class Linear(nn.Linear):
    pass


like("modules.linear", "no root in the bound", ("1 / math.sqrt(in_features)", "1 / in_features"))
like(
    "modules.linear",
    "a column of biases",
    ("torch.empty(out_features).", "torch.empty(out_features, 1)."),
)
like("modules.linear", "does not transpose", ("x @ self.weight.t()", "x @ self.weight"))


# -- modules.load

like(
    "modules.load",
    "goes by position instead of by name",
    (
        "    for name in common:\n        mine[name].copy_(state[name])",
        "    for kept, value in zip(mine.values(), state.values()):\n        kept.copy_(value)",
    ),
)
like(
    "modules.load",
    "takes the values out of the state",
    ("mine[name].copy_(state[name])", "mine[name].copy_(state.pop(name))"),
)
like(
    "modules.load",
    "loads floating values only, so that counts stay",
    (
        "    for name in common:\n        mine[name].copy_(state[name])",
        "    for name in common:\n        if mine[name].is_floating_point():\n"
        "            mine[name].copy_(state[name])",
    ),
)
like(
    "modules.load",
    "compares the number of elements instead of the shape",
    ("mine[name].shape != state[name].shape", "mine[name].numel() != state[name].numel()"),
)
like(
    "modules.load",
    "compares the number of dimensions instead of the shape",
    ("mine[name].shape != state[name].shape", "mine[name].dim() != state[name].dim()"),
)
like(
    "modules.load",
    "the lists the other way round",
    ("return missing, unexpected", "return unexpected, missing"),
)
like(
    "modules.load",
    "adds to what is there",
    ("mine[name].copy_(state[name])", "mine[name].add_(state[name])"),
)
like(
    "modules.load",
    "leaves the first one out",
    (
        "    for name in common:\n        mine[name].copy_(state[name])",
        "    for name in common[1:]:\n        mine[name].copy_(state[name])",
    ),
)


@wrong("modules.load", "is the module's own method")
def load_state(module, state, strict=True):
    return tuple(module.load_state_dict(state, strict))


# -- modules.batchnorm

like(
    "modules.batchnorm",
    "mean and variance of the batch under no_grad",
    (
        (
            "            mean, var = x.mean(0), x.var(0, correction=0)\n"
            "            with torch.no_grad():\n"
        ),
        (
            "            with torch.no_grad():\n"
            "                mean, var = x.mean(0), x.var(0, correction=0)\n"
        ),
    ),
)
like(
    "modules.batchnorm",
    "forgets weight and bias",
    ("return y * self.weight + self.bias", "return y"),
)
like("modules.batchnorm", "a momentum of its own", ("m = self.momentum", "m = 0.1"))
like("modules.batchnorm", "an eps of its own", ("var + self.eps", "var + 1e-5"))
like(
    "modules.batchnorm",
    "adds the bias before it scales",
    ("return y * self.weight + self.bias", "return (y + self.bias) * self.weight"),
)
like(
    "modules.batchnorm",
    "takes the variance as a constant",
    ("x.var(0, correction=0)\n", "x.var(0, correction=0).detach()\n"),
)
like(
    "modules.batchnorm",
    "writes into its input",
    (
        "        y = (x - mean) / torch.sqrt(var + self.eps)\n",
        "        x.data.sub_(mean)\n        y = x / torch.sqrt(var + self.eps)\n",
    ),
)
like(
    "modules.batchnorm",
    "normalises with the running values in training, too",
    (
        "        y = (x - mean)",
        "        mean, var = self.running_mean, self.running_var\n        y = (x - mean)",
    ),
)


@wrong("modules.batchnorm", "is nn.BatchNorm1d")
class BatchNorm(nn.BatchNorm1d):
    pass


like(
    "modules.batchnorm",
    "one mean for all features",
    ("x.mean(0), x.var(0, correction=0)", "x.mean(), x.var(correction=0)"),
)
like(
    "modules.batchnorm",
    "shifts before it scales",
    ("y * self.weight + self.bias", "(y + self.bias) * self.weight"),
)


# -- modules.watch

like(
    "modules.watch",
    "clears all hooks, the user's own as well",
    (
        "        for handle in handles:\n            handle.remove()",
        "        for module in model.modules():\n            module._forward_hooks.clear()",
    ),
)
like(
    "modules.watch",
    "leaves the model in evaluation mode",
    ("    try:\n        model(x)", "    try:\n        model.eval()\n        model(x)"),
)
like(
    "modules.watch",
    "switches gradients off for good",
    (
        "    try:\n        model(x)",
        "    try:\n        torch.set_grad_enabled(False)\n        model(x)",
    ),
)
like(
    "modules.watch",
    "the mean of the absolute values",
    ("output.square().mean().sqrt().item()", "output.abs().mean().item()"),
)
like(
    "modules.watch",
    "the standard deviation",
    ("output.square().mean().sqrt().item()", "output.std(correction=0).item()"),
)
like("modules.watch", "a tensor instead of a number", (".sqrt().item()", ".sqrt()"))


@wrong("modules.watch", "runs the model once for each layer")
def sizes(model, x):
    found = {}
    for name, module in model.named_modules():
        if not list(module.children()):

            def hook(m, a, output, name=name):
                found[name] = output.square().mean().sqrt().item()

            handle = module.register_forward_hook(hook)
            try:
                model(x)
            finally:
                handle.remove()
    return found


@wrong("modules.watch", "goes through the layers itself, one after the other")
def sizes(model, x):
    found = {}
    for name, module in model.named_modules():
        if not list(module.children()):
            x = module(x)
            found[name] = x.square().mean().sqrt().item()
    return found


like("modules.watch", "the mean size", (".square().mean().sqrt()", ".abs().mean()"))
like("modules.watch", "tensors instead of numbers", (".sqrt().item()", ".sqrt()"))


# -- modules.module -------------------------------------------------------------------------------

like(
    "modules.module",
    "does not look into tuples",
    ("isinstance(value, (list, tuple))", "isinstance(value, list)"),
)
like(
    "modules.module",
    "train gives nothing back",
    (
        "            module.training = mode\n        return self\n",
        "            module.training = mode\n",
    ),
    ("return self.train(False)", "self.train(False)\n        return self"),
)
like(
    "modules.module",
    "tensors in a list are parameters",
    (
        "                yield prefix + name, self, name, value\n",
        (
            "                yield prefix + name, self, name, value\n"
            "            if isinstance(value, (list, tuple)):\n"
            "                for n, one in enumerate(value):\n"
            "                    if isinstance(one, kind):\n"
            "                        yield f'{prefix}{name}.{n}', self, name, one\n"
        ),
    ),
)
like(
    "modules.module",
    "a loaded buffer is the state's own array",
    (
        "                setattr(module, key, array)",
        "                setattr(module, key, state[name])",
    ),
)
like(
    "modules.module",
    "a shared tensor stands in the state once",
    (
        "            state[name] = array.copy()",
        (
            "            if all(value is not v for v in kept):\n"
            "                state[name] = array.copy()\n"
            "            kept.append(value)"
        ),
    ),
    ("        state = {}\n", "        state, kept = {}, []\n"),
)
like(
    "modules.module",
    "children first, then its own",
    (
        """        for name, value in vars(self).items():
            if isinstance(value, kind):
                yield prefix + name, self, name, value
        for name, child in self.children():
            yield from child._entries(kind, f"{prefix}{name}.")
""",
        """        for name, child in self.children():
            yield from child._entries(kind, f"{prefix}{name}.")
        for name, value in vars(self).items():
            if isinstance(value, kind):
                yield prefix + name, self, name, value
""",
    ),
)
like(
    "modules.module",
    "compares the number of elements only",
    (
        (
            "            shape = Tensor.of(value).data.shape\n"
            "            if np.shape(state[name]) != shape:"
        ),
        (
            "            shape = Tensor.of(value).data.shape\n"
            "            if np.size(state[name]) != np.prod(shape):"
        ),
    ),
)
like("modules.module", "only missing keys are noticed", ("if missing or strange:", "if missing:"))
like(
    "modules.module",
    "a tensor without a gradient is no buffer",
    (
        "            array = value.data if isinstance(value, Tensor) else value\n",
        (
            "            if isinstance(value, Tensor) and not value.requires_grad:\n"
            "                continue\n"
            "            array = value.data if isinstance(value, Tensor) else value\n"
        ),
    ),
    (
        "own = {e[0]: e for e in self._entries((Tensor, np.ndarray))}",
        "own = {e[0]: e for e in self._entries((Tensor, np.ndarray)) if getattr(e[3], 'requires_grad', True)}",
    ),
)

handed_in("modules.module", "is torch.nn.Module", lambda: nn.Module)

like("modules.module", "eval gives nothing back", ("return self.train(False)", "self.train(False)"))


# -- modules.layer --------------------------------------------------------------------------------

like(
    "modules.layer",
    "the bias is drawn first",
    (
        "        weight = draw.uniform(-bound, bound, size=(inputs, outputs))\n",
        (
            "        first = draw.uniform(-bound, bound, size=outputs)\n"
            "        weight = draw.uniform(-bound, bound, size=(inputs, outputs))\n"
        ),
    ),
    ("start = draw.uniform(-bound, bound, size=outputs)", "start = first"),
)
like(
    "modules.layer",
    "the bias starts from the seed again",
    ("            start = draw.uniform", "            start = np.random.default_rng(seed).uniform"),
)
like(
    "modules.layer",
    "seed 0 counts as none",
    ("np.random.default_rng(seed)", "np.random.default_rng(seed or None)"),
)
like(
    "modules.layer",
    "without a seed it is 0",
    ("np.random.default_rng(seed)", "np.random.default_rng(seed or 0)"),
)
like(
    "modules.layer",
    "seeds everybody's random numbers",
    ("draw = np.random.default_rng(seed)", "np.random.seed(seed)\n        draw = np.random"),
)
like(
    "modules.layer",
    "only flat batches",
    (
        "        y = x @ self.weight\n",
        "        y = x.reshape(-1, self.weight.data.shape[0]) @ self.weight\n",
    ),
)
like(
    "modules.layer", "one over the inputs, without the root", ("1 / np.sqrt(inputs)", "1 / inputs")
)
like(
    "modules.layer",
    "leaves the graph",
    ("y = x @ self.weight\n", "y = Tensor(x.data @ self.weight.data)\n"),
)


@wrong("modules.layer", "is toytorch's own layer inside")
class Linear(Module):
    def __init__(self, inputs, outputs, bias=True, seed=None):
        made = nn.Linear(inputs, outputs, bias=bias)
        self.weight = Tensor(made.weight.detach().numpy().T, requires_grad=True)
        self.bias = Tensor(made.bias.detach().numpy(), requires_grad=True) if bias else None

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


like("modules.layer", "no root in the bound", ("1 / np.sqrt(inputs)", "1 / inputs"))
