"""Objective, bound and gap along a fit."""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from kernelweave import CertificateDisplay, Linear, SSMKClassifier, rbf_family

X, moon = make_moons(400, noise=0.25, random_state=0)
CertificateDisplay.from_estimator(SSMKClassifier([Linear(), *rbf_family()], C=1.0).fit(X, moon))
plt.gcf().set_size_inches(7.2, 3.4)
