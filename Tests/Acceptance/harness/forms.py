"""How much the long form of a test does.

Its numbers are those of a night: ROUNDS=50. By default a tenth of it is done, so that .ci/long comes to an end while
somebody waits for it.
"""

import os

NIGHT = 50
ROUNDS = int(os.environ.get("ROUNDS") or 5)


def of_a_night(count):
    """A number of a night's form, as the long form of this run has it."""
    return max(1, count * ROUNDS // NIGHT)
