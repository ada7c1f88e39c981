from kernelweave.papers.label_aware import COSTS, DELTAS, METHODS, MULTIPLES, SETS
from kernelweave.papers.label_aware_widths import WIDTHS


def test_every_set_and_method_has_a_setting_of_the_grid():
    assert set(WIDTHS) == set(SETS)
    for settings in WIDTHS.values():
        assert set(settings) == set(METHODS)
        for multiple, C, delta in settings.values():
            assert multiple in MULTIPLES
            assert C in COSTS
            assert delta in DELTAS
