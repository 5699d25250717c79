"""What all values share: the base class, the space, constants, numbers that vary, keys, effects.

In: Python objects and their sources. Out: what one capture knows, and the registries that later
rooms fill. Next room: containers.
"""
