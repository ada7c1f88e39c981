"""Open a page in a headless Chromium, where there is one, and listen to its console."""

import shutil
import subprocess

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0"]

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def opened(file, folder, *options):
    """What the browser prints of a page, and the lines of its console; `folder` keeps the browser's own files."""
    command = [CHROMIUM, *QUIET, f"--user-data-dir={folder}", *options, file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
