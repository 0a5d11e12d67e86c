"""The paper's bounds (Sections 3 to 5), from votes to PAC-Bayes."""
