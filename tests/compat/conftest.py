"""The programs are run by the tests beside them, each in a process of its own; none is imported."""

collect_ignore_glob = ["programs/*", "cuda_programs/*", "run_all.py", "run_cuda.py"]
