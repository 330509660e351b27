"""Which nodes become one kernel.

Walking down the graph, a node that loops can follow joins the groups that make its inputs, as long
as no path leads out of a group and back into it, and as long as the whole still lowers to one
program. What remains alone stays a call of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.jit import types
from toytorch.jit.autodiff import is_cheap
from toytorch.jit.effects import effects, written_values
from toytorch.jit.fuser.kernels import nest_of
from toytorch.jit.fuser.lower import Lower, moved_axes
from toytorch.jit.ir import Graph, Node, Value, copy_node, uses
from toytorch.loops import Unsupported

WORTH = 4096  # elements: below, one op alone is left to NumPy
EXPENSIVE = 6  # additions for an element, from which an op alone gains from a kernel
MOST_AGAIN = 12  # ops that are done again for one value
PASSES = 3  # passes of NumPy over memory that one kernel may take the place of


def fusible(node: Node, written: set[Value]) -> bool:
    """Whether a node may be part of a kernel."""
    record = node.record
    if record is None or node.writes or "no_grad" in node.attributes:
        return False
    if record.kind not in ("pointwise", "view") and not record.fused:
        return False
    if any(v in written for v in (*node.inputs, *node.outputs)):
        return False
    try:
        Lower([node], node.outputs).lowered()
    except (Unsupported, ValueError, TypeError, KeyError, IndexError):
        return False
    return True


class Groups:
    """The groups of a graph, as they grow."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.uses = uses(graph)
        self.place = {id(n): i for i, n in enumerate(graph.nodes)}
        self.members: list[list[Node]] = []
        self.group_of: dict[int, int] = {}  # id of node → number of its group
        self.written = written_values(graph)
        self.before = effects(graph, self.written)

    def grow(self) -> list[list[Node]]:
        """All groups that are worth a kernel."""
        for node in self.graph.nodes:
            if fusible(node, self.written):
                self.take(node)
        for number in range(len(self.members)):
            self.compute_again(number)
        found = [self.stripped(sorted(m, key=lambda n: self.place[id(n)])) for m in self.members]
        return [m for m in found if worth(m)]

    def compute_again(self, number: int) -> None:
        """Lets a group compute for itself, from smaller values, what it would read from another.

        Sums over the rows and over the columns of a[:, None] * b are so made of a and b: the
        products, of which there are many more, are never in memory.
        """
        for v in dict.fromkeys(v for n in self.members[number] for v in n.inputs):
            producer = None if v.node is None else self.group_of.get(id(v.node))
            if producer is None or producer == number:
                continue
            chain, leaves = self.cheaply_made(v, producer)
            if not chain or sum(map(elements, leaves)) > elements(v):
                continue
            self.adopt(chain, number, producer)

    def cheaply_made(self, v: Value, producer: int) -> tuple[list[Node], list[Value]]:
        """The nodes of a group that make a value by cheap elementwise steps, in order, and what
        these take from elsewhere; no nodes if its own step is not cheap."""
        chain: dict[int, Node] = {}
        leaves: dict[Value, None] = {}
        stack = [v]
        while stack:
            u = stack.pop()
            node = u.node
            inside = node is not None and self.group_of.get(id(node)) == producer
            if node is not None and inside and len(chain) < MOST_AGAIN and is_light(node):
                if id(node) not in chain:
                    chain[id(node)] = node
                    stack += [w for w in node.inputs if isinstance(w.type, types.Tensor)]
            else:
                leaves[u] = None
        return sorted(chain.values(), key=lambda n: self.place[id(n)]), list(leaves)

    def adopt(self, chain: list[Node], number: int, producer: int) -> None:
        """Puts copies of nodes into the graph, right behind these, and into a group; the nodes go
        where nobody needs them any more. Nothing is changed where a group would not lower then."""
        nodes, own = self.graph.nodes, self.members[number]
        inputs, place, used = [list(n.inputs) for n in own], self.place, self.uses
        known: dict[Value, Value] = {}
        copies = [copy_node(n, known) for n in chain]
        behind = {id(n): made for n, made in zip(chain, copies)}
        for n in own:
            n.inputs[:] = [known.get(v, v) for v in n.inputs]
        self.graph.nodes = [m for n in nodes for m in (n, behind.get(id(n))) if m is not None]
        self.uses = uses(self.graph)
        dead: set[int] = set()
        for n in reversed(chain):
            users = [user for v in n.outputs for user, _ in self.uses.get(v, [])]
            if all(user is not None and id(user) in dead for user in users):
                dead.add(id(n))
        self.graph.nodes = [n for n in self.graph.nodes if id(n) not in dead]
        self.uses = uses(self.graph)
        self.place = {id(n): i for i, n in enumerate(self.graph.nodes)}
        left = [n for n in self.members[producer] if id(n) not in dead]
        left.sort(key=lambda n: self.place[id(n)])
        if self.lowers([*copies, *own]) and (not left or self.lowers(left)):
            self.members[number], self.members[producer] = [*copies, *own], left
            for made in copies:
                self.group_of[id(made)] = number
                for v in made.outputs:
                    v.name = self.graph.new_name()
        else:
            self.graph.nodes, self.place, self.uses = nodes, place, used
            for n, before in zip(own, inputs):
                n.inputs[:] = before

    def stripped(self, nodes: list[Node]) -> list[Node]:
        """The nodes without views that only others use: those cost nothing, a kernel would copy."""
        while True:
            gone = {
                id(n)
                for n in nodes
                if is_view(n) and any(v in self.outputs(nodes) for v in n.outputs)
            }
            if not gone:
                return nodes
            nodes = [n for n in nodes if id(n) not in gone]

    def take(self, node: Node) -> None:
        """Puts a node into a group: with its producers' if that is possible, else its own."""
        self.members.append([node])
        mine = self.group_of[id(node)] = len(self.members) - 1
        producers = dict.fromkeys(
            self.group_of[id(v.node)]
            for v in node.inputs
            if v.node is not None and id(v.node) in self.group_of
        )
        for other in producers:
            if other != mine and self.mergeable(other, mine):
                self.members[other] += self.members[mine]
                self.members[mine] = []
                for n in self.members[other]:
                    self.group_of[id(n)] = other
                mine = other
        if self.members[mine] == [node] and node.record is not None and node.record.fused:
            for other in producers:
                self.split(other, mine)

    def split(self, other: int, mine: int) -> None:
        """Gives a reduction that a group cannot take what is made in the group for it alone.

        So the products g·x̂, which a layer norm's weight sums over the rows, never go to memory,
        though they stand among what is summed along them.
        """
        [node] = self.members[mine]
        own = {id(node)}
        members = sorted(self.members[other], key=lambda n: self.place[id(n)])
        for n in reversed(members):
            users = [user for v in n.outputs for user, _ in self.uses.get(v, [])]
            if all(user is not None and id(user) in own for user in users):
                own.add(id(n))
        moved = [n for n in members if id(n) in own]
        left = [n for n in members if id(n) not in own]
        if moved and left and self.lowers([*moved, node]) and self.lowers(left):
            self.members[other], self.members[mine] = left, [*moved, node]
            for n in moved:
                self.group_of[id(n)] = mine

    def mergeable(self, a: int, b: int) -> bool:
        """Whether two groups can be one."""
        nodes = self.members[a] + self.members[b]
        inside = {id(n) for n in nodes}
        first = min(self.place[id(n)] for n in nodes)
        if self.leads_back(nodes, inside, first):
            return False
        nodes.sort(key=lambda n: self.place[id(n)])
        return self.lowers(nodes)

    def lowers(self, nodes: Sequence[Node]) -> bool:
        """Whether there is a kernel for nodes, which are in order."""
        try:
            lowered = Lower(nodes, self.outputs(nodes)).lowered()
            if len(lowered.inputs) + len(lowered.outputs) > 60:
                return False
            nest_of(lowered)  # fails where its loops cannot be put in an order
        except (Unsupported, ValueError, TypeError, KeyError, IndexError):
            return False
        return True

    def leads_back(self, nodes: Sequence[Node], inside: set[int], first: int) -> bool:
        """Whether something outside depends on one of the nodes and feeds another."""
        seen: set[int] = set()
        stack = [
            v.node
            for n in nodes
            for v in n.inputs
            if v.node is not None and id(v.node) not in inside
        ]

        def needs(node: Node) -> list[Any]:
            found = [v.node for v in node.inputs if v.node is not None]
            return [*found, self.before[id(node)]] if id(node) in self.before else found

        while stack:
            node = stack.pop()
            if id(node) in seen or self.place.get(id(node), -1) < first:
                continue
            seen.add(id(node))
            whole = self.members[self.group_of[id(node)]] if id(node) in self.group_of else [node]
            for member in whole:
                for other in needs(member):
                    if id(other) in inside:
                        return True
                    stack.append(other)
        return False

    def outputs(self, nodes: Sequence[Node]) -> list[Value]:
        """What a group makes for others."""
        inside = {id(n) for n in nodes}
        return [
            v
            for n in nodes
            for v in n.outputs
            if any(user is None or id(user) not in inside for user, _ in self.uses.get(v, []))
        ]


