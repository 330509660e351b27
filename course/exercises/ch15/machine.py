"""A machine that runs kernels: blocks, threads, barriers, shared memory, races."""

from types import SimpleNamespace

import numpy as np

from course.records import Exercise

machine = Exercise(
    "kernels.machine",
    "A machine for kernels",
    chapter=15,
    minutes=55,
    prompt="""
    Write `Machine`, which runs kernels written in Python, counts their traffic and finds their races. A
    kernel is a function `kernel(at, *arguments)` that is called for each thread. `at` says which one it is:
    `at.block`, `at.thread`, and how many there are of both, `at.blocks` and `at.threads`. Where the kernel has
    a `yield`, there is a **barrier**. For example:

    ```python
    def reverse(at, x):
        kept = at.shared("kept", at.threads)
        kept[at.thread] = x[at.thread]
        yield
        x[at.thread] = kept[at.threads - 1 - at.thread]
    ```

    Write the machine in this order; the checks say how far you are.

    **1 · Threads.** `machine.launch(kernel, blocks, threads, *arguments)` runs the kernel for all threads of
    block 0, then for those of block 1, and so on; within a block in the order of the threads. A kernel
    without a `yield` is a plain function and returns None.

    **2 · Memory.** The kernel does not get the NumPy arrays among the arguments, but a `Memory` for each,
    whose elements are read by `x[i]` and `x[i, j]`, and written by `x[i] = value`. It has a `shape`.
    `machine.reads` and `machine.writes` count single elements, over all launches. Each index has to be from
    0 to below the size: there are no negative ones as in Python. Anything else is an `IndexError`.

    **3 · Barriers.** All threads of a block run up to their first `yield`, one after the other, then all go on
    to the next one. `machine.barriers` counts how often a block has passed one. If some threads wait and
    others have ended, the threads that wait will wait for ever: raise `RuntimeError`.

    **4 · Shared memory.** `at.shared(name, *shape)` gives a `Memory` of float64 that all threads of the *block*
    have in common, whoever asks first. It holds `nan` at first. It is another one in each block, and is not
    counted in `reads` and `writes`.

    **5 · Races.** Two accesses of one element race if they are by different threads, at least one is a write,
    and nothing orders them. A barrier orders what threads of the *same block* do before and after it. Nothing
    orders threads of different blocks within a launch; launches are ordered. `machine.races` is a sorted list
    of `(name, index)` without repetitions: `name` is that of the shared memory, or `"argument 0"`, `"argument 1"`,
    … by the position among `arguments`; `index` is a tuple.

    The kernel above, two threads in one block, x = [5, 7]:

    | runs | reads and writes | then |
    | --- | --- | --- |
    | thread 0 up to `yield` | x[0], kept[0] = 5 | waits |
    | thread 1 up to `yield` | x[1], kept[1] = 7 | waits, all do: barrier 1 |
    | thread 0 to its end | kept[1], x[0] = 7 | |
    | thread 1 to its end | kept[0], x[1] = 5 | no one waits: the block is done |

    2 reads and 2 writes of x, 1 barrier, no races. Without the `yield`, thread 0 would read kept[1] while it is
    `nan`, and ("kept", (0,)) and ("kept", (1,)) would be races.
    """,
    hints=(
        """
        A function with a `yield` gives a generator, which does nothing until `next` is called on it. `next(run, end)`
        runs it to its next `yield`, or returns `end` if it has none left. So a barrier is a round over the list of
        generators. Note in the machine who runs at present, and how many barriers the block has passed.
        """,
        """
        What a `Memory` has to remember of one element: who has touched it in this launch, as (block, thread, barriers
        passed), the reads and the writes apart. An access by (b, t, p) races with an earlier one by (c, u, q) if

        | | same block, c = b | another block |
        | --- | --- | --- |
        | same thread, u = t | never | yes, it is another thread |
        | p = q | yes | yes |
        | p > q | no, a barrier lies between | yes |

        A read is compared with the writes, a write with both. Example: block 0, thread 0 writes s[0] at p = 0. Thread 1
        reads s[0] at p = 0: a race. Thread 2 reads it at p = 1: none.
        """,
        """
        ```python
        class Machine:
            class Memory:
                def __init__(self, machine, name, array, counted):
                    self.machine, self.name = machine, name
                    self.array, self.counted = array, counted
                    self.shape = array.shape
                    self.read, self.written = {}, {}

                def place(self, index):
                    index = index if isinstance(index, tuple) else (index,)
                    inside = ...
                    if ...:
                        raise IndexError(f"{self.name} has no {index}")
                    return index

                def __getitem__(self, index):
                    index = self.place(index)
                    self.machine.reads += self.counted
                    ...
                    self.read.setdefault(index, set()).add(self.machine.who)
                    return self.array[index]

                def __setitem__(self, index, value):
                    index = self.place(index)
                    ...
                    self.written.setdefault(index, set()).add(self.machine.who)
                    self.array[index] = value

                def compare(self, index, others):
                    block, thread, passed = self.machine.who
                    for b, t, p in others.get(index, ()):
                        ordered = ...
                        if not ordered:
                            ...

            def __init__(self):
                self.reads = self.writes = self.barriers = 0
                self.found = set()

            @property
            def races(self):
                return sorted(self.found)

            def launch(self, kernel, blocks, threads, *arguments):
                given = [
                    self.Memory(self, f"argument {n}", a, True)
                    if isinstance(a, np.ndarray)
                    else a
                    for n, a in enumerate(arguments)
                ]
                for block in range(blocks):
                    memory = {}

                    def shared(name, *shape, memory=memory):
                        if name not in memory:
                            array = ...
                            memory[name] = self.Memory(self, name, array, False)
                        return memory[name]

                    runs = {}
                    for thread in range(threads):
                        self.who = block, thread, 0
                        at = SimpleNamespace(
                            block=block,
                            thread=thread,
                            blocks=blocks,
                            threads=threads,
                            shared=shared,
                        )
                        run = kernel(at, *given)
                        if run is not None:
                            runs[thread] = run
                    self.rounds(block, runs)

            def rounds(self, block, runs):
                passed = 0
                while runs:
                    waiting = {}
                    for thread, run in runs.items():
                        self.who = ...
                        if ...:
                            waiting[thread] = run
                    if ...:
                        raise RuntimeError("threads wait at a barrier for ever")
                    passed += 1
                    self.barriers += bool(waiting)
                    runs = waiting
        ```
        """,
    ),
)


