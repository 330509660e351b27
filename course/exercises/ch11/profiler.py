"""A profiler for one's own package."""

import functools
import time
from contextlib import contextmanager
from types import SimpleNamespace

from course.records import Exercise

own_profiler = Exercise(
    "measure.profiler",
    "A profiler of your own",
    chapter=11,
    minutes=55,
    prompt="""
    Write `Profiler`, which notes what runs, from when to when, and inside of what. `Profiler(clock)` looks
    at the time only by calling `clock()`, which gives seconds. Write the methods in this order; the checks
    say how far you are.

    **1 · Spans.** `with profiler.span(name):` notes one **span**: an object with the attributes `name`,
    `start`, `end` and `parent`, the span that was open when it began, or None. `profiler.spans` lists
    all of them in the order of their starts; `end` is None while a span is open. The clock is looked
    at twice for each span. A span ends as well when an error leaves its block, and the error goes on.

    **2 · Own time.** `own_times()`: for each span, in the order of `spans`, the time from start to end
    without that of the spans *directly* inside of it. Only spans that have ended count here, and in
    everything below.

    **3 · Table.** `rows()`: one `(name, calls, total, own)` for each name, the one with the most own time
    first, equal ones by name. `total` is the time from start to end, but a span inside of another span
    *of the same name* adds nothing to it: its time is counted already.

    **4 · Functions.** `traced(f, name=None)` returns a function that does what `f` does, inside of a span.
    Without a name it is `f.__qualname__`. Use `functools.wraps`.

    **5 · Methods.** `with profiler.attached(owner, *names):` replaces these methods of the class `owner` by
    traced ones, and puts the old ones back at the end, after an error as well.

    **6 · Backward.** Your `Tensor` computes its derivatives in `pull`. If what a traced function returns
    has a `pull` that is not None, replace that by a traced one named `name + " backward"`. A `pull` that
    is traced already stays as it is: it belongs to the innermost function. `functools.wraps` gives its
    result an attribute `__wrapped__`, by which you know it.

    **7 · Trace.** `chrome()`: a dictionary that ui.perfetto.dev reads, `{"traceEvents": [...]}`, with one
    dictionary for each span: `name`, `ph` (always `"X"`), `ts` and `dur` (start and length in
    **microseconds**, the first span starts at 0), `pid` and `tid` (always 0).

    For example, a block `a` from 0 to 10. Inside are `b` from 1 to 4 and another `a` from 5 to 9, and inside
    of that `b` from 6 to 8. All times are seconds.

    | span | start, end | parent | length | own |
    | --- | --- | --- | --- | --- |
    | 0, `a` | 0, 10 | None | 10 | 10 − 3 − 4 = 3 |
    | 1, `b` | 1, 4 | 0 | 3 | 3 |
    | 2, `a` | 5, 9 | 0 | 4 | 4 − 2 = 2 |
    | 3, `b` | 6, 8 | 2 | 2 | 2 |

    The rows are `("a", 2, 10, 5)` and `("b", 2, 5, 5)`. The own times add up to 10, which is the time that
    has passed. Totals do not.
    """,
    hints=(
        """
        Keep two lists: all spans, and those that are open, the innermost last. A span that begins has the
        last open one as its parent. Since a parent begins before its children, one pass over all spans
        can subtract each length from its parent's own time.
        """,
        """
        The example, as the lists grow:

        | at | what happens | open |
        | --- | --- | --- |
        | 0 | `a` begins, parent None | 0 |
        | 1 | `b` begins, parent 0 | 0, 1 |
        | 4 | `b` ends | 0 |
        | 5 | `a` begins, parent 0 | 0, 2 |
        | 6 | `b` begins, parent 2 | 0, 2, 3 |
        | 8, 9, 10 | all end | none |

        Whether span 2 adds to the total of `a`: go from parent to parent; span 0 is named `a` too, so it
        does not. `@contextmanager` makes a `with` block of a function with one `yield`; what must happen at
        the end, whatever happens, stands in a `finally`.
        """,
        """
        ```python
        class Profiler:
            def __init__(self, clock=time.perf_counter):
                self.clock, self.spans, self.open = clock, [], []

            @contextmanager
            def span(self, name):
                parent = ...
                span = SimpleNamespace(name=name, parent=parent, end=None)
                ...
                span.start = self.clock()
                try:
                    yield span
                finally:
                    ...

            def ended(self):
                return [span for span in self.spans if span.end is not None]

            def own_times(self):
                own = {id(s): s.end - s.start for s in self.ended()}
                for s in self.ended():
                    if ...:
                        own[id(s.parent)] -= ...
                return list(own.values())

            @staticmethod
            def repeated(span):
                outer = span.parent
                while outer is not None and ...:
                    outer = ...
                return outer is not None

            def rows(self):
                sums = {}
                for span, own in zip(self.ended(), self.own_times()):
                    row = sums.setdefault(span.name, [0, 0.0, 0.0])
                    row[0] += 1
                    if ...:
                        row[1] += ...
                    row[2] += own
                rows = [(name, *row) for name, row in sums.items()]
                return sorted(rows, key=...)

            def traced(self, f, name=None):
                name = name or f.__qualname__

                @functools.wraps(f)
                def run(*args, **options):
                    ...
                    pull = getattr(result, "pull", None)
                    if pull is not None and ...:
                        result.pull = ...
                    return result

                return run

            @contextmanager
            def attached(self, owner, *names):
                before = {name: vars(owner)[name] for name in names}
                ...
                try:
                    yield self
                finally:
                    ...

            def chrome(self):
                first = min((s.start for s in self.spans), default=0.0)
                events = [
                    {
                        "name": s.name,
                        "ph": "X",
                        "ts": ...,
                        "dur": ...,
                        "pid": 0,
                        "tid": 0,
                    }
                    for s in self.ended()
                ]
                return {"traceEvents": events}
        ```
        """,
    ),
)


