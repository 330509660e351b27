"""Programs over other people's libraries are run by `tests.outside.installed`, not imported by pytest."""

collect_ignore = ["libraries"]
