"""The mixed vote: families of voters, the posterior over them, ``FewLabelClassifier``."""
