"""What framejit tells its users: one stream of events, and everything that reads it.

In: events from the driver (`events.emit`). Out: counters, printouts, warnings and error messages.
Nothing else keeps books. Next room: api.
"""
