"""The functions of ``builtins`` and of the standard library: what runs instead of them.

In: calls with symbolic arguments. Out: values, or frames of `polyfills` that must run.
Next room: interpreter.
"""
