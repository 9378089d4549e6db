"""The console: pages for people at /ui. `web/` has their sources, `build.py` builds them, `assets.py` serves them."""
