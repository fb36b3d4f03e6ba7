"""What an experiment found, for people: figures for print and a page for the browser."""

from longterm.report.figures import write_figures
from longterm.report.page import write_page

__all__ = ["write_figures", "write_page"]
