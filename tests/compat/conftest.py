"""The programs are run by test_programs.py, each in a process of its own kind; none is imported."""

collect_ignore_glob = ["programs/*", "run_all.py"]
