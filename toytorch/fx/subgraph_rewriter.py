"""Replacing what looks like one graph by another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from toytorch.fx._symbolic_trace import symbolic_trace
from toytorch.fx.graph import Graph
from toytorch.fx.graph_module import GraphModule, _copy_attr
from toytorch.fx.node import Argument, Node
from toytorch.nn import Module

Pattern = Callable[..., Any] | GraphModule | Graph


class Match(NamedTuple):
    """A place where a pattern was found: the pattern's node that was looked for first, and the
    counterpart of each."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _graph_of(pattern: Pattern) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


class _Matcher:
    """Looks for a pattern's nodes from its output backwards."""

    def __init__(self, pattern: Graph) -> None:
        self.pattern = pattern
        result = pattern.output_node().args[0]
        self.results = (
            [result] if isinstance(result, Node) else [r for r in result if isinstance(r, Node)]
        )

    def at(self, anchor: Node) -> dict[Node, Node] | None:
        """Counterparts of all of the pattern's nodes if its first result is this one, else None."""
        for found in self.ways(self.results, [anchor], {}):
            inner = {n for p, n in found.items() if p.op != "placeholder"}
            hidden = [
                n
                for p, n in found.items()
                if p not in self.results and p.op not in ("placeholder", "get_attr")
            ]
            if all(user in inner for n in hidden for user in n.users):
                return found  # nobody else needs what goes away
        return None

    def ways(
        self, results: list[Node], places: Iterable[Node], found: dict[Node, Node]
    ) -> Iterator[dict[Node, Node]]:
        """The ways to find counterparts of some results, of which the first is at one of these places."""
        if not results:
            yield found
            return
        first, *rest = results
        for place in places:
            tried = dict(found)
            if self.same(first, place, tried):
                yield from self.ways(rest, place.graph.nodes, tried)

    def same(self, p: Argument, n: Argument, found: dict[Node, Node]) -> bool:
        """Whether an argument of the pattern stands for one of the graph."""
        if isinstance(p, Node) != isinstance(n, Node):
            return False
        if not isinstance(p, Node):
            if isinstance(p, (tuple, list)):
                return (
                    isinstance(n, (tuple, list))
                    and len(p) == len(n)
                    and all(self.same(a, b, found) for a, b in zip(p, n))
                )
            return bool(p == n) and type(p) is type(n)
        if p in found:
            return found[p] is n
        if p.op != "placeholder" and (p.op != n.op or p.target != n.target):
            return False
        found[p] = n
        if p.op == "placeholder":
            return True
        return (
            len(p.args) == len(n.args)
            and p.kwargs.keys() == n.kwargs.keys()
            and self.same(list(p.args), list(n.args), found)
            and all(self.same(p.kwargs[k], n.kwargs[k], found) for k in p.kwargs)
        )


class ReplacedPatterns(NamedTuple):
    """A place where a pattern was replaced, with the nodes that came."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


Filter = Callable[[Match, Graph, Graph], bool]  # of a match, the module's graph and the pattern's


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern,
    match_filters: list[Filter] | None = None,
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, at the places of which all filters say yes."""
    matcher, new = _Matcher(_graph_of(pattern)), _graph_of(replacement)
    taken, matches = set[Node](), list[Match]()
    for node in list(gm.graph.nodes):
        found = matcher.at(node)
        inner = set() if found is None else {n for p, n in found.items() if p.op != "placeholder"}
        if found is None or inner & taken:
            continue
        match = Match(matcher.results[0], found)
        if all(wanted(match, gm.graph, matcher.pattern) for wanted in match_filters or ()):
            taken |= inner
            matches.append(match)
    changed: dict[Node, Node] = {}
    done = [ReplacedPatterns(*m, _replace(gm.graph, m, matcher, new, changed)) for m in matches]
    gm.recompile()
    if isinstance(replacement, Module):
        for node in new.nodes:
            if node.op in ("call_module", "get_attr"):
                _copy_attr(replacement, gm, node.target)
        gm.delete_all_unused_submodules()
    return done


def replace_pattern(gm: GraphModule, pattern: Pattern, replacement: Pattern) -> list[Match]:
    """Puts one program in the place of each that looks like another, in a module's graph.

    Both have the same inputs, in the same order. Matches do not overlap. Like
    `torch.fx.replace_pattern`.

    >>> module = symbolic_trace(lambda x: torch.neg(x) + 1)
    >>> _ = replace_pattern(module, lambda x: torch.neg(x), lambda x: torch.abs(x))
    >>> module(torch.tensor([-2.0]))
    tensor([3.])
    """
    done = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(d.anchor, d.nodes_map) for d in done]


def _replace(
    graph: Graph, match: Match, matcher: _Matcher, new: Graph, changed: dict[Node, Node]
) -> list[Node]:
    """Replaces one match, and returns the nodes that came. `changed` are nodes that went with earlier
    matches, and what came for them."""
    inputs = [n for n in matcher.pattern.nodes if n.op == "placeholder"]
    places = {
        own: changed.get(match.nodes_map[theirs], match.nodes_map[theirs])
        for own, theirs in zip((n for n in new.nodes if n.op == "placeholder"), inputs)
    }
    inner = [n for p, n in match.nodes_map.items() if p.op != "placeholder"]
    users = {u for r in matcher.results for u in match.nodes_map[r].users if u not in inner}
    first = next((n for n in graph.nodes if n in users), None)
    last = next(n for n in reversed(graph.nodes) if n in inner)
    with graph.inserting_after(last) if first is None else graph.inserting_before(first):
        made = graph.graph_copy(new, places)
    made = [made] if isinstance(made, Node) else list(made)
    for old, result in zip(matcher.results, made):
        match.nodes_map[old].replace_all_uses_with(result)
        changed[match.nodes_map[old]] = result
    for node in [n for n in reversed(graph.nodes) if n in inner]:
        if not node.users:
            graph.erase_node(node)
    return [node for own, node in places.items() if own.op != "placeholder"]
