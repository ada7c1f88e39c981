"""Rules that weigh members by what they say about held-out rows, and pools of members."""

import numpy as np

from kernelweave.estimators.auto.combine import stack_classes
from kernelweave.estimators.auto.members import scale_out_of_fold
from kernelweave.model_selection.scaling import log_probabilities


def stack(prior_rows):
    return lambda logs: (
        stack_classes(np.exp(logs), np.ones(logs.shape[1]), np.full(len(logs), 1 / len(logs)), prior_rows).x
    )


def exponential(temperature):
    def weigh(logs):
        score = logs.sum(axis=1) / temperature
        weights = np.exp(score - score.max())
        return weights / weights.sum()

    return weigh


RULES = {
    "equal": lambda logs: np.full(len(logs), 1 / len(logs)),
    "best": lambda logs: np.eye(len(logs))[logs.sum(axis=1).argmax()],
    "stack, 1 row": stack(1.0),
    "stack, 4 rows": stack(4.0),
    "stack, 16 rows": stack(16.0),
    "exp, t = 2": exponential(2.0),
    "exp, t = 4": exponential(4.0),
}
SCIKIT_LEARN = ("logistic regression", "random forest", "gradient boosting")
FEW = ("MKL", "LapSVM", "LearnedKernel", "TSVM", "logistic regression", "random forest")
POOLS = {
    "all": lambda name: True,
    "kernels": lambda name: name not in SCIKIT_LEARN,
    "six": lambda name: name in FEW,
    "scikit-learn": lambda name: name in SCIKIT_LEARN,
}
REPEATS = {"1": 1, "2": 2}


def rule_errors(trials, combination, values, sample, codes):
    """Return {pool: {repeats: {rule: error in %}}} on unlabelled rows, whose outputs by trial are `values`."""
    tested, n_labeled = combination.tested, sample.partition.n_labeled
    out = {}
    for repeats, n in REPEATS.items():
        logs, probabilities = {}, {}
        for k in combination.logs:
            held = trials[k].values[: 5 * n]
            decision = np.zeros((n_labeled, *held[0][1].shape[1:]))
            times = np.zeros(n_labeled)
            for rows, found in held:
                decision[rows] += found
                times[rows] += 1
            decision = (decision[tested.places].T / times[tested.places]).T
            choice, each = scale_out_of_fold(decision, combination.codes, tested.weight, tested.parts)
            logs[k] = each[np.arange(len(each)), combination.codes]
            probabilities[k] = np.exp(log_probabilities(choice.scaling(values[k])))
        for pool, is_in in POOLS.items():
            members = [k for k in logs if is_in(trials[k].candidate.name)]
            if members:
                stacked = np.array([logs[k] for k in members])
                mixed = {
                    rule: np.tensordot(weigh(stacked), np.array([probabilities[k] for k in members]), axes=1)
                    for rule, weigh in RULES.items()
                }
                out.setdefault(pool, {})[repeats] = {
                    rule: round(100.0 * float(np.mean(each.argmax(axis=1) != codes)), 3) for rule, each in mixed.items()
                }
    return out