def is_light(node: Node) -> bool:
    """Whether a step is a view or an addition or two for each element.

    A division is not: by a number for each row it is a product, which rounds otherwise, and the
    gradient of a minimum looks for the very elements that are equal to it.
    """
    op = node.record
    if op is None or op.kind not in ("pointwise", "view"):
        return False
    return is_view(node) if op.kind == "view" else is_cheap(op)


def worth(nodes: Sequence[Node]) -> bool:
    """Whether a kernel pays: it saves a pass over memory, or does expensive functions at once."""
    real = [n for n in nodes if n.record is not None and n.record.kind != "view"]
    if len(real) != 1:
        return bool(real)
    op = real[0].record
    if op is not None and op.formula is not None:
        return op.formula.cost >= EXPENSIVE and elements(real[0].output) >= WORTH
    steps = Lower(nodes, real[0].outputs).lowered().program.steps
    return len(steps) >= PASSES


def elements(v: Value) -> int:
    """How many elements a value has."""
    total = 1
    for n in v.type.shape or () if isinstance(v.type, types.Tensor) else ():
        total *= n
    return total


def fuse(graph: Graph) -> Graph:
    """Fusion: groups of elementwise ops and reductions become prim::FusionGroup nodes."""
    made = each_its_view(graph.copy())
    groups = Groups(made)
    found = [(nodes, groups.outputs(nodes)) for nodes in groups.grow()]
    fused: dict[int, Node] = {}
    for nodes, outputs in found:
        node = group_node(nodes, outputs)
        for n in nodes:
            fused[id(n)] = node
    made.nodes = in_order(made.nodes, fused, groups.before)
    return made


