"""Print the lowest versions that a pyproject.toml allows, as constraints of pip: ``python lowest.py pyproject.toml``.

Every ``name>=version`` of the dependencies and the extras becomes ``name==version``.
"""

import re
import sys
import tomllib
from pathlib import Path

FLOOR = re.compile(r"(?P<name>[A-Za-z0-9._-]+)>=(?P<version>[0-9][0-9.]*)")
OWN_EXTRAS = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\[[^]]+\]")


def lowest_versions(project):
    """Lowest version of each package that the table ``[project]`` names, by name."""
    extras = project.get("optional-dependencies", {})
    lowest = {}
    for requirement in [*project.get("dependencies", []), *(one for extra in extras.values() for one in extra)]:
        own = OWN_EXTRAS.fullmatch(requirement)
        if own and own["name"] == project["name"]:
            continue  # all = ["kernelweave[cli,io]"]: these extras are read themselves
        floor = FLOOR.fullmatch(requirement.replace(" ", ""))
        if floor is None:
            raise ValueError(f"{requirement!r} names no lowest version. Write it as 'name>=version'.")
        name, version = floor["name"], floor["version"]
        if lowest.setdefault(name, version) != version:
            raise ValueError(
                f"{name} has two lowest versions, {lowest[name]} and {version}. Name the same one everywhere."
            )
    return lowest


if __name__ == "__main__":
    try:
        versions = lowest_versions(tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"])
    except ValueError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
    print("\n".join(f"{name}=={version}" for name, version in versions.items()))
