"""Random training scripts, at the level at which users write: `python -m tests.outside.scripts --seeds 0:1000`.

The other generators draw calls of tensors; this one draws networks and what people do with them. A
script is a text that both packages run, part by part, going on after an exception; what it shows
with `see(…)`, and what it raises, is compared.

    *.txt      what is drawn: layers, losses and optimizers, steps of scripts with a network, scripts without
    grammar    a text drawn from such alternatives
    script     a script of a seed; a layer that PyTorch refuses for the input is drawn again
    running    runs a script on either side, and notes what it shows
    search     compares, and shortens a script whose sides differ
"""
