"""The figures and the table of Qin et al. 2022."""
