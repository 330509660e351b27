"""Graphs of programs: texts, results and refusals are PyTorch's, for the same programs."""

import copy
import importlib
import operator
import pickle
from typing import Any, ClassVar, NamedTuple

import pytest

import toytorch
from tests.oracle import torch, tt
from tests.outside.alike import same


def fx(m: Any) -> Any:
    return importlib.import_module(f"{m.__name__}.fx")


class Pair(NamedTuple):
    first: Any
    second: Any


def network(m: Any) -> Any:
    class Network(m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = m.nn.Linear(4, 5)
            self.w = m.nn.Parameter(m.ones(5))
            self.register_buffer("b", m.zeros(5))
            self.constant = m.full((5,), 0.5)
            self.seq = m.nn.Sequential(m.nn.Linear(5, 5), m.nn.ReLU())

        def forward(self, x: Any, scale: float = 2.0, *rest: Any, flag: bool = True) -> Any:
            y = self.lin(x) * self.w + self.b * self.constant
            a, _ = y.max(0)
            z = self.seq(m.cat([y, -y], dim=0).tanh())
            rows = z.shape[0]
            return {"out": z.view(rows, -1)[:, 1:3] * scale, "more": [z, (m.sigmoid(-z), 1), a]}

    m.manual_seed(0)
    return Network()


def arithmetic(m: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        a = x.T @ y + 3**x - (~(x > 0)).float() / 2 // 1 % 5
        b = m.relu(a) + m.nn.functional.softmax(y, dim=-1) + m.where(x > 0, x, y)
        low, high = b.chunk(2)
        return Pair(low, high[..., None, 1:]), {"size": b.size(), "t": (m.float32, None, slice(1))}

    return f


def stars(m: Any) -> Any:
    def f(x: Any, *args: Any, **kwargs: Any) -> Any:
        return x + args[0] * kwargs["k"]

    return f


PROGRAMS = {"network": network, "arithmetic": arithmetic, "stars": stars}


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_and_results(name: str) -> None:
    def told(m: Any) -> Any:
        program = PROGRAMS[name](m)
        traced = fx(m).symbolic_trace(program)
        traced.graph.lint()
        x = m.linspace(-1, 1, 16).reshape(4, 4)
        given: tuple[Any, ...] = {"network": (x,), "arithmetic": (x, x + 0.3), "stars": (x, x)}[
            name
        ]
        named = {"k": 2.0} if name == "stars" else {}
        texts = [str(traced.graph), traced.code, traced.print_readable(print_output=False).split()]
        results = [f(*given, **named) for f in (traced, copy.deepcopy(traced), program)]
        return texts[:2], str(results[0]) == str(results[1]) == str(results[2])

    theirs, ours = told(torch), told(tt)
    assert ours == theirs


def test_a_module_goes_through_a_file() -> None:
    traced = fx(tt).symbolic_trace(network(tt))
    again = pickle.loads(pickle.dumps(traced))
    x = tt.linspace(-1, 1, 8).reshape(2, 4)
    assert again.code == traced.code
    assert str(again(x)) == str(traced(x))
    assert b"def forward" not in pickle.dumps(traced)


def refusals(m: Any) -> list[Any]:
    f = fx(m)
    trace = f.symbolic_trace

    def branch(x: Any) -> Any:
        return x if x else -x

    traced = trace(lambda x: x + 1)
    first = next(iter(traced.graph.nodes))
    other = f.Graph().placeholder("other")

    def misplaced() -> None:
        graph = f.Graph()
        x = graph.placeholder("x")
        with graph.inserting_before(x):
            graph.call_function(operator.neg, (x,))
        graph.lint()

    return [
        lambda: trace(branch),
        lambda: trace(lambda x: len(x)),
        lambda: trace(lambda x: [v for v in x]),  # noqa: C416  # the loop is what is refused
        lambda: trace(lambda x: {x: 1}),
        lambda: f.Graph().call_function("add"),
        lambda: f.Graph().placeholder(3),
        lambda: traced.graph.erase_node(first),
        lambda: traced.graph.erase_node(other),
        lambda: f.GraphModule(3, f.Graph()),
        lambda: f.GraphModule({}, _reading(f, "w")),
        lambda: first.kwargs.update(a=1),
        misplaced,
        lambda: f.Interpreter(traced).run(),
        lambda: trace(branch, concrete_args={"x": 2})(3),
    ]


def _reading(f: Any, name: str) -> Any:
    graph = f.Graph()
    graph.output(graph.get_attr(name))
    return graph


@pytest.mark.parametrize("k", range(len(refusals(tt))))
def test_refusals(k: int) -> None:
    def refused(m: Any) -> Any:
        with pytest.raises(Exception) as raised:  # of which class is compared
            refusals(m)[k]()
        return type(raised.value).__name__, str(raised.value).split("\nUse tlparse")[0]

    same(refused)


def test_graphs_that_are_changed() -> None:
    def changed(m: Any) -> Any:
        f = fx(m)
        module = f.symbolic_trace(lambda x, y: m.relu(x + y) + m.relu(x + 1) * m.relu(y))
        found = f.replace_pattern(module, lambda a: m.relu(a), lambda a: m.sigmoid(a) * 2)
        told = [module.code, [str(match.anchor) for match in found]]
        for node in module.graph.nodes:
            if node.target is operator.mul and node.args[1] == 2:
                with module.graph.inserting_after(node):
                    new = module.graph.call_method("neg", (node,))
                node.replace_all_uses_with(
                    new, delete_user_cb=lambda user, new=new: user is not new
                )
                node.update_arg(1, 3)
        unused = module.graph.call_function(m.exp, (next(iter(module.graph.nodes)),))
        told += [list(unused.all_input_nodes), [len(n.users) for n in module.graph.nodes]]
        told += [module.graph.eliminate_dead_code(), module.graph.eliminate_dead_code()]
        module.recompile()
        copied = f.Graph()
        copied.output(copied.graph_copy(module.graph, {}))
        return str(told), module.code, str(copied), module(m.ones(2), m.zeros(2)).tolist()

    same(changed)


def test_interpreters_and_transformers() -> None:
    def told(m: Any) -> Any:
        f = fx(m)

        class Counting(f.Interpreter):
            counts: ClassVar[dict[str, int]] = {}

            def run_node(self, n: Any) -> Any:
                self.counts[n.op] = self.counts.get(n.op, 0) + 1
                return super().run_node(n)

        class Swapping(f.Transformer):
            def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
                return super().call_function(
                    m.tanh if target is m.sigmoid else target, args, kwargs
                )

        module = f.symbolic_trace(lambda x, y=2: m.sigmoid(x) * y)
        result = Counting(module).run(m.ones(2))
        swapped = Swapping(module).transform()
        prop = importlib.import_module(f"{m.__name__}.fx.passes.shape_prop").ShapeProp(module)
        prop.propagate(m.ones(2, 3, 4, 5))
        notes = [n.meta["tensor_meta"] for n in module.graph.nodes if "tensor_meta" in n.meta]
        kept = [(tuple(n.shape), str(n.dtype), n.stride, str(n.memory_format)) for n in notes]
        return result.tolist(), Counting.counts, swapped.code, swapped(m.ones(1)).tolist(), kept

    same(told)


def test_tracers_of_ones_own() -> None:
    def told(m: Any) -> Any:
        f = fx(m)

        class Inside(f.Tracer):
            def is_leaf_module(self, module: Any, name: str) -> bool:
                return name == "seq"

        tracer = Inside()
        graph = tracer.trace(network(m))
        names = [(n.op, str(n), n.meta.get("nn_module_stack", {}).keys()) for n in graph.nodes]
        return [(op, name, list(stack)) for op, name, stack in names if op == "call_module"], [
            str(n.target) for n in graph.nodes if n.op == "get_attr"
        ]

    same(told)


LAYERS = {
    "Conv2d": (1, 2, 3), "MaxPool2d": (2,), "AvgPool1d": (2,), "AvgPool2d": (2,), "ReLU": (),
    "GELU": (), "Softmax": (1,), "Softplus": (), "RReLU": (), "Dropout": (), "AlphaDropout": (),
    "Embedding": (3, 2), "LayerNorm": (3,), "GroupNorm": (1, 2), "Upsample": (None, 2),
    "ZeroPad2d": (1,), "ReflectionPad1d": (1,), "Fold": (2, 2), "FractionalMaxPool2d": (2, 3),
    "MaxUnpool1d": (2,), "CosineSimilarity": (), "MSELoss": (), "CrossEntropyLoss": (),
    "KLDivLoss": (), "CTCLoss": (), "PoissonNLLLoss": (), "TripletMarginLoss": (),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_functions_of_layers_are_told_their_options_by_name(name: str) -> None:
    """A function that PyTorch has in Python passes on what has a default as an option, given or not."""

    def told(m: Any) -> Any:
        class Tracer(fx(m).Tracer):  # type: ignore[misc]  # a class of either package
            def is_leaf_module(self, *of: Any) -> bool:
                return False

        layer = getattr(m.nn, name)(*LAYERS[name]).eval()
        nodes = list(Tracer().trace(layer).nodes)
        return [(n.op, n.name, str(n.args), str(n.kwargs)) for n in nodes]

    same(told)


@toytorch.fx.wrap
def _twice(x: Any) -> Any:
    return x + x


def test_functions_that_become_one_node() -> None:
    traced = toytorch.fx.symbolic_trace(lambda x: _twice(x) + 1)
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"] == [
        _twice,
        operator.add,
    ]
    assert 'torch.fx._symbolic_trace.wrap("' in traced.code
    assert traced(tt.ones(1)).tolist() == [3]
    assert _twice(1) == 2
    with pytest.raises(NotImplementedError, match="top level of a module"):
        toytorch.fx.wrap("len")


def test_modules_of_a_graph() -> None:
    def told(m: Any) -> Any:
        module = fx(m).symbolic_trace(network(m))
        found = [module.add_submodule("a.b", m.nn.ReLU()), module.delete_submodule("a.c")]
        names = [name for name, _ in module.named_modules()]
        module.delete_all_unused_submodules()
        return found, names, [name for name, _ in module.named_modules()]

    same(told)
