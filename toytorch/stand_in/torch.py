"""What `import torch` finds first in a worker process (see the package); it installs toytorch as torch."""

if __name__ == "torch":
    from toytorch.alias import install

    install()
