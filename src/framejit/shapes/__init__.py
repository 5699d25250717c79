"""The shapes room: what may vary from call to call, learned, told by marks, kept across runs.

In: the sizes and numbers that captures meet. Out: decisions (`policy`), and a file that the next
process starts from (`profile`). Plain Python; the algebra is in the graph room. Next room: values.
"""
