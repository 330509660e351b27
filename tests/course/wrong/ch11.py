"""Wrong answers of chapter 11."""

import time
from contextlib import contextmanager
from itertools import combinations
from math import inf
from statistics import median
from types import SimpleNamespace

import numpy as np

import toytorch as torch
from tests.course.wrong import like, wrong

# -- measure.compare

like(
    "measure.compare",
    "takes turns every other round only",
    ("(0, 1) if n % 2 == 0 else (1, 0)", "(0, 1) if n % 4 < 2 else (1, 0)"),
)
like(
    "measure.compare",
    "the second one begins",
    ("(0, 1) if n % 2 == 0 else (1, 0)", "(1, 0) if n % 2 == 0 else (0, 1)"),
)
like(
    "measure.compare",
    "gives the largest before the smallest",
    ("median(ratios), min(ratios), max(ratios)", "median(ratios), max(ratios), min(ratios)"),
)
like(
    "measure.compare",
    "the upper of two middle ratios",
    ("return median(ratios)", "return sorted(ratios)[len(ratios) // 2]"),
)
like(
    "measure.compare",
    "a difference instead of a ratio",
    ("times[1] / times[0]", "times[1] - times[0]"),
)


@wrong("measure.compare", "times by function, so a function and itself are one")
def compare(first, second, repeats=9, clock=time.perf_counter):
    first()
    second()
    ratios = []
    for n in range(repeats):
        times = {}
        for f in (first, second) if n % 2 == 0 else (second, first):
            began = clock()
            f()
            times[f] = clock() - began
        ratios.append(times[second] / times[first])
    return median(ratios), min(ratios), max(ratios)


@wrong("measure.compare", "the ratio of the medians")
def compare(first, second, repeats=9, clock=time.perf_counter):
    first()
    second()
    all_times = [], []
    for n in range(repeats):
        for place in (0, 1) if n % 2 == 0 else (1, 0):
            began = clock()
            (first, second)[place]()
            all_times[place].append(clock() - began)
    ratio = median(all_times[1]) / median(all_times[0])
    each = [b / a for a, b in zip(*all_times)]
    return ratio, min(each), max(each)


@wrong("measure.compare", "warms up in each round")
def compare(first, second, repeats=9, clock=time.perf_counter):
    functions, ratios = (first, second), []
    for n in range(repeats):
        times = [0.0, 0.0]
        for place in (0, 1) if n % 2 == 0 else (1, 0):
            functions[place]()
            began = clock()
            functions[place]()
            times[place] = clock() - began
        ratios.append(times[1] / times[0])
    return median(ratios), min(ratios), max(ratios)


# -- measure.uniformity

like(
    "measure.uniformity",
    "t times the distance, squared as a whole",
    ("-t * distances", "-(t * t) * distances"),
)
like(
    "measure.uniformity",
    "the sign of the exponent",
    ("-t * distances", "t * distances"),
)
like(
    "measure.uniformity",
    "one product instead of two",
    ("- 2 * products", "- products"),
)
like(
    "measure.uniformity",
    "lengths that are not squared",
    ("lengths = products.diagonal()", "lengths = products.diagonal().sqrt()"),
)
like(
    "measure.uniformity",
    "a sum instead of a mean",
    (" - math.log(n * (n - 1))", ""),
)
like(
    "measure.uniformity",
    "one dimension too many",
    ("logsumexp((0, 1))", "logsumexp((0, 1), keepdim=True)"),
)
like(
    "measure.uniformity",
    "the lengths as two rows",
    ("lengths[:, None] + lengths", "lengths + lengths"),
)
like(
    "measure.uniformity",
    "products of the columns",
    ("products = x @ x.T", "products = x.T @ x"),
    ("n = x.shape[0]", "n = x.shape[1]"),
)


@wrong("measure.uniformity", "pdist")
def uniformity(x, t=2.0):
    return torch.pdist(x).pow(2).mul(-t).exp().mean().log()


# -- measure.traffic

like(
    "measure.traffic",
    "all lines read once and written twice",
    ("line * (len(read) + len(lines(output)))", "line * (len(read) + 2 * len(lines(output)))"),
)
like(
    "measure.traffic",
    "lines of 64 bytes, whatever is asked",
    ("np.union1d(at // line, last // line)", "np.union1d(at // 64, last // 64)"),
)
like(
    "measure.traffic",
    "gives lines instead of bytes",
    ("line * (len(read)", "(len(read)"),
)
like(
    "measure.traffic",
    "the last byte lies one too far",
    ("last = at + x.itemsize - 1", "last = at + x.itemsize"),
)
like(
    "measure.traffic",
    "only the first input is read",
    ("read = np.union1d(read, lines(x))", "read = read if len(read) else lines(x)"),
)


