"""The folder on `sys.path` by which worker processes find toytorch under the name torch.

A process that `multiprocessing` starts afresh is told the path of its parent and nothing else, and
imports the program before any other code of its parent's choice runs.
"""
