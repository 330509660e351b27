"""Programs over other people's libraries; `python -m tests.outside.installed` runs them on both."""
