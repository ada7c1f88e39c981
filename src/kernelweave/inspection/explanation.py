"""What a prediction is made of: plain arrays with names, and tables of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.shared.records import Records, make_frame
from ..short_text import count_of, cut_text

INTERCEPT = "(intercept)"
OTHERS = "(other rows)"


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What kernels, sources and training rows add to the decision values of some rows.

    For each row and output, ``by_kernel`` summed over kernels, or ``by_source`` summed over sources, or
    ``by_training_row`` and ``rest`` summed over training rows and sources, is ``decision`` less ``intercept``.

    Attributes
    ----------
    outputs : ndarray of shape (n_outputs,)
        Classes; of two the second one, for which positive values speak; ``"inlier"``; ``"prediction"``, or numbers
        from 0, where numbers are predicted.
    decision : ndarray of shape (n_rows, n_outputs)
        The values that are explained.
    quantity : {"decision value", "probability", "prediction"}
        What they are.
    intercept : ndarray of shape (n_outputs,)
        What is added for every row.
    kernels, kernel_sources : tuple of str
        Names and sources of the kernels that the model uses.
    by_kernel : ndarray of shape (n_rows, n_kernels, n_outputs)
        What each kernel adds.
    sources : tuple of str
        The sources of the kernels, each once.
    by_source : ndarray of shape (n_rows, n_sources, n_outputs)
        What the kernels of each source add.
    training_rows : ndarray of shape (n_rows, n_kept, n_outputs)
        Numbers of the training rows that add most, by absolute value, the first first.
    by_training_row : ndarray of shape (n_rows, n_kept, n_sources, n_outputs)
        What these add, summed over the kernels of a source.
    rest : ndarray of shape (n_rows, n_sources, n_outputs)
        What all others add, and kernels whose training rows are not known.
    undivided : tuple of str
        Names of these kernels.
    """

    outputs: np.ndarray
    decision: np.ndarray
    intercept: np.ndarray
    kernels: tuple[str, ...]
    kernel_sources: tuple[str, ...]
    by_kernel: np.ndarray
    sources: tuple[str, ...]
    by_source: np.ndarray
    training_rows: np.ndarray
    by_training_row: np.ndarray
    rest: np.ndarray
    undivided: tuple[str, ...] = ()
    quantity: str = "decision value"

    def to_frame(self, by: str = "kernel") -> Any:
        """Return a pandas frame with one line for each row, output and kernel, source or training row.

        Parameters
        ----------
        by : {"kernel", "source", "training_row"}, default="kernel"
            What has a line of its own.

        Returns
        -------
        pandas.DataFrame
            With the columns ``row``, ``output``, the one that ``by`` names (and ``source`` beside kernels), and
            ``contribution``. The contributions of a row and an output sum to its decision value.
        """
        if by not in ("kernel", "source", "training_row"):
            raise ValueError(f'to_frame got by={cut_text(repr(by))}; expected "kernel", "source" or "training_row".')
        records: list[dict[str, Any]] = []
        for i, k in np.ndindex(*self.decision.shape):
            start = {"row": i, "output": self.outputs[k]}
            if by == "training_row":
                for row, value in zip(self.training_rows[i, :, k], self.by_training_row[i, :, :, k], strict=True):
                    records.append({**start, by: int(row), "contribution": float(value.sum())})
                records.append({**start, by: OTHERS, "contribution": float(self.rest[i, :, k].sum())})
            elif by == "source":
                for source, value in zip(self.sources, self.by_source[i, :, k], strict=True):
                    records.append({**start, by: source, "contribution": float(value)})
            else:
                named = zip(self.kernels, self.kernel_sources, self.by_kernel[i, :, k], strict=True)
                for kernel, source, value in named:
                    records.append({**start, by: kernel, "source": source, "contribution": float(value)})
            end = {"source": ""} if by == "kernel" else {}
            records.append({**start, by: INTERCEPT, **end, "contribution": float(self.intercept[k])})
        return make_frame(records)

    def rows(self, i: int, n: int = 5, output: Any = None) -> Records:
        """Return the training rows that add most to one row.

        Parameters
        ----------
        i : int
            Place of the row among those explained.
        n : int, default=5
            How many at most; those that add nothing are left out.
        output : class or name, optional
            One of ``outputs``; by default the one of the largest value.

        Returns
        -------
        list of dict, with a method ``to_frame``
            ``row`` (its number in the training sample), ``contribution`` and, where there are several sources, what
            each of them adds.
        """
        i, k = read_row(i, len(self.decision)), self.output_place(i, output)
        records = Records()
        for row, parts in list(zip(self.training_rows[i, :, k], self.by_training_row[i, :, :, k], strict=True))[:n]:
            if parts.any():
                by_source = {f"from {name}": float(part) for name, part in zip(self.sources, parts, strict=True)}
                record = {"row": int(row), "contribution": float(parts.sum())}
                records.append(record | (by_source if len(self.sources) > 1 else {}))
        return records

    def output_place(self, i: int, output: Any = None) -> int:
        """Return the place of an output among ``outputs``.

        Parameters
        ----------
        i : int
            Place of the row among those explained.
        output : class or name, optional
            One of ``outputs``; by default the one of the largest value.

        Returns
        -------
        int
            From 0 on.
        """
        if output is None:
            return int(self.decision[i].argmax())
        places = [k for k, name in enumerate(self.outputs.tolist()) if name == output]
        if not places:
            shown = ", ".join(map(repr, self.outputs.tolist()[:10]))
            raise ValueError(f"The explanation has no output {output!r}; it has {shown}.")
        return places[0]

    def _repr_html_(self) -> str:
        records = Records()
        for i, k in np.ndindex(*self.decision.shape):
            sums = {cut_text(name, 40): float(self.by_source[i, s, k]) for s, name in enumerate(self.sources)}
            about = {"row": i, "output": self.outputs[k], "decision": float(self.decision[i, k])}
            records.append(about | sums | {INTERCEPT: float(self.intercept[k])})
        return records._repr_html_()

    def __repr__(self) -> str:
        n_rows, n_outputs = self.decision.shape
        return (
            f"<Explanation of {count_of(n_rows, 'row')} and {count_of(n_outputs, 'output')}: "
            f"{count_of(len(self.kernels), 'kernel')}, {count_of(len(self.sources), 'source')}, "
            f"{count_of(self.training_rows.shape[1], 'training row')} for each>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class CombinedExplanation:
    """What the members of a combination add to its predictions, and what these are made of.

    Attributes
    ----------
    outputs : ndarray of shape (n_outputs,)
        Classes, or ``"prediction"``.
    decision : ndarray of shape (n_rows, n_outputs)
        Probabilities of the classes, or the predicted number.
    members : tuple of str
        Names of the models in the combination.
    weights : ndarray of shape (n_members,)
        Their weights.
    by_member : ndarray of shape (n_rows, n_members, n_outputs)
        Summed over the members they are ``decision``.
    shares : ndarray of shape (n_rows, n_members)
        Of the members in the probability of the predicted class; for numbers, the weights.
    explanations : dict of Explanation
        Of each member whose prediction is a sum over training rows, by name.
    refused : dict of str
        Why the others have none, by name.
    """

    outputs: np.ndarray
    decision: np.ndarray
    members: tuple[str, ...]
    weights: np.ndarray
    by_member: np.ndarray
    shares: np.ndarray
    explanations: Mapping[str, Explanation]
    refused: Mapping[str, str]

    def to_frame(self, by: str = "member") -> Any:
        """Return a pandas frame with one line for each row, output and member.

        Parameters
        ----------
        by : {"member", "kernel", "source", "training_row"}, default="member"
            All but the first: the frames of ``explanations`` with the column ``member`` before the others.

        Returns
        -------
        pandas.DataFrame
            With the columns ``row``, ``output``, ``member`` and ``contribution``; or as :meth:`Explanation.to_frame`.
        """
        if by == "member":
            return make_frame(
                {"row": i, "output": self.outputs[k], "member": name, "contribution": float(self.by_member[i, m, k])}
                for i, k in np.ndindex(*self.decision.shape)
                for m, name in enumerate(self.members)
            )
        frames = [frame.assign(member=name) for name, frame in self._frames(by)]
        records = [record for frame in frames for record in frame.to_dict("records")]
        return make_frame({"member": record["member"], **record} for record in records)

    def rows(self, i: int, n: int = 5, output: Any = None) -> Records:
        """Return the training rows that add most to one row, for the heaviest member that is explained.

        Parameters
        ----------
        i : int
            Place of the row among those explained.
        n : int, default=5
            How many at most; those that add nothing are left out.
        output : class or name, optional
            One of ``outputs``; by default the one of the largest value.

        Returns
        -------
        list of dict, with a method ``to_frame``
            As :meth:`Explanation.rows`, with ``member`` first.
        """
        name = self.heaviest(i)
        return Records({"member": name, **record} for record in self.explanations[name].rows(i, n, output))

    def heaviest(self, i: int) -> str:
        """Return the explained member with the largest share in the prediction of a row.

        Parameters
        ----------
        i : int
            Place of the row among those explained.

        Returns
        -------
        str
            The name of the member.
        """
        i = read_row(i, len(self.decision))
        explained = [m for m, name in enumerate(self.members) if name in self.explanations]
        if not explained:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.refused.items())
            raise ValueError(f"No member of this combination is a sum over training rows. {reasons}")
        return self.members[max(explained, key=lambda m: self.shares[i, m])]

    def _frames(self, by: str) -> list[tuple[str, Any]]:
        return [(name, explanation.to_frame(by)) for name, explanation in self.explanations.items()]

    def _repr_html_(self) -> str:
        records = Records()
        for i, values in enumerate(self.decision):
            k = int(values.argmax())
            sums = {name: float(self.by_member[i, m, k]) for m, name in enumerate(self.members)}
            records.append({"row": i, "output": self.outputs[k], "decision": float(values[k])} | sums)
        return records._repr_html_()

    def __repr__(self) -> str:
        n_rows = len(self.decision)
        return (
            f"<CombinedExplanation of {count_of(n_rows, 'row')}: {count_of(len(self.members), 'member')}, "
            f"of which {len(self.explanations)} explained>"
        )


def read_row(i: Any, n_rows: int) -> int:
    """Return the place of a row; refuse one that there is not."""
    if not isinstance(i, int | np.integer) or isinstance(i, bool) or not -n_rows <= i < n_rows:
        raise ValueError(f"There is no row {i!r} among the {n_rows} explained; expected 0 to {n_rows - 1}.")
    return int(i) % n_rows
