"""What every trial needs, imported once in the process from which the trials are forked."""

import sklearn.ensemble
import sklearn.model_selection  # noqa: F401

import reproduction.measure  # noqa: F401
