"""The text of /metrics."""

import collections
import re

LINE = re.compile(r'(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>[-+0-9.e]+)')
LABEL = re.compile(r'(?P<name>[a-z_]+)="(?P<value>(?:[^"\\]|\\.)*)"(?:,|$)')

Series = collections.namedtuple("Series", "name labels")


def series_of(body):
    """The value of each series; a line that is none is an error."""
    found = {}
    for line in body.decode().splitlines():
        if line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            raise AssertionError(f"not a line of the text format: {line}")
        labels = tuple((label["name"], label["value"]) for label in LABEL.finditer(match["labels"] or ""))
        series = Series(match["name"], labels)
        if series in found:
            raise AssertionError(f"a series twice: {line}")
        found[series] = float(match["value"])
    return found


class Figures:
    """What /metrics says at one moment."""

    def __init__(self, body):
        self.series = series_of(body)

    def __getitem__(self, name):
        """The value of the one series without labels."""
        return self.series[Series(f"storekeeper_{name}", ())]

    def by(self, name, *labels):
        """The values that are not 0, by the values of these labels."""
        return {
            tuple(dict(series.labels)[label] for label in labels): value
            for series, value in self.series.items()
            if series.name == f"storekeeper_{name}" and value
        }


def figures_of(client):
    answer = client.get("/metrics")
    if answer.status != 200 or answer.fields["content-type"] != "text/plain; version=0.0.4; charset=utf-8":
        raise AssertionError(f"not metrics: {answer}")
    return Figures(answer.body)
