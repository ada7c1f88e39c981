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
    "stack, 2 rows": stack(2.0),  # the default
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


def rule_errors(trials, combination, values, sample, codes, n_repeats):
    """Return {pool: {repeats: {rule: error in %}}} on unlabelled rows, whose outputs by trial are `values`.

    Where too few rows could be held out, all rules give equal weights.
    """
    out = {}
    for n in sorted({1, n_repeats}):
        logs, probabilities = {}, {}
        for k in range(len(trials)) if not combination.logs else combination.logs:
            scaling, logs[k] = scale_trial(trials[k], combination, sample.partition.n_labeled, n)
            scaling = combination.scalings[k] if scaling is None else scaling
            probabilities[k] = np.exp(log_probabilities(scaling(values[k])))
        for pool, is_in in POOLS.items():
            members = [k for k in logs if is_in(trials[k].candidate.name)]
            if members:
                stacked = np.array([probabilities[k] for k in members])
                weights = weigh_members([logs[k] for k in members])
                mixed = {rule: np.tensordot(each, stacked, axes=1) for rule, each in weights.items()}
                out.setdefault(pool, {})[str(n)] = {
                    rule: round(100.0 * float(np.mean(each.argmax(axis=1) != codes)), 3) for rule, each in mixed.items()
                }
    return out


def scale_trial(trial, combination, n_labeled, n_repeats):
    """Return a trial's scaling and the log probabilities of held-out rows by some repeats; None, None without such."""
    if not combination.logs:
        return None, None
    tested, decision, times = combination.tested, None, np.zeros(n_labeled, dtype=int)
    for rows, found in trial.values:
        if times[rows].max() == n_repeats:  # the next repeat begins
            break
        decision = np.zeros((n_labeled, *found.shape[1:])) if decision is None else decision
        decision[rows] += found
        times[rows] += 1
    decision = (decision[tested.places].T / times[tested.places]).T
    choice, each = scale_out_of_fold(decision, combination.codes, tested.weight, tested.parts)
    return choice.scaling, each[np.arange(len(each)), combination.codes]


def weigh_members(logs):
    """Return {rule: weights} from log probabilities of held-out rows, or from nothing."""
    if logs[0] is None:
        return dict.fromkeys(RULES, RULES["equal"](logs))
    return {rule: weigh(np.array(logs)) for rule, weigh in RULES.items()}
