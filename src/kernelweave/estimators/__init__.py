"""What is learned: scikit-learn estimators."""
