"""Views, copies in another shape, joining and splitting."""
