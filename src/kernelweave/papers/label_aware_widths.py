"""Settings of LabelAware's Table 1: (multiple of gamma, C, delta or epsilon) with the lowest mean error.

Made by benchmarks/label_aware/widths.py.
"""

WIDTHS: dict[str, dict[str, tuple[float, float, float]]] = {
    "Digit1": {
        "Spectral graph kernel": (10.0, 100.0, 1.0),
        "Label-aware kernel": (10.0, 1.0, 1.0),
        "Cluster kernel": (5.0, 1.0, 1.0),
        "Diffusion kernel": (10.0, 10.0, 0.1),
        "Max-alignment kernel": (5.0, 1.0, 1.0),
    },
    "USPS": {
        "Spectral graph kernel": (5.0, 100.0, 1.0),
        "Label-aware kernel": (10.0, 1.0, 0.0),
        "Cluster kernel": (5.0, 1.0, 1.0),
        "Diffusion kernel": (10.0, 100.0, 0.1),
        "Max-alignment kernel": (1.0, 1.0, 1.0),
    },
    "COIL2": {
        "Spectral graph kernel": (1.0, 100.0, 1.0),
        "Label-aware kernel": (10.0, 100.0, 0.1),
        "Cluster kernel": (1.0, 100.0, 1.0),
        "Diffusion kernel": (10.0, 10.0, 0.1),
        "Max-alignment kernel": (5.0, 1.0, 1.0),
    },
    "BSI": {
        "Spectral graph kernel": (0.1, 10.0, 1.0),
        "Label-aware kernel": (0.1, 100.0, 1.0),
        "Cluster kernel": (1.0, 10.0, 1.0),
        "Diffusion kernel": (0.1, 10.0, 1.0),
        "Max-alignment kernel": (0.1, 10.0, 1.0),
    },
    "COIL": {
        "Spectral graph kernel": (1.0, 100.0, 1.0),
        "Label-aware kernel": (1.0, 100.0, 0.0),
        "Cluster kernel": (1.0, 100.0, 1.0),
        "Diffusion kernel": (5.0, 100.0, 0.1),
        "Max-alignment kernel": (1.0, 100.0, 1.0),
    },
    "g241n": {
        "Spectral graph kernel": (1.0, 1.0, 1.0),
        "Label-aware kernel": (0.2, 1.0, 0.001),
        "Cluster kernel": (5.0, 10.0, 1.0),
        "Diffusion kernel": (5.0, 10.0, 1.0),
        "Max-alignment kernel": (5.0, 1.0, 1.0),
    },
    "Text": {
        "Spectral graph kernel": (0.2, 1.0, 1.0),
        "Label-aware kernel": (0.2, 1.0, 0.0),
        "Cluster kernel": (10.0, 100.0, 1.0),
        "Diffusion kernel": (10.0, 100.0, 0.1),
        "Max-alignment kernel": (0.2, 1.0, 1.0),
    },
    "usps38": {
        "Spectral graph kernel": (1.0, 10.0, 1.0),
        "Label-aware kernel": (10.0, 1.0, 0.0),
        "Cluster kernel": (1.0, 1.0, 1.0),
        "Diffusion kernel": (5.0, 10.0, 0.1),
        "Max-alignment kernel": (1.0, 1.0, 1.0),
    },
    "usps49": {
        "Spectral graph kernel": (1.0, 10.0, 1.0),
        "Label-aware kernel": (1.0, 100.0, 1.0),
        "Cluster kernel": (1.0, 1.0, 1.0),
        "Diffusion kernel": (1.0, 10.0, 0.1),
        "Max-alignment kernel": (0.2, 1.0, 1.0),
    },
    "usps56": {
        "Spectral graph kernel": (5.0, 10.0, 1.0),
        "Label-aware kernel": (5.0, 10.0, 0.001),
        "Cluster kernel": (1.0, 1.0, 1.0),
        "Diffusion kernel": (5.0, 10.0, 0.1),
        "Max-alignment kernel": (1.0, 1.0, 1.0),
    },
    "usps27": {
        "Spectral graph kernel": (1.0, 100.0, 1.0),
        "Label-aware kernel": (1.0, 1.0, 0.001),
        "Cluster kernel": (1.0, 10.0, 1.0),
        "Diffusion kernel": (5.0, 10.0, 0.1),
        "Max-alignment kernel": (1.0, 1.0, 1.0),
    },
    "odd/even": {
        "Spectral graph kernel": (5.0, 10.0, 1.0),
        "Label-aware kernel": (1.0, 10.0, 1.0),
        "Cluster kernel": (1.0, 1.0, 1.0),
        "Diffusion kernel": (5.0, 100.0, 0.1),
        "Max-alignment kernel": (0.2, 1.0, 1.0),
    },
}
