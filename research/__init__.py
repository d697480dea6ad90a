"""The tables and figures of the source papers, redrawn; nothing of the product imports this."""
