"""Save a fitted model to one file and load it again, without running code from the file."""

from .model_file import load, load_with_about, pack, require_skops, save

__all__ = ["load", "load_with_about", "pack", "require_skops", "save"]
