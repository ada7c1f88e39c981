"""The command, for ``python -m kernelweave`` where its script is not on the path."""

from .cli.main import main

if __name__ == "__main__":
    main()
