from kernelweave.papers.label_aware import COSTS, DELTAS, EPSILONS, METHODS, MULTIPLES, SETS
from kernelweave.papers.label_aware_widths import WIDTHS


def test_every_set_and_method_has_a_setting_of_the_grid():
    assert set(WIDTHS) == set(SETS)
    for settings in WIDTHS.values():
        assert set(settings) == set(METHODS)
        for method, (multiple, C, delta) in settings.items():
            assert multiple in MULTIPLES
            assert C in COSTS
            assert delta in (EPSILONS if method == "Label-aware kernel" else DELTAS)
