"""The figures, tables and forms of Kadam et al. 2024."""
