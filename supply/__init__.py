"""The libraries that dp-release is built on: their pins, licenses and bills of materials.

``python3.11.txt`` and its neighbors are the locks, the one source of every pin. ``licenses.toml``
says which licenses are allowed. Nothing of the product imports this package, and the wheel leaves
it out.
"""
