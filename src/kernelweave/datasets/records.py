"""The table of the stored sets: what each one is, where it comes from, what to mind, and the checksum it must have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_wine

from .archives import Arrays
from .openml import OpenML

__all__ = ["STORED", "Dataset", "Stored"]


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """What is known of a set before it is loaded.

    Parameters
    ----------
    name : str
        What :func:`load` takes.
    n_rows, n_columns : int
        Shape of the data.
    class_counts : tuple of int, default=()
        Rows of each class, in the order of the sorted classes; empty in regression.
    origin : str
        Where it comes from.
    note : str, default=""
        What to mind.
    target_names : tuple of str, default=("-1", "+1")
        Name of each class, or of each target in regression.

    See Also
    --------
    list_datasets : The records of all sets.
    load : Loads one of them.

    Examples
    --------
    >>> from kernelweave.datasets import list_datasets
    >>> record = next(record for record in list_datasets() if record.name == "wine")
    >>> record.n_rows, record.n_columns, record.n_classes, record.task
    (178, 13, 3, 'classification')
    """

    name: str
    n_rows: int
    n_columns: int
    class_counts: tuple[int, ...] = field(default=(), repr=False)
    origin: str
    note: str = field(default="", repr=False)
    target_names: tuple[str, ...] = field(default=("-1", "+1"), repr=False)

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 in regression."""
        return len(self.class_counts)

    @property
    def task(self) -> str:
        """Either "classification" or "regression"."""
        return "classification" if self.class_counts else "regression"

    @property
    def description(self) -> str:
        """Shape, classes, origin and what to mind, in a few lines."""
        codes = ("-1", "+1") if self.n_classes == 2 else tuple(map(str, range(self.n_classes)))
        classes = ", ".join(
            f"{code}: {count}" if name == code else f"{code} ({name}): {count}"
            for code, name, count in zip(codes, self.target_names, self.class_counts, strict=False)
        )
        content = f"classes {classes}" if classes else f"targets {', '.join(self.target_names)}"
        lines = [f"{self.name}: {self.n_rows} rows, {self.n_columns} columns; {content}", self.origin, self.note]
        return "\n".join(filter(None, lines))


@dataclass(frozen=True, kw_only=True)
class Stored(Dataset):
    """A set that is an archive: its checksum, and who else has it.

    Attributes
    ----------
    checksum : str
        That of :func:`~kernelweave.datasets.archives.checksum`.
    openml : OpenML or None
        Where it can be downloaded.
    bundled : callable or None
        Gives its arrays where scikit-learn brings it along.
    """

    checksum: str = field(repr=False)
    openml: OpenML | None = field(default=None, repr=False)
    bundled: Callable[[], Arrays] | None = field(default=None, repr=False)


BOOK = 'Benchmark of the book "Semi-Supervised Learning" (Chapelle, Schoelkopf, Zien, MIT Press 2006)'
LDS = "Chapelle and Zien, Semi-supervised classification by low density separation, AISTATS 2005"
SINDHWANI = "WebKB pages, course or not, in the form of Sindhwani, Niyogi and Belkin, ICML 2005"
UCI = "UCI Machine Learning Repository"
BOOK_SPLITS = "Original splits: 12 of 10 labels and 12 of 100."
LDS_SPLITS = "Original splits: 10 of 50 labels."
NO_SPLITS = "The original splits were not found."
UNIT_ROWS = "Rows are sparse and have length 1."
WIFI_UNITS = "Targets in metres. Signal strengths in dBm, where 0 means not heard: set it to about -100."
WIFI_TERMS = "Terms of the source: for science, not for commerce; cite also Xu et al., TKDE 2017."
DIGITS = tuple("0123456789")


def _wine() -> Arrays:
    X, y = load_wine(return_X_y=True)
    return {"X": X, "y": y}


def _mnist_rows() -> NDArray[np.intp]:
    return np.random.default_rng(0).permutation(60000)[:14000]


