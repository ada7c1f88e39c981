"""``make campaign``, or ``python -m campaign`` with tests/ on the path: run, repeat one case, or print the table."""

import argparse
import json
import sys
from pathlib import Path

from campaign.parts import PARTS
from campaign.runner import Budget, read_records, run_campaign, serve
from campaign.table import make_table

FOLDER = Path(__file__).parents[2] / ".campaign"  # not under version control


def main():
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after about so long; the next run goes on")
    parser.add_argument("--parts", default="", help=f"some of {' '.join(PARTS)}; all if none is named")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cases", type=int, default=None, help="new cases of each part, at most")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where results are kept")
    parser.add_argument("--case", metavar="PART:NUMBER", help="repeat one case in this process, and print its result")
    parser.add_argument("--table", action="store_true", help="print the table of what was run so far")
    parser.add_argument("--serve", metavar="PART", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(PARTS[given.serve])
    elif given.case:
        name, _, number = given.case.partition(":")
        print(json.dumps(PARTS[name].run(int(number)), indent=1))
    else:
        names = given.parts.replace(",", " ").split() or list(PARTS)
        parts = [PARTS[name] for name in names]
        if not given.table:
            run_campaign(parts, given.folder, Budget(60.0 * given.minutes, given.cases, given.jobs))
        records = read_records(given.folder)
        print(make_table(list(PARTS.values()), records))
        sys.exit(any("defect" in record for record in records.values()))


if __name__ == "__main__":
    main()
