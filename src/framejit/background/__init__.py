"""Backends that compile in another process, while calls run the recorded graphs as they are.

In: a graph that a capture has recorded, and later the entry that calls it. Out: the compiled graph
in that entry's place for it. `deferred.py` is what the compiler asks, `crew.py` the thread and the
process that work, `job.py` a graph as a message, `worker.py` the other process. Next: settings.
"""
