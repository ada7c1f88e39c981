"""The tables of the comparison: means and ranks, single sets beside tuned SVC, and rules of combining."""

import numpy as np

BARS = {
    "digit1": 2.2, "usps_ssl": 4.7, "coil2": 4.5, "bci": 33.0, "g241c": 17.5, "g241n": 17.5, "text_ssl": 24.5,
    "coil6": 12.0,
}  # fmt: skip
PEER = "SVC, tuned"


def write_tables(results, file, about, rules, pools):
    errors = results["errors"]
    lines = ["# The learner that chooses and combines", "", about, ""]
    lines += ["## Mean error and rank", "", *summary(errors), ""]
    lines += ["## By set", "", *by_set(errors), ""]
    lines += ["## Rules and pools: mean error over all cells", "", *by_rule(results["auto"], rules, pools), ""]
    lines += [honesty(results), "", ", ".join(f"{key} {value}" for key, value in results["about"].items()) + ".", ""]
    file.write_text("\n".join(lines))


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
    lines = ["| pool, repeats | " + " | ".join(rules) + " |", "|---" * (len(rules) + 1) + "|"]
    for pool in pools:
        for repeats in ("1", "2"):
            cells = [
                draws["rules"][pool][repeats]
                for by_seed in auto.values()
                for draws in by_seed.values()
                if repeats in draws["rules"].get(pool, {})
            ]
            if cells:
                row = [f"{np.mean([cell[rule] for cell in cells]):.2f}" for rule in rules]
                lines.append(f"| {pool}, {repeats} | " + " | ".join(row) + " |")
    return lines


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
