"""Model files that cannot run code: skops archives with an explicit list of types.

A model file is a zip archive written by skops, with one more member, ``fewlabel.json``: what made
the file, and the SHA-256 of every other member. Before anything is constructed, the members are
compared with these sums and every type that the archive names is compared with ``TRUSTED_TYPES``.
The sums detect damage and careless edits; against a forger it is the list of types that protects.
Nothing is ever unpickled.
"""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewlabel._core.errors import UserError, listing, shorten
from fewlabel.encoding.columns import Column
from fewlabel.encoding.encoder import TableEncoder

FORMAT = "fewlabel model"
FORMAT_VERSION = 2

ENCODING_TYPES = (
    "fewlabel.encoding.columns.Column",
    "fewlabel.encoding.encoder.TableEncoder",
    *(
        f"fewlabel.encoding.features.{kind}Features"
        for kind in ("Category", "Date", "Level", "Number", "Text")
    ),
    "skrub._string_encoder.StringEncoder",
    "skrub._to_str.ToStr",
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.feature_extraction.text.TfidfTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
)
"""Types of a :class:`fewlabel.TableEncoder`."""

TRUSTED_TYPES = frozenset(
    {
        "builtins.bool",
        "builtins.dict",
        "builtins.float",
        "builtins.int",
        "builtins.list",
        "builtins.slice",
        "builtins.str",
        "builtins.tuple",
        "builtins.type",
        "fewlabel.baselines._wide.WideLDA",
        "fewlabel.baselines.label_spreading.LabelSpreadingClassifier",
        "fewlabel.baselines.qns3vm.QNS3VMClassifier",
        "fewlabel.baselines.semi_lda.SemiLDAClassifier",
        *ENCODING_TYPES,
        "fewlabel.ensemble.families.RangeScaler",
        "fewlabel.ensemble.families.Voter",
        "fewlabel.ensemble.mixed_vote.MixedVote",
        "numpy.bool",
        "numpy.bool_",
        "numpy.dtype",
        "numpy.float32",
        "numpy.float64",
        "numpy.int64",
        "numpy.ndarray",
        "sklearn.decomposition._pca.PCA",
        "sklearn.ensemble._forest.ExtraTreesClassifier",
        "sklearn.ensemble._forest.RandomForestClassifier",
        "sklearn.impute._base.SimpleImputer",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.svm._classes.SVC",
        "sklearn.tree._classes.DecisionTreeClassifier",
        "sklearn.tree._classes.ExtraTreeClassifier",
        "sklearn.tree._tree.Tree",
    }
)
"""Every type that a model file may contain."""

TRUSTED_LOADERS = frozenset(
    {
        "DTypeNode",
        "DictNode",
        "JsonNode",
        "ListNode",
        "NdArrayNode",
        "ObjectNode",
        "SliceNode",
        "TreeNode",
        "TupleNode",
        "TypeNode",
    }
)
"""How skops may rebuild them; the loaders of functions, methods and partials are not here."""

# Of these, skops itself asks to be told that they are trusted.
_TELL_SKOPS = [
    *sorted(name for name in TRUSTED_TYPES if name.startswith(("fewlabel.", "skrub."))),
    "numpy.dtype",
    "sklearn.tree._tree.Tree",
]
_MANIFEST = "fewlabel.json"

# What reading a damaged archive raises; RuntimeError: a member seems to be encrypted.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    json.JSONDecodeError,
    UnicodeDecodeError,
    KeyError,
    EOFError,
    OSError,
    RuntimeError,
)

# What training leaves in a voter and votes on new rows do not need: a graph of all rows, their
# labels, the models on the way to the last one.
_ONLY_FOR_TRAINING = {
    "LabelSpreadingClassifier": ("graph_", "transduction_"),
    "QNS3VMClassifier": ("transduction_",),
    "SemiLDAClassifier": ("label_distributions_", "model_", "supervised_model_", "transduction_"),
}


@dataclass(frozen=True)
class TableModel:
    """All that is needed to label the rows of a new table.

    Attributes
    ----------
    encoder : fitted TableEncoder
        From the columns of a table to numbers.
    first, final : fitted RandomForestClassifier or MixedVote
        Trained on the labelled rows only, and after self-learning.
    thresholds : list of float
        The first classifier's vote that each class needs to be trusted, in the order of
        ``final.classes_``.
    target : str
        Name of the target column.
    summary : dict
        The report's summary, without cells of the training table.
    """

    encoder: TableEncoder
    first: Any
    final: Any
    thresholds: list[float]
    target: str
    summary: dict[str, Any]

    @property
    def plan(self) -> list[Column]:
        """What the columns of a table are taken for."""
        return self.encoder.plan_


