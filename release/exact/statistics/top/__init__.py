"""The k commonest categories: noisy histograms, peeling, and the canonical loss."""
