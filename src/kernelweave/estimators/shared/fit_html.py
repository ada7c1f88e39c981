"""What was learned, as HTML below scikit-learn's diagram of a fitted estimator; everything foreign is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ...solvers.result import Certificate, Status
from .records import html_table

MAX_KERNELS = 10  # of the largest share
STYLE = """
.kernelweave-fit {font-family: sans-serif; font-size: 13px; line-height: 1.4; margin: 0.5em 0; max-width: 60em;
  color: inherit;}
.kernelweave-fit summary {cursor: pointer; font-weight: 600;}
.kernelweave-fit p {margin: 0.3em 0 0.3em 1.1em;}
.kernelweave-fit .kernelweave-scroll {overflow-x: auto; margin: 0.3em 0 0.6em 1.1em;}
.kernelweave-fit table {border-collapse: collapse; margin: 0; font: inherit; white-space: nowrap;}
.kernelweave-fit th, .kernelweave-fit td {padding: 0.15em 0.7em 0.15em 0; border: 0; background: none; color: inherit;
  vertical-align: top;}
.kernelweave-fit thead th {border-bottom: 1px solid currentColor;}
"""
LISTS = (("kernel_usage_", "share"), ("kernel_weights_", "weight"), ("base_kernels_", "weight"))


def describe_fit(attributes: Mapping[str, Any], status: Status) -> str:
    """Return status, certificate, kernels with their weights and members of a fit.

    Parameters
    ----------
    attributes : mapping from names to values
        The fitted attributes of an estimator; those that it has not are left out.
    status : Status
    """
    parts = [f"<p>{escape(status.value)}</p>"]
    certificate: Certificate | None = attributes.get("certificate_")
    if certificate is not None:
        parts.append(f"<p>Certificate: {escape(str(certificate))}.</p>")
    if attributes.get("error_") is not None:
        parts.append(f"<p>Error: {escape(str(attributes['error_']))}.</p>")
    if attributes.get("unlabeled_helped_") is not None:
        parts.append(f"<p>{escape(str(attributes['unlabeled_helped_']).capitalize())}.</p>")
    members = attributes.get("members_", ())
    if members:
        parts.append(_list_largest([{"member": each.name, "weight": each.weight} for each in members], "weight"))
    if "learner_" in attributes:
        attributes = {"base_kernels_": attributes["learner_"].base_kernels_, **attributes}
    name, key = next(((name, key) for name, key in LISTS if attributes.get(name)), ("", ""))
    if name:
        parts.append(_list_largest(attributes[name], key))
    sources = attributes.get("source_weights_", {})
    if len(sources) > 1:
        records = [{"source": source, "weight": weight} for source, weight in sources.items()]
        parts.append(_list_largest(records, "weight"))
    body = "".join(parts)
    return (
        f'<div class="kernelweave-fit"><style>{STYLE}</style><details open><summary>Fit</summary>{body}</details></div>'
    )


def _list_largest(records: Sequence[Mapping[str, Any]], key: str) -> str:
    """Return a table of the records with the largest values, and how many there are of the others."""
    used = sorted((record for record in records if record[key] > 0), key=lambda record: -record[key])
    shown, n_more, n_unused = used[:MAX_KERNELS], len(used) - MAX_KERNELS, len(records) - len(used)
    notes = [f"{n_more} more" if n_more > 0 else "", f"{n_unused} others without {key}" if n_unused else ""]
    more = f"<p>{' and '.join(filter(None, notes))}</p>" if any(notes) else ""
    return f'<div class="kernelweave-scroll">{html_table(shown)}</div>{more}'
