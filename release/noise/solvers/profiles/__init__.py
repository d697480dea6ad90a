"""An exact search for the error rate under probabilistic guarantees on a ring."""
