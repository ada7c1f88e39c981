"""The learner that chooses and combines: candidates, folds, weights, and what they say of the labels."""
