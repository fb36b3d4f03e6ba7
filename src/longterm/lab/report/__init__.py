"""Reports of experiments: figures for print and pages for the browser."""
