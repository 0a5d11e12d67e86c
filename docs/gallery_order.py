"""The order of the gallery: what most readers want first."""

from __future__ import annotations

ORDER = [
    "plot_quickstart.py",
    "plot_labels_per_class.py",
    "plot_self_training.py",
    "plot_thresholds.py",
    "plot_when_it_hurts.py",
    "plot_error_estimate.py",
    "plot_audit.py",
    "plot_text.py",
    "plot_importance.py",
    "plot_learned_graph.py",
    "plot_out_of_core.py",
    "plot_own_policy.py",
    "plot_label_noise.py",
]


class ByTheme:
    """Sort key of sphinx-gallery; scripts that are not listed come last, by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        return ORDER.index(name) if name in ORDER else len(ORDER), name
