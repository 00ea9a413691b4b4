"""Reports that stand alone: plots in one quiet style, one HTML page, a folder that appears when it is complete."""

from scripts.report.folder import OutputFolder
from scripts.report.page import Page, Plot, Row, Table
from scripts.report.style import COLORS, draw

__all__ = ["COLORS", "OutputFolder", "Page", "Plot", "Row", "Table", "draw"]
