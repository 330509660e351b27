"""Misconceptions about a profiler."""

from course.exercises.ch11.profiler import own_profiler

own_profiler.changed(
    "the clock stops for errors",
    """
    An error left the block, and its span never ended and stayed open. Everything that runs afterwards
    then seems to lie inside of it. What must happen in any case stands in a `finally`.
    """,
    ("        try:\n            yield span\n        finally:\n            span.end = self.clock()\n"
     "            self.open.pop()\n",
     "        yield span\n        span.end = self.clock()\n        self.open.pop()\n"),
)

own_profiler.changed(
    "swallows errors",
    """
    The error ended in the `with` block, and the program went on as if nothing had happened. A profiler
    watches: with `finally` the error goes on, with `except` it does not.
    """,
    ("        finally:\n            span.end = self.clock()\n            self.open.pop()\n",
     "        except Exception:\n            pass\n        span.end = self.clock()\n"
     "        self.open.pop()\n"),
)

own_profiler.changed(
    "the span before is the parent",
    """
    The parent was the span that began last, whether it is still open or not. Two blocks one after the
    other then look nested. The parent is the innermost *open* span.
    """,
    ("parent = self.open[-1] if self.open else None",
     "parent = self.spans[-1] if self.spans else None"),
)

own_profiler.changed(
    "the outermost span is the parent",
    """
    The first open span was taken as the parent. Then everything hangs below the outermost block, and the
    own times of the blocks between are too large. Take the last of the open ones.
    """,
    ("self.open[-1] if", "self.open[0] if"),
)

own_profiler.changed(
    "spans in the order of their ends",
    """
    A span was listed when it ended, so a caller comes after what it called. List it when it begins.
    """,
    ("        self.spans.append(span)\n", ""),
    ("            self.open.pop()\n", "            self.open.pop()\n            self.spans.append(span)\n"),
)

own_profiler.changed(
    "subtracts everything below",
    """
    The time of *all* spans below was subtracted, children of children included. These lie inside of the
    children, so their time was subtracted twice and more.
    """,
    ("            if id(s.parent) in own:\n                own[id(s.parent)] -= s.end - s.start\n",
     "            outer = s.parent\n            while outer is not None:\n"
     "                if id(outer) in own:\n                    own[id(outer)] -= s.end - s.start\n"
     "                outer = outer.parent\n"),
)

own_profiler.changed(
    "own time with everything inside",
    """
    The own time was the whole time from start to end. Then the outermost block always stands first, and
    the table says nothing about where the time goes.
    """,
    ("                own[id(s.parent)] -= s.end - s.start\n", "                pass\n"),
)

own_profiler.changed(
    "subtracts the own time of the children",
    """
    Only the *own* time of each child was subtracted from its parent. The time of the child's children is
    then counted in two places. Subtract the child's whole length.
    """,
    ("        for s in self.ended():\n            if id(s.parent) in own:\n"
     "                own[id(s.parent)] -= s.end - s.start\n",
     "        for s in reversed(self.ended()):\n            if id(s.parent) in own:\n"
     "                own[id(s.parent)] -= own[id(s)]\n"),
)

own_profiler.changed(
    "counts recursion twice",
    """
    A span inside of another one of the same name was added to the total again. A function that calls itself
    ten deep then seems to take ten times as long as the whole program.
    """,
    ("            if not self.repeated(span):\n                row[1] += span.end - span.start\n",
     "            row[1] += span.end - span.start\n"),
)

own_profiler.changed(
    "looks at the parent only",
    """
    Only the direct parent was asked whether it has the same name. In `a` inside of `b` inside of `a`, the
    inner `a` was counted again. Go on from parent to parent.
    """,
    ("        while outer is not None and outer.name != span.name:\n            outer = outer.parent\n"
     "        return outer is not None",
     "        return outer is not None and outer.name == span.name"),
)

