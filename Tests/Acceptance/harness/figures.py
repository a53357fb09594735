"""Figures that tests report."""


def spread(numbers):
    return max(numbers) - min(numbers)


def mebibytes(count):
    return f"{count / (1 << 20):.1f} MiB"