def save_model(model: TableModel, path: Path) -> None:
    """Write a model file."""
    import skops.io

    content = {
        "encoder": model.encoder,
        "first": _for_new_rows(model.first),
        "final": _for_new_rows(model.final),
        "thresholds": model.thresholds,
        "target": model.target,
        "summary": json.dumps(model.summary),
    }
    skops.io.dump(content, path, compression=zipfile.ZIP_DEFLATED, compresslevel=3)
    with zipfile.ZipFile(path, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        members = {name: _sha256(archive, name) for name in archive.namelist()}
        archive.writestr(_MANIFEST, json.dumps({**_made_by(), "members": members}, indent=1))


def _for_new_rows(classifier: Any) -> Any:
    """A mixed vote without what only its training needed; any other classifier as it is.

    The copies are shallow: arrays that the first and the final vote share are written once.
    """
    from fewlabel.ensemble.families import Voter
    from fewlabel.ensemble.mixed_vote import MixedVote

    if not isinstance(classifier, MixedVote):
        return classifier
    voters = []
    for voter in classifier.estimators:
        model = copy.copy(voter.model)
        for name in _ONLY_FOR_TRAINING.get(type(model).__name__, ()):
            delattr(model, name)
        voters.append(Voter(voter.name, voter.scaler, model, voter.n_classes, voter.power))
    return MixedVote(voters, classifier.weights, classifier.classes)


def _made_by() -> dict[str, Any]:
    import sklearn

    from fewlabel import __version__

    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "fewlabel": __version__,
        "scikit-learn": sklearn.__version__,
    }


def load_model(path: Path) -> TableModel:
    """Read a model file, or say in a :class:`UserError` why it is refused."""
    import sklearn
    import skops.io

    path = Path(path)
    manifest = check_model_file(path)
    if manifest.get("scikit-learn") != sklearn.__version__:
        warnings.warn(
            f"The model was made with scikit-learn {shorten(manifest.get('scikit-learn'), 20)} and "
            f"is read with {sklearn.__version__}; train it again if results look odd.",
            stacklevel=2,
        )
    try:
        content = skops.io.load(path, trusted=_TELL_SKOPS)
        return TableModel(
            encoder=content["encoder"],
            first=content["first"],
            final=content["final"],
            thresholds=[float(value) for value in content["thresholds"]],
            target=str(content["target"]),
            summary=json.loads(content["summary"]),
        )
    except Exception as error:  # whatever a malformed archive provokes in its reader
        raise _refused(path, f"its content cannot be read ({shorten(error, 100)})") from error


def check_model_file(path: Path) -> dict[str, Any]:
    """Verify a model file without constructing anything in it; return its manifest."""
    if not path.exists():
        raise UserError(f"There is no file '{shorten(path)}'.", "Check the name and the folder.")
    if path.is_dir():
        raise UserError(f"'{shorten(path)}' is a folder.", "Name a model file in it.")
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest(archive, path)
            _check_members(archive, manifest, path)
            unknown = sorted(set(_untrusted(json.loads(archive.read("schema.json")))))
    except RecursionError as error:
        raise _refused(path, "its structure is nested too deeply") from error
    except _DAMAGED as error:
        raise _refused(path, "it is no fewlabel model, or it is cut off or damaged") from error
    if unknown:
        raise _refused(
            path, f"it contains types that a fewlabel model never has: {listing(unknown)}"
        )
    return manifest


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if _MANIFEST not in archive.namelist():
        raise _refused(path, "it was not written by fewlabel")
    manifest = json.loads(archive.read(_MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _refused(path, "it was not written by fewlabel")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise UserError(
            f"'{shorten(path)}' was written by fewlabel {shorten(manifest.get('fewlabel'))} in a "
            f"format that this version does not know.",
            "Install that version, or train the model again.",
        )
    return manifest


def _check_members(archive: zipfile.ZipFile, manifest: dict[str, Any], path: Path) -> None:
    recorded = manifest.get("members")
    # A zip archive may hold one name twice; readers then disagree on which one counts.
    names = [name for name in archive.namelist() if name != _MANIFEST]
    if not isinstance(recorded, dict) or sorted(names) != sorted(recorded):
        raise _refused(path, "its list of contents was changed after it was written")
    changed = [name for name in names if _sha256(archive, name) != recorded[name]]
    if changed:
        raise _refused(path, "its contents were changed after it was written")


def _sha256(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as member:
        return hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]


def _untrusted(node: Any) -> Iterator[str]:
    """Names of all types and loaders in a skops schema that are on no list."""
    if isinstance(node, dict):
        if "__class__" in node or "__loader__" in node:
            type_name = f"{node.get('__module__')}.{node.get('__class__')}"
            if type_name not in TRUSTED_TYPES:
                yield type_name
            if node.get("__loader__") not in TRUSTED_LOADERS:
                yield str(node.get("__loader__"))
        for value in node.values():
            yield from _untrusted(value)
    elif isinstance(node, list):
        for value in node:
            yield from _untrusted(value)


def _refused(path: Path, reason: str) -> UserError:
    return UserError(
        f"'{shorten(path)}' is refused: {reason}.",
        "Use a model file that `fewlabel fit --model` wrote, from a source that you trust.",
    )
