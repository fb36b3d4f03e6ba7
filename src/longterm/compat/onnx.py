"""Converters of the linear models for skl2onnx (extra `onnx`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from longterm._base.extras import missing_extra

try:
    from skl2onnx import update_registered_converter
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, guess_proto_type
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes,
        calculate_linear_regressor_output_shapes,
    )
    from skl2onnx.proto import onnx_proto
except ImportError as error:
    raise missing_extra("longterm.compat.onnx needs skl2onnx", "onnx") from error

from longterm.linear_model import (
    BudgetLinearClassifier,
    BudgetLinearRegressor,
    BudgetPathClassifier,
    BudgetPathRegressor,
    FairLinearClassifier,
)

__all__ = ["register_converters"]

CLASSIFIERS = (BudgetLinearClassifier, BudgetPathClassifier, FairLinearClassifier)
REGRESSORS = (BudgetLinearRegressor, BudgetPathRegressor)
OPERATOR_SET = 13
"""The lowest version of ONNX's operator set."""


def register_converters() -> None:
    """Register converters for the estimators of `longterm.linear_model`, alone or in a pipeline; idempotent.

    The graph has the weights that `predict` uses at that moment. Classifiers have two outputs, the label and the
    probabilities. With a loss without probabilities, or with the option ``raw_scores``, the second output is the
    margins (two classes: −m and m). Rows of float64 (`DoubleTensorType`) are computed in float64, all others in
    float32.

    Examples
    --------
    >>> import numpy as np
    >>> from skl2onnx import to_onnx
    >>> from longterm.compat.onnx import register_converters
    >>> from longterm.linear_model import BudgetLinearRegressor
    >>> register_converters()
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> model = BudgetLinearRegressor(random_state=0).fit(X, X[:, 0] + 7)
    >>> graph = to_onnx(model, X[:1])
    >>> [node.op_type for node in graph.graph.node]
    ['MatMul', 'Add']
    """
    options: dict[str, list[Any]] = {name: [True, False] for name in ("raw_scores", "output_class_labels", "nocl")}
    options["zipmap"] = [True, False, "columns"]
    shapes = calculate_linear_classifier_output_shapes
    for classifier in CLASSIFIERS:
        name = f"Longterm{classifier.__name__}"
        update_registered_converter(classifier, name, shapes, _convert_classifier, options=options)
    shapes = calculate_linear_regressor_output_shapes
    for regressor in REGRESSORS:
        update_registered_converter(regressor, f"Longterm{regressor.__name__}", shapes, _convert_regressor)


class _Graph:
    """A builder of a graph: each method adds nodes and returns the name of the result."""

    def __init__(self, scope: Any, operator: Any, container: Any) -> None:
        self._scope, self._container = scope, container
        given = operator.inputs[0]
        self._kind = guess_proto_type(given.type)
        self._given = given.full_name
        if not isinstance(given.type, FloatTensorType | DoubleTensorType):
            self._kind = onnx_proto.TensorProto.FLOAT
            self._given = self.add("Cast", [self._given], to=self._kind)

    def add(self, kind: str, inputs: list[str], output: str | None = None, **options: Any) -> str:
        name = output or self._scope.get_unique_variable_name(kind.lower())
        domain = {"op_domain": "ai.onnx.ml"} if kind == "ArrayFeatureExtractor" else {"op_version": OPERATOR_SET}
        self._container.add_node(
            kind, inputs, name, name=self._scope.get_unique_operator_name(kind), **domain, **options
        )
        return name

    def constant(self, values: Any, kind: int | None = None) -> str:
        name = str(self._scope.get_unique_variable_name("constant"))
        array = np.asarray(values)
        flat = [text.encode() for text in array.tolist()] if array.dtype.kind in "UO" else array.ravel().tolist()
        self._container.add_initializer(name, self._kind if kind is None else kind, list(array.shape), flat)
        return name

    def margins(self, weights: Any, intercepts: Any, output: str | None = None) -> str:
        """Add rows times weights (d, K) plus intercepts (K,)."""
        product = self.add("MatMul", [self._given, self.constant(weights)])
        return self.add("Add", [product, self.constant(intercepts)], output)


def _convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    model, graph = operator.raw_operator, _Graph(scope, operator, container)
    graph.margins(model.coef_[:, None], [model.intercept_], operator.outputs[0].full_name)


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    model, graph = operator.raw_operator, _Graph(scope, operator, container)
    raw = container.get_options(model, {"raw_scores": False})["raw_scores"] or model.loss != "logistic"
    weights, intercepts = model.coef_.T, np.asarray(model.intercept_)
    label, second = (output.full_name for output in operator.outputs)
    if len(model.classes_) == 2:  # margins of both classes: the class is that of the larger one
        weights, intercepts = np.hstack([-weights, weights]), np.append(-intercepts, intercepts)
    margins = graph.margins(weights, intercepts, second if raw else None)
    if not raw:
        each = graph.add("Sigmoid", [margins])
        if len(model.classes_) == 2:
            graph.add("Identity", [each], second)
        else:
            axis = graph.constant([1], onnx_proto.TensorProto.INT64)
            total = graph.add("ReduceSum", [each, axis], keepdims=1)
            graph.add("Div", [each, total], second)
    place = graph.add("ArgMax", [margins], axis=1, keepdims=0)
    classes, kind = _labels(model.classes_)
    named = graph.add("ArrayFeatureExtractor", [graph.constant(classes, kind), place])
    graph.add("Reshape", [named, graph.constant([-1], onnx_proto.TensorProto.INT64)], label)


def _labels(classes: Any) -> tuple[Any, int]:
    """Return the classes as texts or integers, and their ONNX type."""
    if classes.dtype.kind in "UO":
        return np.array([str(one) for one in classes]), onnx_proto.TensorProto.STRING
    return classes.astype(np.int64), onnx_proto.TensorProto.INT64