own_profiler.changed(
    "sorted by total",
    """
    The rows were sorted by total. The outermost block then stands first. Where the time goes is said by
    the own time.
    """,
    ("key=lambda row: (-row[3], row[0])", "key=lambda row: (-row[2], row[0])"),
)

own_profiler.changed(
    "repeated calls are not counted",
    """
    A span inside of another one of its name was left out altogether. It is a call, and its own time is part
    of the whole; only the total has it already.
    """,
    ("            row[0] += 1\n            if not self.repeated(span):\n"
     "                row[1] += span.end - span.start\n            row[2] += own\n",
     "            if not self.repeated(span):\n                row[0] += 1\n"
     "                row[1] += span.end - span.start\n                row[2] += own\n"),
)

own_profiler.changed(
    "loses the result",
    """
    The traced function returned None. Whoever calls it must not notice the difference.
    """,
    ("            return result\n", ""),
)

own_profiler.changed(
    "loses arguments with names",
    """
    Arguments with names did not reach the function. Take `**options` as well and hand them on.
    """,
    ("def run(*args, **options):", "def run(*args):"),
    ("f(*args, **options)", "f(*args)"),
)

own_profiler.changed(
    "leaves the methods replaced after an error",
    """
    An error left the block, and the class kept the traced methods. From then on each use of the class is
    measured, in programs that know nothing of it. Put them back in a `finally`.
    """,
    ("        try:\n            yield self\n        finally:\n"
     "            for name, method in before.items():\n                setattr(owner, name, method)\n",
     "        yield self\n        for name, method in before.items():\n"
     "            setattr(owner, name, method)\n"),
)

own_profiler.changed(
    "never puts the methods back",
    """
    After the block the class still had the traced methods. Keep the old ones and set them again at the end.
    """,
    ("            for name, method in before.items():\n                setattr(owner, name, method)\n\n",
     "            pass\n\n"),
)

own_profiler.changed(
    "traces a pull again and again",
    """
    A `pull` that was traced already was traced once more. The derivative is then noted under several names,
    one inside of the other, and a tensor that passes through many functions gets slower with each.
    """,
    ("if pull is not None and not hasattr(pull, \"__wrapped__\"):", "if pull is not None:"),
)

own_profiler.changed(
    "the backward pass is nobody's",
    """
    `pull` was left as it is, so the derivatives ran outside of all spans. They are most of a training step.
    """,
    ("                result.pull = self.traced(pull, name + \" backward\")\n", "                pass\n"),
)

own_profiler.changed(
    "a pull without the function's name",
    """
    The traced `pull` had a name of its own, as it stands in the source. Every operation has one named `pull` or
    `<lambda>`. Name it after the function that made it, `name + " backward"`.
    """,
    ("self.traced(pull, name + \" backward\")", "self.traced(pull)"),
)

own_profiler.changed(
    "seconds in the trace",
    """
    Times were written in seconds. A trace of this format has microseconds, and everything that lasts less
    than a second would be drawn as nothing.
    """,
    ("1e6 * (s.start - first)", "s.start - first"),
    ("1e6 * (s.end - s.start)", "s.end - s.start"),
)

own_profiler.changed(
    "the end for the length",
    """
    `dur` is how long a span takes, from its start to its end. The end was written there.
    """,
    ("1e6 * (s.end - s.start)", "1e6 * (s.end - first)"),
)

own_profiler.changed(
    "the clock's own zero",
    """
    `ts` was the clock's time. The zero of `time.perf_counter` is anywhere, often when the machine was
    started. Count from the start of the first span.
    """,
    ("first = min((s.start for s in self.spans), default=0.0)", "first = 0.0"),
)

own_profiler.changed(
    "open spans end now",
    """
    A span that is still open was counted, with the present as its end. It will be longer than that, and its
    own time would include what has not happened yet. Only spans that have ended count.
    """,
    ("        return [span for span in self.spans if span.end is not None]",
     "        for span in self.open:\n            span.end = self.clock()\n"
     "        return self.spans"),
)
