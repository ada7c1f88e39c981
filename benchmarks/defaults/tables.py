"""The tables of the comparison: means, ranks, single sets, and what changed between two states of the code."""

import numpy as np
from data import OTHERS, TABLES

GROUPS = {"tables": TABLES, "other sets": OTHERS}


def write_tables(results, file, about):
    lines = ["# Defaults", "", about, ""]
    for task, title in (("classes", "Classes: error in %"), ("numbers", "Numbers: rmse / standard deviation")):
        phases = [phase for phase in ("before", "after") if task in results.get(phase, {})]
        phases += [phase for phase in results if phase not in ("before", "after") and task in results[phase]]
        for phase in phases:
            means = set_means(results[phase][task])
            groups = GROUPS if task == "classes" else {"all sets": tuple(results[phase][task])}
            where = ", ".join(f"{key} {value}" for key, value in results[phase]["about"][task].items())
            lines += [f"## {title}, {phase}", "", *summary(means, groups), "", *by_set(means), "", where + ".", ""]
        if {"before", "after"} <= set(phases):
            lines += [f"## {title}: changes", "", *changes(results["before"][task], results["after"][task]), ""]
    file.write_text("\n".join(lines))


def set_means(errors):
    """Return {(set, method, n_labels): mean error} of cells with all their draws."""
    return {
        (name, method, int(n)): float(np.mean([value for value, _ in draws.values()]))
        for name, methods in errors.items()
        for method, by_labels in methods.items()
        for n, draws in by_labels.items()
        if all(value is not None for value, _ in draws.values())
    }


def summary(means, groups):
    """Return a table of the methods: mean error by group of sets and number of labels, and mean rank."""
    methods = list(dict.fromkeys(method for _, method, _ in means))
    numbers = sorted({n for _, _, n in means})
    head = [f"{group}, {n}" for group in groups for n in numbers]
    lines = ["| method | " + " | ".join(head) + " | mean rank |", "|---" * (len(head) + 2) + "|"]
    ranks = mean_ranks(means, methods)
    for method in sorted(methods, key=lambda m: ranks[m]):
        cells = []
        for names in groups.values():
            for n in numbers:
                present = [means[name, method, n] for name in names if (name, method, n) in means]
                complete = len(present) == sum(any(key[0] == name and key[2] == n for key in means) for name in names)
                cells.append(shown(np.mean(present)) + ("" if complete else " *") if present else "")
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {ranks[method]:.1f} |")
    return lines


def shown(value):
    return f"{value:.1f}" if value > 2.0 else f"{value:.3f}"


def mean_ranks(means, methods):
    """Return the mean rank of each method over the sets and numbers of labels that it was measured on."""
    ranks = {method: [] for method in methods}
    for name, n in dict.fromkeys((name, n) for name, _, n in means):
        here = {method: means[name, method, n] for method in methods if (name, method, n) in means}
        for method, value in here.items():
            ranks[method].append(1 + sum(other < value for other in here.values()))
    return {method: float(np.mean(values)) for method, values in ranks.items()}


def by_set(means):
    """Return a table of all sets and methods, the mean over the numbers of labels."""
    methods = list(dict.fromkeys(method for _, method, _ in means))
    lines = ["| set | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for name in dict.fromkeys(name for name, _, _ in means):
        row = [[value for (s, m, _), value in means.items() if (s, m) == (name, method)] for method in methods]
        lines.append(f"| {name} | " + " | ".join(shown(np.mean(r)) if r else "" for r in row) + " |")
    return lines


def changes(before, after):
    """Return a table of the methods: mean change, and the sets where it is worse by more than two standard errors."""
    lines = ["| method | mean change | sets worse by more than two standard errors |", "|---|---|---|"]
    methods = dict.fromkeys(m for name in after for m in after[name] if m in before.get(name, {}))
    for method in methods:
        by_name = {}
        for name in after:
            pairs = paired(before.get(name, {}).get(method, {}), after[name].get(method, {}))
            if len(pairs):
                by_name[name] = (pairs.mean(), pairs.std(ddof=1) / np.sqrt(len(pairs)) if len(pairs) > 1 else np.nan)
        worse = [f"{name} +{mean:.2f} ({se:.2f})" for name, (mean, se) in by_name.items() if mean > 2 * se]
        mean = np.mean([mean for mean, _ in by_name.values()])
        lines.append(f"| {method} | {mean:+.2f} | {', '.join(worse)} |")
    return lines


def paired(before, after):
    """Return the differences of the draws, each the mean over the numbers of labels."""
    seeds = set.intersection(*(set(before.get(n, {})) & set(after[n]) for n in after)) if after else set()
    differences = [
        [after[n][seed][0] - before[n][seed][0] for n in after if None not in (after[n][seed][0], before[n][seed][0])]
        for seed in sorted(seeds)
    ]
    return np.array([np.mean(d) for d in differences if d])
