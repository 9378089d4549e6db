"""`from corvo.worker import Corvo`: the worker library of `corvo.client.worker`, where the server is installed too."""

from corvo.client.worker import *  # noqa: F403  # the same names
from corvo.client.worker import __all__ as __all__