@machine.stub
class Machine:
    """Runs kernels for all threads of all blocks; notes what they do."""

    def __init__(self):
        self.reads = self.writes = self.barriers = 0
        # your code here: about 1 line

    @property
    def races(self):
        """(name, index) of each element on which threads race, sorted."""
        # stage 5, your code here: about 1 line, and methods of your own
        raise NotImplementedError

    def launch(self, kernel, blocks, threads, *arguments):
        """Runs kernel(at, *arguments) for each thread of each block."""
        # stages 1 to 4, your code here: about 30 lines, and a class Memory
        raise NotImplementedError


@machine.reference()
class Machine:
    """Runs kernels for all threads of all blocks; notes what they do."""

    class Memory:
        """An array whose accesses are noted."""

        def __init__(self, machine, name, array, counted):
            self.machine, self.name = machine, name
            self.array, self.counted = array, counted
            self.shape = array.shape
            self.read, self.written = {}, {}

        def place(self, index):
            """An index as a tuple, inside of the array."""
            index = index if isinstance(index, tuple) else (index,)
            inside = all(0 <= i < n for i, n in zip(index, self.shape))
            if len(index) != len(self.shape) or not inside:
                raise IndexError(f"{self.name} has no {index}")
            return index

        def __getitem__(self, index):
            index = self.place(index)
            self.machine.reads += self.counted
            self.compare(index, self.written)
            self.read.setdefault(index, set()).add(self.machine.who)
            return self.array[index]

        def __setitem__(self, index, value):
            index = self.place(index)
            self.machine.writes += self.counted
            self.compare(index, self.written)
            self.compare(index, self.read)
            self.written.setdefault(index, set()).add(self.machine.who)
            self.array[index] = value

        def compare(self, index, others):
            """Notes a race if one of the others is not ordered."""
            block, thread, passed = self.machine.who
            for b, t, p in others.get(index, ()):
                ordered = b == block and (t == thread or p < passed)
                if not ordered:
                    self.machine.found.add((self.name, index))

    def __init__(self):
        self.reads = self.writes = self.barriers = 0
        self.found = set()

    @property
    def races(self):
        """(name, index) of each element on which threads race, sorted."""
        return sorted(self.found)

    def launch(self, kernel, blocks, threads, *arguments):
        """Runs kernel(at, *arguments) for each thread of each block."""
        given = [
            self.Memory(self, f"argument {n}", a, True)
            if isinstance(a, np.ndarray)
            else a
            for n, a in enumerate(arguments)
        ]
        for block in range(blocks):
            memory = {}

            def shared(name, *shape, memory=memory):
                if name not in memory:
                    array = np.full(shape, np.nan)
                    memory[name] = self.Memory(self, name, array, False)
                return memory[name]

            runs = {}
            for thread in range(threads):
                self.who = block, thread, 0
                at = SimpleNamespace(
                    block=block,
                    thread=thread,
                    blocks=blocks,
                    threads=threads,
                    shared=shared,
                )
                run = kernel(at, *given)
                if run is not None:
                    runs[thread] = run
            self.rounds(block, runs)

    def rounds(self, block, runs):
        """Lets all threads run from barrier to barrier."""
        passed = 0
        while runs:
            waiting = {}
            for thread, run in runs.items():
                self.who = block, thread, passed
                if next(run, "ended") != "ended":
                    waiting[thread] = run
            if waiting and len(waiting) < len(runs):
                raise RuntimeError("threads wait at a barrier for ever")
            passed += 1
            self.barriers += bool(waiting)
            runs = waiting
