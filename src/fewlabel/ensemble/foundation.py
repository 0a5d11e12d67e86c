"""Foundation models as voters: what they are, and how far they may be trusted with a table.

They come from packages of their own, with weights that are fetched at first use. Without package or
weights they have no vote, and the record of the family says why.
"""

from __future__ import annotations

from typing import Any

LIMITS: dict[str, dict[str, Any]] = {
    "TabICLClassifier": {"package": "tabicl", "most_labeled": 100_000, "most_features": 2_000},
    "TabPFNClassifier": {
        "package": "tabpfn",
        "most_labeled": 10_000,
        "most_features": 500,
        "most_classes": 10,
    },
}
"""Fields of :class:`fewlabel.ensemble.families.Family`, by the name of the classifier's class.

The tables that their authors say they are made for.
"""


def limits_of(estimator: Any) -> dict[str, Any]:
    """Limits of a foundation model, none for any other estimator."""
    return LIMITS.get(type(estimator).__name__, {})


def make_tabicl(seed: int, n_jobs: int | None) -> Any:
    """TabICL at its defaults."""
    from tabicl import TabICLClassifier

    return TabICLClassifier(random_state=seed, n_jobs=n_jobs)


def why_it_failed(package: str, error: Exception) -> str:
    """What to tell of a foundation model that could not be used."""
    if isinstance(error, ModuleNotFoundError):
        return f"it needs the package {package} (pip install 'fewlabel[foundation]')"
    said = " ".join(str(error).split()) or type(error).__name__
    return (
        f"its model could not be used ({said.rstrip('.')[:200]}); its weights are fetched from a "
        f"hub at first use: fetch them once with a connection, or give the estimator as an "
        f"instance with the path of its weights"
    )
