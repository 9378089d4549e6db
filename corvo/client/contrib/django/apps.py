"""What Django finds in INSTALLED_APPS."""

from django.apps import AppConfig


class CorvoConfig(AppConfig):
    name = __package__
    label = "corvo"