_SETS = (
    Stored(
        name="digit1",
        n_rows=1500,
        n_columns=241,
        class_counts=(766, 734),
        origin=f"{BOOK}, set 1.",
        note=f"{BOOK_SPLITS} Images of a synthetic digit 1 on a manifold of few dimensions.",
        checksum="e10b34b5f42802a8d899cfaeff50399742c6dfa544af0f8c127d8d7ebd52c159",
    ),
    Stored(
        name="usps_ssl",
        n_rows=1500,
        n_columns=241,
        class_counts=(1200, 300),
        origin=f"{BOOK}, set 2.",
        note=f"{BOOK_SPLITS} Digits 2 and 5 against the rest, 1 to 4: labels drawn class by class misstate the share.",
        checksum="999d1642c702298edf54f6168af892b2259ea238b8a474f1ca1c52476c4de467",
    ),
    Stored(
        name="coil2",
        n_rows=1500,
        n_columns=241,
        class_counts=(750, 750),
        origin=f"{BOOK}, set 3: COIL with two classes.",
        note=f"{BOOK_SPLITS} The labels 0 and 1 of the source are -1 and +1 here.",
        checksum="46ff007482f705c93b529e6b96ee7cfae2e89d68a0b43521a3c95a09dcd238ee",
    ),
    Stored(
        name="bci",
        n_rows=400,
        n_columns=117,
        class_counts=(200, 200),
        origin=f"{BOOK}, set 4: a brain-computer interface.",
        note=f"{BOOK_SPLITS} It has 117 columns, although the label-aware paper prints 241.",
        checksum="4ea34f6f5b6896a85923b0c14fb3811be45fbfc4e4caaff4195bf3f7e30a5917",
    ),
    Stored(
        name="g241c",
        n_rows=1500,
        n_columns=241,
        class_counts=(750, 750),
        origin=f"{BOOK}, set 5; the published sample.",
        note=f"{BOOK_SPLITS} Two Gaussians, columns standardised.",
        checksum="4e4ea2f91343231870f10a518582a8058a1eafe63834b0079fa8dc26e9bf3584",
    ),
    Stored(
        name="coil6",
        n_rows=1500,
        n_columns=241,
        class_counts=(250,) * 6,
        target_names=DIGITS[:6],
        origin=f"{BOOK}, set 6: COIL with six classes.",
        note=BOOK_SPLITS,
        checksum="08454812488876c271a9952f74a4124cf7cd0de7f3d83199cacecd5d43595ab9",
    ),
    Stored(
        name="g241n",
        n_rows=1500,
        n_columns=241,
        class_counts=(752, 748),
        origin=f"{BOOK}, set 7, which the book calls g241d; the published sample.",
        note=f"{BOOK_SPLITS} Clusters mislead; columns standardised.",
        checksum="411db0eeebcad6863fc1efed4f6038fb93874ac4c482caadd9cff53ffab768dd",
    ),
    Stored(
        name="text_ssl",
        n_rows=1500,
        n_columns=11960,
        class_counts=(750, 750),
        origin=f"{BOOK}, set 9.",
        note=f'{BOOK_SPLITS} {UNIT_ROWS} It is "Text" of the label-aware paper.',
        checksum="a6b2ef8dc887be98c40f24f932769a3f1b1ad989b6f1172c26242375334bdabc",
    ),
    Stored(
        name="g50c",
        n_rows=550,
        n_columns=50,
        class_counts=(275, 275),
        origin=f"{LDS}; the published sample.",
        note=f"{LDS_SPLITS} Two Gaussians with a Bayes error of 5 %.",
        checksum="6682af769c953770f5639476598f25d1c180bc812c32e9bdd5ec3070d103e58c",
    ),
    Stored(
        name="uspst",
        n_rows=2007,
        n_columns=256,
        class_counts=(327, 273, 206, 178, 196, 140, 174, 173, 160, 180),
        target_names=DIGITS,
        origin=f"{LDS}.",
        note=f"{LDS_SPLITS} Called the test rows of USPS in the literature, but they are not those of usps_full: class "
        "counts and grey levels (31, from -0.9375 to 0.9375) differ, so it is another draw of USPS.",
        checksum="b8c284d569b36fd783b3ab667cdfd480fc63fdddcf29605c24040b5274545fcc",
    ),
    Stored(
        name="text_macwin",
        n_rows=1946,
        n_columns=7511,
        class_counts=(961, 985),
        origin=f"{LDS}: two of the 20 newsgroups, on Mac and on MS Windows.",
        note=f'{LDS_SPLITS} {UNIT_ROWS} It is "Text" of the TSVM-MKL paper.',
        checksum="c1c3b5f10036a7be529c713e6024b139bdfe767d9c1f4d5d6e5f192c20b40d58",
    ),
    Stored(
        name="coil20",
        n_rows=1440,
        n_columns=1024,
        class_counts=(72,) * 20,
        target_names=tuple(map(str, range(20))),
        origin="Columbia Object Image Library, 20 objects, 32 x 32 pixels in [0, 1].",
        note=f"{NO_SPLITS} That it equals the file used for low density separation was not checked.",
        checksum="2bb0f2b377ebd48f1e0fe6120780f7c45b085758d52f2e5a8720792adcea54d3",
    ),
    Stored(
        name="webkb_page",
        n_rows=1051,
        n_columns=3000,
        class_counts=(821, 230),
        target_names=("other", "course"),
        origin=f"{SINDHWANI}: words of the page.",
        note=f"{NO_SPLITS} {UNIT_ROWS} But 5 rows are zero.",
        checksum="a9a917539274413fa0846ba420959b1ebf99e03563ff772af029fcf90f3c362c",
    ),
    Stored(
        name="webkb_link",
        n_rows=1051,
        n_columns=1840,
        class_counts=(821, 230),
        target_names=("other", "course"),
        origin=f"{SINDHWANI}: words of the links to it.",
        note=f"{NO_SPLITS} {UNIT_ROWS} But 5 rows are zero. The rows are those of webkb_page.",
        checksum="bd55c1e54dba14753bde51ec8efdc4f62e22b209900676f0b28a993498af1a48",
    ),
    Stored(
        name="webkb_pagelink",
        n_rows=1051,
        n_columns=4840,
        class_counts=(821, 230),
        target_names=("other", "course"),
        origin=f"{SINDHWANI}: words of the page, then of the links.",
        note=f"{NO_SPLITS} The columns of webkb_page and webkb_link side by side, not normalised again; what the "
        "papers did is not known.",
        checksum="b757b25a1088961bd84d2454349ca908f1853c9b38c7185f5f9a70b245fa1bf1",
    ),
    Stored(
        name="sonar",
        n_rows=208,
        n_columns=60,
        class_counts=(97, 111),
        target_names=("rock", "mine"),
        origin=f"{UCI}, Connectionist Bench (Sonar).",
        checksum="c0d1bf14dffd403b7cbe70f3eb33568f4bf698c1121d879dad9d95b2bba71b30",
        openml=OpenML(40, {"Rock": -1, "Mine": 1}),
    ),
    Stored(
        name="heart_statlog",
        n_rows=270,
        n_columns=13,
        class_counts=(150, 120),
        target_names=("absent", "present"),
        origin=f"{UCI}, Statlog (Heart).",
        note="Columns have very different scales: standardise them.",
        checksum="67fa3749fba2c8381adf463b90aab075ced3a535b64d4661f372556b469d20b0",
        openml=OpenML(53, {"absent": -1, "present": 1}),
    ),
    Stored(
        name="breast_cancer_wisc",
        n_rows=683,
        n_columns=9,
        class_counts=(444, 239),
        target_names=("benign", "malignant"),
        origin=f"{UCI}, Breast Cancer Wisconsin (Original).",
        note="Without the 16 rows of 699 that have a missing value. 234 rows repeat another one, as in the original.",
        checksum="63ef816fe8af5dcbad87beabfa02b1af40676dd8b2729aec5f479a9b8b990f28",
        openml=OpenML(15, {"benign": -1, "malignant": 1}),
    ),
    Stored(
        name="ionosphere",
        n_rows=351,
        n_columns=34,
        class_counts=(126, 225),
        target_names=("bad", "good"),
        origin=f"{UCI}, Ionosphere.",
        note="Column 1, from 0, is 0 everywhere: ionosphere_33 is without it. One row repeats another.",
        checksum="45a89729228aad35d1b771fec6f9bb0454321238723d73384f38e399b0fb0a6a",
        openml=OpenML(59, {"b": -1, "g": 1}),
    ),
    Stored(
        name="wine",
        n_rows=178,
        n_columns=13,
        class_counts=(59, 71, 48),
        target_names=DIGITS[:3],
        origin=f"{UCI}, Wine; scikit-learn brings it along.",
        note="Columns have very different scales: standardise them.",
        checksum="e0b25d252bd5f7ed4287705c5b9b3479803040fa3ab4440f6d6cdc0a4c23db6a",
        bundled=_wine,
    ),
    Stored(
        name="waveform",
        n_rows=5000,
        n_columns=21,
        class_counts=(1657, 1647, 1696),
        target_names=DIGITS[:3],
        origin=f"{UCI}, Waveform Database Generator (Version 1); the published sample.",
        note="The order of the rows is not that of the UCI file. OpenML has version 2 only, with 40 columns.",
        checksum="43fa4640ed2492a247ce7526805ef3af40fcc9a2cf3761edbda3598149a22670",
    ),
    Stored(
        name="usps_full",
        n_rows=9298,
        n_columns=256,
        class_counts=(1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
        target_names=DIGITS,
        origin="US Postal Service digits, 16 x 16 pixels in [-1, 1] (zip.train and zip.test).",
        note="is_test marks the 2007 test rows, which are the last.",
        checksum="419448d378750baf937eaa7d6ba4ad8f89aeccd23b031e9f1b626a68f14bccee",
    ),
    Stored(
        name="mnist14k",
        n_rows=14000,
        n_columns=784,
        class_counts=(1432, 1541, 1322, 1425, 1315, 1324, 1370, 1447, 1402, 1422),
        target_names=DIGITS,
        origin="MNIST (LeCun, Cortes, Burges), 28 x 28 pixels from 0 to 255.",
        note="14000 of the 60000 training rows, drawn at random: train_index has their positions. Divide by 255.",
        checksum="c08c04de17059d318c44d7c58ddfc907d02de33de95d432fe71ec757495b3d89",
        openml=OpenML(554, {digit: int(digit) for digit in DIGITS}, 1 << 28, _mnist_rows),
    ),
    Stored(
        name="wifi_icdm2007",
        n_rows=2642,
        n_columns=101,
        target_names=("x", "y"),
        origin="IEEE ICDM 2007 contest on Wi-Fi localisation (Yang, Pan, Zheng, IEEE Intelligent Systems 2008).",
        note=f"{WIFI_UNITS} is_test marks the 2137 test rows, which are the last. Only 1385 rows differ, and 594 test "
        f"rows equal a training row: wifi_icdm2007_distinct has each once. {WIFI_TERMS}",
        checksum="7ea43c09367b24573362132567b014fb4c050140fcf981c292bc92c10fb4e68d",
    ),
)
STORED = {record.name: record for record in _SETS}
