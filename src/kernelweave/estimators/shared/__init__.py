"""The parts that estimators are made of: functions of frozen data, and the border to scikit-learn."""
