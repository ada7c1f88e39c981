"""Run the first Python example of a README: ``python readme_example.py README.md``."""

import re
import sys
from pathlib import Path


def python_blocks(text):
    """Code of each fenced ``python`` block, led by empty lines that keep the README's line numbers."""
    fenced = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return ["\n" * text.count("\n", 0, found.start(1)) + found[1] for found in fenced.finditer(text)]


if __name__ == "__main__":
    readme = Path(sys.argv[1])
    blocks = python_blocks(readme.read_text(encoding="utf-8"))
    if not blocks:
        sys.exit(f"{readme} has no block that begins with ```python, so there is no example to run.")
    exec(compile(blocks[0], str(readme), "exec"), {"__name__": "__main__"})
