"""One table of what a campaign has run."""

import platform
from collections import Counter
from datetime import UTC, datetime

from campaign.runner import digest_source

from kernelweave.papers.runner import versions

HEADER = ("part", "cases", "of", "on this source", "how they ended", "defects", "processor s")


def make_table(parts, records):
    """Markdown: a row a part, the open defects, date and versions."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    for part in parts:
        mine = [record for (name, _), record in records.items() if name == part.name]
        ended = Counter(record["ended"] for record in mine)
        for word, count in Counter(word for record in mine for word in record.get("also", ())).items():
            ended[word] = count
        cells = (
            f"{part.name}: {part.what}",
            len(mine),
            part.n_cases,
            sum(record["source"] == digest_source() for record in mine),
            ", ".join(f"{word} {count:,}" for word, count in ended.most_common()),
            sum("defect" in record for record in mine),
            f"{sum(record.get('seconds', 0.0) for record in mine):,.0f}",
        )
        lines.append("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells) + " |")
    for (name, number), record in records.items():
        if "defect" in record:
            lines.append(f"- {name}:{number} {record['defect'].strip().splitlines()[-1][:150]}")
    about = ", ".join(f"{name} {number}" for name, number in versions().items())
    date = datetime.now(UTC).date()
    return "\n".join(
        [*lines, "", f"date {date}, python {platform.python_version()}, {about}, source {digest_source()}."]
    )
