"""The parts of the campaign, and the counts to reach."""

from campaign import fits, interrupts, kills, models, space, tables
from campaign.runner import Part

PARTS = {
    part.name: part
    for part in (
        Part("fits", 10_000, fits.run, 20.0, "random fits"),
        Part("bytes", 10_000, models.run_bytes, 30.0, "model files with other bytes or other content"),
        Part("grammar", 500, models.run_grammar, 30.0, "model files that are generated"),
        Part("tables", 2_000, tables.run, 60.0, "CSV, Parquet and workbooks"),
        Part("kills", 300, kills.run, 60.0, "runs that are killed"),
        Part("space", 300, space.run, 60.0, "full disks and quotas"),
        Part("interrupts", 1_000, interrupts.run, 60.0, "fits that are interrupted"),
    )
}
