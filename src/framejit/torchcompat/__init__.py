"""What framejit uses of torch beside its public names, where that has moved between releases.

In: torch. Out: one module per family, named after what it gives, that finds it in every release
that is supported and says which release changed it. They ask torch for the ability, not for its
version. `tests/torchcompat` says of each entry what breaks when torch moves again.
"""