@own_profiler.reference(
    {
        "span": "stage 1, your code here: about 9 lines with a yield",
        "own_times": "stage 2, your code here: about 5 lines",
        "rows": "stage 3, your code here: about 15 lines",
        "traced": "stages 4 and 6, your code here: about 10 lines",
        "attached": "stage 5, your code here: about 8 lines with a yield",
        "chrome": "stage 7, your code here: about 12 lines",
        "ended": "",
        "repeated": "",
    },
    (
        "self.clock, self.spans, self.open = clock, [], []",
        "self.clock, self.spans = clock, []\n        # your code here: about 1 line",
    ),
)
class Profiler:
    """Notes what runs, from when to when, and inside of what."""

    def __init__(self, clock=time.perf_counter):
        self.clock, self.spans, self.open = clock, [], []

    @contextmanager
    def span(self, name):
        """A with block whose time is noted."""
        parent = self.open[-1] if self.open else None
        span = SimpleNamespace(name=name, parent=parent, end=None)
        self.spans.append(span)
        self.open.append(span)
        span.start = self.clock()
        try:
            yield span
        finally:
            span.end = self.clock()
            self.open.pop()

    def ended(self):
        """The spans that are no longer open."""
        return [span for span in self.spans if span.end is not None]

    def own_times(self):
        """Seconds of each span without those directly inside."""
        own = {id(s): s.end - s.start for s in self.ended()}
        for s in self.ended():
            if id(s.parent) in own:
                own[id(s.parent)] -= s.end - s.start
        return list(own.values())

    @staticmethod
    def repeated(span):
        """Whether a span lies inside of another of its name."""
        outer = span.parent
        while outer is not None and outer.name != span.name:
            outer = outer.parent
        return outer is not None

    def rows(self):
        """(name, calls, total, own), the most own time first."""
        sums = {}
        for span, own in zip(self.ended(), self.own_times()):
            row = sums.setdefault(span.name, [0, 0.0, 0.0])
            row[0] += 1
            if not self.repeated(span):
                row[1] += span.end - span.start
            row[2] += own
        rows = [(name, *row) for name, row in sums.items()]
        return sorted(rows, key=lambda row: (-row[3], row[0]))

    def traced(self, f, name=None):
        """The function f inside of a span."""
        name = name or f.__qualname__

        @functools.wraps(f)
        def run(*args, **options):
            with self.span(name):
                result = f(*args, **options)
            pull = getattr(result, "pull", None)
            if pull is not None and not hasattr(pull, "__wrapped__"):
                result.pull = self.traced(pull, name + " backward")
            return result

        return run

    @contextmanager
    def attached(self, owner, *names):
        """A with block in which these methods are traced."""
        before = {name: vars(owner)[name] for name in names}
        for name, method in before.items():
            setattr(owner, name, self.traced(method))
        try:
            yield self
        finally:
            for name, method in before.items():
                setattr(owner, name, method)

    def chrome(self):
        """The trace as a dictionary for ui.perfetto.dev."""
        first = min((s.start for s in self.spans), default=0.0)
        events = [
            {
                "name": s.name,
                "ph": "X",
                "ts": 1e6 * (s.start - first),
                "dur": 1e6 * (s.end - s.start),
                "pid": 0,
                "tid": 0,
            }
            for s in self.ended()
        ]
        return {"traceEvents": events}
