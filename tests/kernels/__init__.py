"""The loop compiler: programs, loops, printers, functions, the machine."""
