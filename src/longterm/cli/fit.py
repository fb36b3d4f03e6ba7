"""The command `longterm fit`: a linear model from files that may be larger than the memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from longterm._base.progress import reporter
from longterm.cli.options import NameList, OptionalFloat, OptionalInt
from longterm.cli.output import terminal_width
from longterm.data import learn_files

Loss = Literal["logistic", "hinge", "squared_hinge", "squared", "huber", "quantile"]
CLASSIFYING = ("logistic", "hinge", "squared_hinge")


@dataclass(frozen=True)
class FitCommand:
    """Learn a linear model from Parquet or CSV files, row after row, in one pass and with little memory.

    All columns but the label must hold numbers. With a loss for classes the model is a classifier, otherwise a
    regressor. You do not have to scale features.

    The command saves the model from time to time. If it is stopped, run it again: it continues after the last saved
    row and ends with the same weights. The model knows the number of its rows but not the files. So give the same
    files in the same order. Further files may follow at the end.

    for example:
      longterm fit data/*.parquet --label y --max-features 10 --out model
      longterm fit data --label price --loss squared --budget 5 --drop id date --out prices.model

    and in Python:
      model = longterm.linear_model.BudgetLinearClassifier.load("model")
      model.predict(frame[model.feature_names_in_])
    """

    files: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE ...")]]
    """Parquet or CSV files with a header, in the order to learn them. The files of a folder are sorted by name."""
    label: str
    """The column of the classes or targets."""
    out: Path
    """The file of the model. If it exists, the command continues to train this model."""
    drop: NameList = ()
    """Columns to leave out."""
    loss: Loss = "logistic"
    """logistic, hinge and squared_hinge are for classes; squared, huber and quantile for targets."""
    max_features: OptionalInt = None
    """The largest number of features with a weight. Default: no limit."""
    budget: OptionalFloat = None
    """A limit on the size of all weights in the long run (docs/guides/linear_model.md). Default: no limit."""
    save_every: int = 100_000
    """The number of rows after which the model is saved."""

    def run(self) -> None:
        """Learn the files, and print the largest weights."""
        from longterm.linear_model import BudgetLinearClassifier, BudgetLinearRegressor

        kind: Any = BudgetLinearClassifier if self.loss in CLASSIFYING else BudgetLinearRegressor
        model = kind(self.budget, loss=self.loss, max_features=self.max_features, random_state=0)
        options: dict[str, Any] = {"drop": self.drop, "out": self.out, "save_every": self.save_every}
        before = getattr(kind.load(self.out), "n_rounds_", 0) if self.out.exists() else 0
        with reporter("auto", "learn", unit="rows", lines=sys.stderr, before=before) as report:
            model = learn_files(model, self.files, self.label, **options, progress=report)
        if model.n_rounds_ == before:
            sys.stdout.write(f"nothing to learn: the model has learned these {before:,} rows before\n")
        elif before:
            sys.stdout.write(f"learned {model.n_rounds_ - before:,} rows, after {before:,} that were learned before\n")
        sys.stdout.write(f"{model.summary().to_text(terminal_width())}\nmodel  {self.out}\n")
