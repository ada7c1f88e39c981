"""
Spectra: how much of a substance is in a mixture
================================================

A spectrometer measures a mixture in seconds; the laboratory needs a day to say how much of a substance is in it. So
there are hundreds of spectra and few numbers. The standard tool of chemists is partial least squares, and it is hard to
beat.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVR

from kernelweave import RBF, KernelLibrary, KernelWeightsDisplay, Linear, MKLRegressor, Preprocessed

BLUE, GREY = "#0072B2", "#8c8c8c"  # can be told apart by colour-blind readers


# %%
# The spectra are generated: four substances with overlapping peaks, in random shares; a baseline that differs from one
# measurement to the next; a factor for the thickness of the probe; noise. The detector saturates, so that high peaks
# are flatter than they should be.


def make_spectra(n, rng):
    wavelength = np.linspace(0, 1, 200)
    places = [(0.25, 0.62), (0.30, 0.75), (0.55, 0.68), (0.45, 0.85)]
    shapes = [sum(np.exp(-(((wavelength - p) / 0.045) ** 2)) for p in pair) for pair in places]
    shares = rng.dirichlet(np.ones(4), size=n)
    thickness = rng.uniform(0.8, 1.2, size=(n, 1))
    baseline = rng.normal(0.5, 0.25, size=(n, 1)) + rng.normal(0, 0.5, size=(n, 1)) * wavelength
    measured = np.tanh(1.4 * thickness * (shares @ shapes)) + baseline + rng.normal(0, 0.01, size=(n, 200))
    return wavelength, measured, shares[:, 0]


wavelength, X, share = make_spectra(400, np.random.default_rng(0))
y = np.where(np.arange(400) < 40, share, np.nan)  # the laboratory has measured 40 of them

# %%
# The slope of a spectrum does not know a constant baseline, and divided by its norm it does not know the thickness.
# Which view is best is not clear beforehand, so the model gets all of them, each as a kernel, and learns the weights.
# :class:`~kernelweave.Preprocessed` puts any transformer before a kernel.


def slopes(spectra, width=11):
    sums = np.cumsum(spectra, axis=1)
    return np.diff((sums[:, width:] - sums[:, :-width]) / width, axis=1)  # of moving averages: less noise


def unit_slopes(spectra):
    change = slopes(spectra)
    return change / np.linalg.norm(change, axis=1, keepdims=True)


library = KernelLibrary(
    {
        "as measured: linear": Linear(),
        "as measured: RBF": RBF(),
        "slopes: linear": Preprocessed(FunctionTransformer(slopes), Linear()),
        "slopes: RBF": Preprocessed(FunctionTransformer(slopes), RBF()),
        "unit slopes: linear": Preprocessed(FunctionTransformer(unit_slopes), Linear()),
        "unit slopes: RBF": Preprocessed(FunctionTransformer(unit_slopes), RBF()),
    }
)
mkl = MKLRegressor(library, weighting="learned", epsilon=0.01, random_state=0).fit(X, y)
print(mkl.certificate_)

# %%
# Beside it partial least squares, and support vector regression on the spectra as measured, both tuned by
# cross-validation on the 40 known numbers.

known, hidden = ~np.isnan(y), np.isnan(y)
pls = GridSearchCV(PLSRegression(), {"n_components": range(2, 13)}).fit(X[known], y[known])
svr = GridSearchCV(SVR(epsilon=0.01), {"C": [0.1, 1, 10, 100], "gamma": ["scale", 0.01, 0.001]}).fit(X[known], y[known])
predicted = {
    "MKL, six views": mkl.transduction_[hidden],
    "PLS": pls.predict(X[hidden]).ravel(),
    "SVR": svr.predict(X[hidden]),
}

figure, axes = plt.subplot_mosaic(
    [["spectra"] * 3, list(predicted)], figsize=(6.4, 5.2), layout="constrained", height_ratios=[1, 1.1]
)
colors = plt.cm.ScalarMappable(plt.Normalize(0, 0.8), "cividis")
for value in np.linspace(0, 0.8, 9):
    row = np.abs(share - value).argmin()
    axes["spectra"].plot(wavelength, X[row], color=colors.to_rgba(value), linewidth=1.2)
figure.colorbar(colors, ax=axes["spectra"], label="share of substance 1")
axes["spectra"].set(xlabel="wavelength (scaled)", ylabel="absorbance")
axes["spectra"].set_title("Nine of 400 generated spectra", loc="left", fontsize=11)
for name, values in predicted.items():
    error = np.sqrt(np.mean((values - share[hidden]) ** 2))
    print(f"{name:14} root mean squared error {error:.4f}")
    axes[name].plot([0, 0.9], [0, 0.9], color="black", linewidth=1)
    color = BLUE if name.startswith("MKL") else GREY
    axes[name].scatter(share[hidden], values, s=8, color=color, alpha=0.6, linewidths=0)
    axes[name].set_title(f"{name}\nerror {error:.3f}", fontsize=10)
    axes[name].set(xlabel="true share", xlim=(-0.05, 0.9), ylim=(-0.05, 0.9))
axes["MKL, six views"].set_ylabel("predicted share")
plt.show()

# %%
# The weights say which views of the spectra the model rests on.

KernelWeightsDisplay.from_estimator(mkl)
plt.show()
