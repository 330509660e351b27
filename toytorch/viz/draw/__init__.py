"""Shapes, text, layout, and the printers that write SVG and PNG."""