@wrong("measure.traffic", "whole arrays, however they are cut")
def traffic(inputs, output, line=64):
    arrays = {id(x): x for x in inputs if isinstance(x, np.ndarray)}.values()

    def base(x):
        while isinstance(x.base, np.ndarray):
            x = x.base
        return -(-x.nbytes // line) * line

    return sum(base(x) for x in arrays) + base(output)


@wrong("measure.traffic", "strides of the last dimension only")
def traffic(inputs, output, line=64):
    def lines(x):
        step = abs(x.strides[-1]) if x.ndim else x.itemsize
        return -(-x.size * max(step, 0) // line) if step else 1

    seen = {x.__array_interface__["data"][0]: x for x in inputs if isinstance(x, np.ndarray)}
    return line * (sum(lines(x) for x in seen.values()) + lines(output))


# -- measure.roofline

like(
    "measure.roofline",
    "slopes between neighbours only",
    ("combinations(points, 2)", "zip(points, points[1:])"),
)
like(
    "measure.roofline",
    "divides by zero bytes",
    ("            if a != b\n", ""),
)
like(
    "measure.roofline",
    "arithmetic where both are equal",
    ("memory >= arithmetic", "memory > arithmetic"),
)
like(
    "measure.roofline",
    "a call where both are equal",
    ("if self.overhead > slower:", "if self.overhead >= memory:"),
)
like(
    "measure.roofline",
    "no overhead in the prediction",
    ("return self.overhead + slower, limit", "return slower, limit"),
)
like(
    "measure.roofline",
    "milliseconds",
    ("return self.overhead + slower, limit", "return 1e3 * (self.overhead + slower), limit"),
)
like(
    "measure.roofline",
    "the largest rest",
    ("rest = median(s", "rest = max(s"),
)


@wrong("measure.roofline", "the line through the first and the last point")
class Roofline:
    def __init__(self, points, rates):
        (a, s), (b, t) = min(points), max(points)
        self.bandwidth = (b - a) / (t - s)
        self.overhead = max(0.0, s - a / self.bandwidth)
        self.rates = rates

    def predict(self, name, bytes, work=0):
        memory, arithmetic = bytes / self.bandwidth, work / self.rates.get(name, inf)
        slower = max(memory, arithmetic)
        limit = "memory" if memory >= arithmetic else "arithmetic"
        return self.overhead + slower, "call" if self.overhead > slower else limit


@wrong("measure.roofline", "the best slope")
class Roofline:
    def __init__(self, points, rates):
        slopes = [(t - s) / (b - a) for (a, s), (b, t) in combinations(points, 2) if a != b]
        per_byte = min(slope for slope in slopes if slope > 0)
        self.bandwidth, self.rates = 1 / per_byte, rates
        self.overhead = max(0.0, median(s - per_byte * a for a, s in points))

    def predict(self, name, bytes, work=0):
        memory, arithmetic = bytes / self.bandwidth, work / self.rates.get(name, inf)
        slower = max(memory, arithmetic)
        limit = "memory" if memory >= arithmetic else "arithmetic"
        return self.overhead + slower, "call" if self.overhead > slower else limit


# -- measure.profiler

like(
    "measure.profiler",
    "the clock is looked at before the span is listed, and once more",
    ("        span.start = self.clock()\n", "        span.start = self.clock() and self.clock()\n"),
)
like(
    "measure.profiler",
    "a parent's name for the parent",
    ("name=name, parent=parent, end=None", "name=name, parent=parent and parent.name, end=None"),
)
like(
    "measure.profiler",
    "only the outermost spans count as calls",
    ("            row[0] += 1\n", "            row[0] += span.parent is None\n"),
)
like(
    "measure.profiler",
    "equal rows by the order in which they came",
    ("key=lambda row: (-row[3], row[0])", "key=lambda row: -row[3]"),
)
like(
    "measure.profiler",
    "the least own time first",
    ("key=lambda row: (-row[3], row[0])", "key=lambda row: (row[3], row[0])"),
)
like(
    "measure.profiler",
    "the short name of a function",
    ("name = name or f.__qualname__", "name = name or f.__name__"),
)
like(
    "measure.profiler",
    "forgets the function's name and docstring",
    ("        @functools.wraps(f)\n", ""),
    ('hasattr(pull, "__wrapped__")', 'getattr(pull, "ours", False)'),
    ("        return run\n", "        run.ours = True\n        return run\n"),
)
like(
    "measure.profiler",
    "the backward pass under the function's name",
    ('self.traced(pull, name + " backward")', "self.traced(pull, name)"),
)
like(
    "measure.profiler",
    "methods of the class and those it inherits",
    ("vars(owner)[name] for name in names", "getattr(owner, name) for name in vars(owner)"),
)
like(
    "measure.profiler",
    "events for begin and end",
    ('"ph": "X"', '"ph": "B"'),
)
like(
    "measure.profiler",
    "milliseconds in the trace",
    ("1e6 * (s.start - first)", "1e3 * (s.start - first)"),
    ("1e6 * (s.end - s.start)", "1e3 * (s.end - s.start)"),
)
like(
    "measure.profiler",
    "a list of events without the dictionary",
    ('return {"traceEvents": events}', "return events"),
)


@wrong("measure.profiler", "sums while it runs, and no spans")
class Profiler:
    def __init__(self, clock=time.perf_counter):
        self.clock, self.spans, self.depth = clock, [], 0

    @contextmanager
    def span(self, name):
        span = SimpleNamespace(name=name, start=self.clock(), end=None, parent=self.depth or None)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            span.end = self.clock()
            self.spans.append(span)

    def own_times(self):
        return [s.end - s.start for s in self.spans]

    def rows(self):
        return [(s.name, 1, s.end - s.start, s.end - s.start) for s in self.spans]

    def traced(self, f, name=None):
        return f

    @contextmanager
    def attached(self, owner, *names):
        yield self

    def chrome(self):
        return {"traceEvents": []}
