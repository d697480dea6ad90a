"""Table contracts: the rules of one, and the reading of one from its file or a Table Schema."""
