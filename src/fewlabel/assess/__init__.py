"""How wrong the labels are: held-out votes, calibration, error estimates, acceptance, audits."""
