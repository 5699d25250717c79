"""Guards: the facts a capture relied on become a plan, and the plan becomes a native check.

In: `Source` trees with facts. Out: the node list of the native `GuardTree`, the order of the
captured values, printed guards, and the sentence that says why a guard failed.
Next room: interpreter.
"""

from __future__ import annotations

from framejit.guards.plan import Plan, build_plan

__all__ = ["Plan", "build_plan"]
