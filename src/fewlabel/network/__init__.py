"""A network that was trained on synthetic tables and reads real ones, unlabelled rows included.

- :class:`fewlabel.network.classifier.PriorNetworkClassifier`: the estimator
- :mod:`fewlabel.network.forward`: the network in NumPy
- :mod:`fewlabel.network.views`: a table as the network wants it
- :mod:`fewlabel.network.weights`: the file of weights and its checksum

Training is in ``network_training/`` beside the package and needs torch; using the network does not.
"""

from fewlabel.network.classifier import PriorNetworkClassifier

__all__ = ["PriorNetworkClassifier"]
