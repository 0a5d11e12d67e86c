"""Bounds on the error of a majority vote: Sections 3 to 5 of the paper.

References
----------
.. [1] V. Feofanov, E. Devijver and M.-R. Amini (2021), "Multi-class Probabilistic Bounds for
   Self-learning".
"""
