"""Which rows to pseudo-label: policies, the training set of a round, when to stop."""
