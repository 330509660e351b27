"""The error of a model or a setting that the trainer cannot work with."""


class MisconfigurationException(Exception):
    """Something in the model, the data or the settings contradicts what is asked for."""
