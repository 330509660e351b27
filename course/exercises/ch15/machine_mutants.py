"""Misconceptions about a machine for kernels."""

from course.exercises.ch15.machine import machine

machine.changed(
    "threads run to their end, one after the other",
    """
    Each thread was run to its end before the next one began, so a barrier stopped nobody. Thread 0 then reads
    what thread 1 has not written yet. All threads of a block come to the barrier before any goes on.
    """,
    ("                if next(run, \"ended\") != \"ended\":\n                    waiting[thread] = run\n",
     "                for _ in run:\n                    pass\n"),
)

machine.changed(
    "a barrier waits only for those who come",
    """
    Threads that had ended were left out at the barrier, and the others went on. On a GPU the barrier waits for
    all threads of the block: the kernel hangs, or goes on with wrong values. Raise an error.
    """,
    ("            if waiting and len(waiting) < len(runs):\n"
     "                raise RuntimeError(\"threads wait at a barrier for ever\")\n", ""),
)

machine.changed(
    "the end of a kernel is a barrier",
    """
    The last round was counted as a barrier. It ends because no thread waits any more; barriers are where
    threads wait.
    """,
    ("self.barriers += bool(waiting)", "self.barriers += 1"),
)

machine.changed(
    "each thread has shared memory of its own",
    """
    `at.shared` made a new memory for each thread. All threads of a block have it in common: whoever asks first
    makes it, and the others get the same one.
    """,
    ("                if name not in memory:\n                    array = np.full(shape, np.nan)\n"
     "                    memory[name] = self.Memory(self, name, array, False)\n",
     "                array = np.full(shape, np.nan)\n"
     "                memory[name] = self.Memory(self, name, array, False)\n"),
)

machine.changed(
    "shared memory is kept for the next block",
    """
    The next block found what the one before had left. Blocks may run at the same time on different
    multiprocessors, each with shared memory of its own.
    """,
    ("        for block in range(blocks):\n            memory = {}\n",
     "        memory = {}\n        for block in range(blocks):\n"),
)

machine.changed(
    "shared memory begins with zeros",
    """
    Shared memory was filled with zeros. It holds anything at first, and a kernel that forgets to write it should
    be found out: with `nan` its results are `nan`.
    """,
    ("np.full(shape, np.nan)", "np.zeros(shape)"),
)

machine.changed(
    "counts shared memory as traffic",
    """
    Accesses of shared memory were counted. It lies in the multiprocessor and costs no traffic: that is what it
    is there for.
    """,
    ("memory[name] = self.Memory(self, name, array, False)",
     "memory[name] = self.Memory(self, name, array, True)"),
)

machine.changed(
    "negative indices count from the end",
    """
    An index of −1 read the last element, as in NumPy. A kernel in CUDA C reads what lies *before* the array.
    Refuse it.
    """,
    ("all(0 <= i < n for", "all(-n <= i < n for"),
)

machine.changed(
    "half of an index",
    """
    `x[1]` of a matrix was let through and touched a whole row. Every access is one element, so the index needs as
    many parts as the memory has dimensions.
    """,
    ("            if len(index) != len(self.shape) or not inside:", "            if not inside:"),
)

machine.changed(
    "two reads race",
    """
    Threads that only read were reported. Reading changes nothing: at least one of the two accesses has to be
    a write.
    """,
    ("            self.compare(index, self.written)\n            self.read.setdefault",
     "            self.compare(index, self.written)\n            self.compare(index, self.read)\n"
     "            self.read.setdefault"),
)

machine.changed(
    "only two writes race",
    """
    A write was not compared with earlier *reads*. A thread that reads before another one writes may come too
    late on another day, and then reads the new value.
    """,
    ("            self.compare(index, self.written)\n            self.compare(index, self.read)\n"
     "            self.written.setdefault",
     "            self.compare(index, self.written)\n            self.written.setdefault"),
)

machine.changed(
    "a thread races with itself",
    """
    Two accesses of the same thread were reported. A thread does one thing after the other.
    """,
    ("b == block and (t == thread or p < passed)", "b == block and p < passed"),
)

machine.changed(
    "barriers order nothing",
    """
    Accesses before and after a barrier were reported. Of threads of one block, everything before the barrier is
    done when the first of them goes on.
    """,
    ("b == block and (t == thread or p < passed)", "b == block and t == thread"),
)

machine.changed(
    "a barrier orders all blocks",
    """
    What block 0 did before its barrier was taken to be before what block 1 does after its own. A barrier is one
    of a block. Nothing orders blocks within a launch: the second one may run first.
    """,
    ("b == block and (t == thread or p < passed)", "(b, t) == (block, thread) or p < passed"),
)

machine.changed(
    "blocks run one after the other",
    """
    Different blocks were never compared, since this machine runs one after the other. A GPU runs many at the same
    time, in any order.
    """,
    ("b == block and (t == thread or p < passed)", "b != block or t == thread or p < passed"),
)

machine.changed(
    "launches race with each other",
    """
    A launch was compared with the launch before. Launches of one stream are ordered: each begins when the one
    before has ended.
    """,
    ("        self.found = set()\n", "        self.found, self.seen = set(), []\n"),
    ("        for block in range(blocks):\n            memory = {}\n",
     "        for one, other in zip(given, self.seen):\n            if hasattr(one, \"read\"):\n"
     "                moved = {k: {(-1, t, p) for _, t, p in v}\n"
     "                         for k, v in other.written.items()}\n"
     "                one.written = moved\n        self.seen = given\n"
     "        for block in range(blocks):\n            memory = {}\n"),
)

machine.changed(
    "the same thread of another block is the same thread",
    """
    Threads were compared by their number within the block. Thread 0 of block 0 and thread 0 of block 1 are two
    threads.
    """,
    ("b == block and (t == thread or p < passed)", "t == thread or (b == block and p < passed)"),
)

machine.changed(
    "reads are counted as writes",
    """
    Each access was counted as a read and as a write. Reading an element moves it once, in one direction.
    """,
    ("self.machine.reads += self.counted", "self.machine.reads += self.counted\n"
     "            self.machine.writes += self.counted"),
)
