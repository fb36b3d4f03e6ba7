"""Reports of experiments: figures for print and pages for the browser."""

from longterm.report.experiment import write_page
from longterm.report.figures import write_figures

__all__ = ["write_figures", "write_page"]
