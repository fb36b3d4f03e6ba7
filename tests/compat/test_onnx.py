"""ONNX graphs of linear models: onnxruntime computes what the estimators do."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from longterm.linear_model import (
    BudgetLinearClassifier,
    BudgetLinearRegressor,
    BudgetPathClassifier,
    FairLinearClassifier,
)

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
skl2onnx = pytest.importorskip("skl2onnx", reason="the extra onnx is not installed")

X = np.random.default_rng(0).standard_normal((300, 5))
TWO = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")
THREE = 10 * X[:, :3].argmax(axis=1) + 1


def onnx_outputs(model, rows, **options):
    from longterm.compat.onnx import register_converters

    register_converters()
    last = model[-1] if hasattr(model, "steps") else model
    own = {id(last): {"zipmap": False, **options}} if hasattr(last, "classes_") else None
    graph = skl2onnx.to_onnx(model, rows[:1], options=own)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: rows})


@pytest.mark.slow
@pytest.mark.parametrize("y", [TWO, THREE, TWO == "yes"], ids=["texts", "numbers", "truth"])
def test_labels_and_probabilities_are_those_of_the_estimator(y):
    model = make_pipeline(StandardScaler(), BudgetLinearClassifier(random_state=0)).fit(X, y)
    label, probabilities = onnx_outputs(model, X)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-9, atol=1e-12)
    label, probabilities = onnx_outputs(model, X.astype(np.float32))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)


@pytest.mark.slow
def test_margins_where_there_are_no_probabilities():
    model = BudgetLinearClassifier(loss="hinge", random_state=0).fit(X, TWO)
    _, margins = onnx_outputs(model, X)
    np.testing.assert_allclose(margins[:, 1], model.decision_function(X), rtol=1e-9, atol=1e-12)
    path = BudgetPathClassifier(4, random_state=0, n_jobs=1).fit(X, THREE)
    label, margins = onnx_outputs(path, X, raw_scores=True)
    np.testing.assert_allclose(margins, path.decision_function(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(label, path.predict(X))
    fair = FairLinearClassifier(random_state=0).fit(X, TWO, sensitive_features=THREE)
    np.testing.assert_allclose(onnx_outputs(fair, X)[1], fair.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_predictions_of_targets_are_those_of_the_estimator():
    model = BudgetLinearRegressor(random_state=0).fit(X, 1e4 + X[:, 0])
    np.testing.assert_allclose(onnx_outputs(model, X)[0][:, 0], model.predict(X), rtol=1e-12)
    whole = np.round(X).astype(np.int64)
    np.testing.assert_allclose(onnx_outputs(model, whole)[0][:, 0], model.predict(whole), rtol=1e-6)
