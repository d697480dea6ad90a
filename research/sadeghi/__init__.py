"""The figures and the example of Sadeghi, Asoodeh and Calmon 2020."""
