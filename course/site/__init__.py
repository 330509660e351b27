"""The course as static pages that open from disk and ask the network for nothing.

layout.py    what every page has around it
chapters.py  a solved notebook as a page
make.py      all pages, and writing them
"""

from course.site.make import pages, write

__all__ = ["pages", "write"]
