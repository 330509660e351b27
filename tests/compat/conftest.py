"""The programs are run by test_programs.py and test_cuda_programs.py, each in a process of its own kind; none is imported."""

collect_ignore_glob = ["programs/*", "cuda_programs/*", "run_all.py", "run_cuda.py"]
