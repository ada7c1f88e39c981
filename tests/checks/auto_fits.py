"""What tests of the learners that combine others ask of a fit."""


def statuses(model):
    """What became of each candidate."""
    return {record["candidate"]: record["status"] for record in model.leaderboard_}


def protect(*arrays):
    """Make arrays read-only, so that no test spoils the next."""
    for array in arrays:
        array.setflags(write=False)
    return arrays
