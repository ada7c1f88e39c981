"""The tables of the comparison: means and ranks, single sets beside tuned SVC, and rules of combining."""

import numpy as np
from splits import read_name

BARS = {
    "digit1": 2.2, "usps_ssl": 4.7, "coil2": 4.5, "bci": 33.0, "g241c": 17.5, "g241n": 17.5, "text_ssl": 24.5,
    "coil6": 12.0,
}  # fmt: skip
PEER = "SVC, tuned"
RULES_TEXT = (
    "Mean over sets of the error of each rule. Chosen without the set: to each set the rule is applied that has the "
    "lowest mean error over all other sets, whatever their number of labels; in brackets how often each was chosen."
)


def write_tables(results, file, about, rules, pools):
    errors = results["errors"]
    lines = ["# The learner that chooses and combines", "", about, ""]
    for labels, names in by_labels(errors).items():
        lines += [f"## Mean error and rank{labels}", "", *summary({name: errors[name] for name in names}), ""]
    lines += ["## By set", "", *by_set(errors), ""]
    lines += ["## Rules and pools", "", RULES_TEXT, "", *by_rule(results["auto"], rules, pools), ""]
    lines += [honesty(results), "", ", ".join(f"{key} {value}" for key, value in results["about"].items()) + ".", ""]
    file.write_text("\n".join(lines))


def by_labels(names):
    """Return {" with 20 labels": names of such sets}; the usual numbers of labels come first, under no words."""
    groups = {"": []}
    for name in names:
        n_labels = read_name(name)[1]
        groups.setdefault("" if n_labels is None else f" with {n_labels} labels", []).append(name)
    return {labels: found for labels, found in groups.items() if found}


def means(errors):
    """Return {(set, method): mean error} of methods that did not fail."""
    return {
        (name, method): float(np.mean([value for value, _ in draws.values()]))
        for name, methods in errors.items()
        for method, draws in methods.items()
        if all(value is not None for value, _ in draws.values())
    }


def summary(errors):
    mean = means(errors)
    methods = list(dict.fromkeys(method for _, method in mean))
    ranks = {method: [] for method in methods}
    for name in errors:
        here = {method: mean[name, method] for method in methods if (name, method) in mean}
        for method, value in here.items():
            ranks[method].append(1 + sum(other < value for other in here.values()))
    lines = ["| method | mean error | mean rank | sets | seconds of a fit |", "|---|---|---|---|---|"]
    for method in sorted(methods, key=lambda m: np.mean(ranks[m])):
        values = [mean[name, method] for name in errors if (name, method) in mean]
        seconds = np.mean([t for name in errors for _, t in errors[name].get(method, {}).values()])
        lines.append(
            f"| {method} | {np.mean(values):.2f} | {np.mean(ranks[method]):.1f} | {len(values)} | {seconds:.1f} |"
        )
    return lines


def by_set(errors):
    lines = [
        f"| set | draws | Auto | {PEER} | difference (standard error) | best single | bar |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, methods in errors.items():
        auto, peer = methods.get("Auto", {}), methods.get(PEER, {})
        pairs = np.array([auto[s][0] - peer[s][0] for s in auto if s in peer and peer[s][0] is not None])
        deviation = pairs.std(ddof=1) / np.sqrt(len(pairs)) if len(pairs) > 1 else np.nan
        mean = {
            m: np.mean([v for v, _ in d.values()])
            for m, d in methods.items()
            if all(v is not None for v, _ in d.values())
        }
        best = min((m for m in mean if m != "Auto"), key=mean.get)
        difference = f"{pairs.mean():+.2f} ({deviation:.2f})" if len(pairs) else ""
        lines.append(
            f"| {name} | {len(auto)} | {mean.get('Auto', np.nan):.2f} | {mean.get(PEER, np.nan):.2f} | {difference} | "
            f"{mean[best]:.2f} {best} | {BARS.get(name, '')} |"
        )
    return lines


def by_rule(auto, rules, pools):
    """Return a row for each pool, number of repeats and number of labels."""
    lines = [
        "| pool | repeats | sets | " + " | ".join(rules) + " | chosen without the set |",
        "|---" * (len(rules) + 4) + "|",
    ]
    for pool in pools:
        for repeats in sorted(
            {n for draws in auto.values() for one in draws.values() for n in one["rules"].get(pool, ())}
        ):
            mean = rule_means(auto, pool, repeats, rules)
            chosen = choose_without(mean)
            groups = by_labels(mean)
            for labels, names in groups.items() if len(groups) == 1 else {**groups, " in all": list(mean)}.items():
                row = [f"{np.mean([mean[name][rule] for name in names]):.2f}" for rule in rules]
                error = f"{np.mean([mean[name][chosen[name]] for name in names]):.2f}" if chosen else ""
                times = {rule: sum(chosen[name] == rule for name in names) for rule in rules} if chosen else {}
                often = "; ".join(f"{rule}: {n}" for rule, n in times.items() if n)
                row.append(f"{error} ({often})" if chosen else "")
                lines.append(f"| {pool} | {repeats} | {len(names)}{labels} | " + " | ".join(row) + " |")
    return lines


def rule_means(auto, pool, repeats, rules):
    """Return {set: {rule: mean error over the draws}}; draws that lack one of the rules do not count."""
    cells = {
        name: [one["rules"].get(pool, {}).get(repeats, {}) for one in draws.values()] for name, draws in auto.items()
    }
    cells = {name: [cell for cell in found if set(rules) <= set(cell)] for name, found in cells.items()}
    return {
        name: {rule: float(np.mean([cell[rule] for cell in found])) for rule in rules}
        for name, found in cells.items()
        if found
    }


def choose_without(mean):
    """Return {set: the rule with the lowest mean error over all other data sets}; nothing where there is only one."""
    base = {name: read_name(name)[0] for name in mean}
    if len(set(base.values())) < 2:
        return {}
    chosen = {}
    for name in mean:
        others = [errors for other, errors in mean.items() if base[other] != base[name]]
        chosen[name] = min(mean[name], key=lambda rule: np.mean([errors[rule] for errors in others]))
    return chosen


def honesty(results):
    """Return a sentence on the stated errors beside those on the unlabelled rows."""
    pairs = [
        (details["stated"], results["errors"][name]["Auto"][seed][0])
        for name, draws in results["auto"].items()
        for seed, details in draws.items()
        if details["stated"] is not None
    ]
    bias = np.mean([stated[0] - true for stated, true in pairs])
    covered = np.mean([stated[1] <= true <= stated[2] for stated, true in pairs])
    return (
        f"Stated errors less those on unlabelled rows: {bias:+.2f} points on average over {len(pairs)} cells; "
        f"{covered:.0%} of the 95 % intervals hold the error on unlabelled rows."
    )
