"""Code generation: from the state at the end of a capture to a Python function (an AST).

In: a returned value or the frames of a graph break, the log of effects, the graph. Out: a function
that calls the compiled graph, builds what must exist for real, replays effects, and returns or goes
on in a break function. Next room: compiler.
"""
