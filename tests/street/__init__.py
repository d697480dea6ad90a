"""The street test: what ordinary people ask of ordinary tables, walked through the public verbs.

A case is one integer, its seed. From it follow a table as people have them, a spec as a
statistician writes one, and what is done with both: plan, check, run, verify, open. Truths come
from pandas and numpy here, never from the product, of which only its command line and its public
names are used.

``python -m tests.street --cases 1000 --seed 7`` walks a thousand of them, ``--case 12345`` one.
"""
