"""What `import torch` finds in such a process; toytorch takes its place."""

if __name__ == "torch":
    from toytorch.alias import install

    install()
