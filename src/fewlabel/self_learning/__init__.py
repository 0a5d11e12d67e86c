"""Self-learning estimators: what they share, and ``SelfLearningClassifier``."""