def is_view(node: Node) -> bool:
    """Whether a node only shows dimensions in another way, which costs a loop nothing."""
    try:
        return (
            node.record is not None and node.record.kind == "view" and moved_axes(node) is not None
        )
    except Unsupported:
        return False


def each_its_view(graph: Graph) -> Graph:
    """Gives every user of a view a view of its own: it may then go where its user goes."""
    used = uses(graph)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):  # so that a view of a view is copied with it
        if is_view(node):
            inner = [(u, place) for u, place in used.get(node.output, []) if u is not None]
            for user, place in inner[0 if node.output in graph.outputs else 1 :]:
                own = copy_node(node, {})
                own.output.name = graph.new_name()
                user.inputs[place] = own.output
                for k, v in enumerate(own.inputs):
                    used.setdefault(v, []).append((own, k))
                nodes.append(own)
        nodes.append(node)
    graph.nodes = nodes[::-1]
    return graph


def group_node(nodes: list[Node], outputs: list[Value]) -> Node:
    """The node of a group, with copies of its nodes inside."""
    inside = {v for n in nodes for v in n.outputs}
    inner = Graph("fused")
    known: dict[Value, Value] = {}
    inputs: list[Value] = []
    for n in nodes:
        for v in n.inputs:
            if v in inside or v in known:
                continue
            if v.node is not None and v.is_constant and not isinstance(v.type, types.Tensor):
                inner.nodes.append(copy_node(v.node, known))
                inner._names.add(v.name)
            else:
                known[v] = inner.add_input(v.type, v.name)
                inputs.append(v)
    inner.nodes += [copy_node(n, known) for n in nodes]
    inner._names.update(v.name for n in inner.nodes for v in n.outputs)
    inner.outputs = [known[v] for v in outputs]
    node = Node("prim::FusionGroup", inputs, {"Subgraph": inner})
    node.outputs = list(outputs)
    for v in outputs:
        v.node = node
    return node


def in_order(nodes: list[Node], fused: dict[int, Node], before: dict[int, Node]) -> list[Node]:
    """The nodes with groups in the place of their members, each after what it needs.

    A group stands where its last member stood, unless somebody needs it earlier; `before` has what
    must keep its order.
    """
    units = list(dict.fromkeys(fused.get(id(n), n) for n in nodes))
    rank = {id(fused.get(id(n), n)): i for i, n in enumerate(nodes)}
    there = {id(u) for u in units}
    needs = {
        id(u): [v.node for v in u.inputs if v.node is not None and id(v.node) in there]
        for u in units
    }
    for unit in units:
        if id(unit) in before:
            first = before[id(unit)]
            needs[id(unit)].append(fused.get(id(first), first))
    done: set[int] = set()
    order: list[Node] = []
    for u in sorted(units, key=lambda u: rank[id(u)]):
        stack = [(u, iter(needs[id(u)]))]
        while stack:
            node, rest = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            following = next((n for n in rest if id(n) not in done), None)
            if following is None:
                done.add(id(node))
                order.append(node)
                stack.pop()
            else:
                stack.append((following, iter(needs[id(following)])))
    return order
