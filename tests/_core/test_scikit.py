from __future__ import annotations

from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fewlabel._core.scikit import fit_weight_name


def test_where_weights_go():
    assert fit_weight_name(LogisticRegression()) == "sample_weight"
    assert fit_weight_name(KNeighborsClassifier()) is None
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    assert fit_weight_name(pipe) == "logisticregression__sample_weight"
    assert fit_weight_name(make_pipeline(StandardScaler(), KNeighborsClassifier())) is None
    nested = make_pipeline(make_column_transformer(("passthrough", [0])), pipe)
    assert fit_weight_name(nested) == "pipeline__logisticregression__sample_weight"
    assert fit_weight_name(GridSearchCV(LogisticRegression(), {})) == "sample_weight"
    assert fit_weight_name(GridSearchCV(pipe, {})) == "logisticregression__sample_weight"
    assert fit_weight_name(GridSearchCV(KNeighborsClassifier(), {})) is None
    two = [("a", LogisticRegression()), ("b", KNeighborsClassifier())]
    assert fit_weight_name(VotingClassifier(two)) is None
    assert fit_weight_name(VotingClassifier(two).set_params(b="drop")) == "sample_weight"
