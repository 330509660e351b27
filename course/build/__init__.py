"""From a chapter's one source to its notebook, its solved notebook and its slides."""

from course.build.make import Built, build, in_step

__all__ = ["Built", "build", "in_step"]
