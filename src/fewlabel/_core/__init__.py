"""Scikit-learn compatibility, targets, input checks, errors and atomic files."""
