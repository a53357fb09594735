import pytest

from harness import models


@pytest.fixture(scope="session")
def model_lines(tmp_path_factory):
    return models.build(tmp_path_factory.mktemp("model_lines"))


@pytest.fixture
def load(model_lines, tmp_path):
    """Loads the text of a model's file; the models end with the test."""
    loaded = []

    def load(source, seconds=5, name="model.js"):
        path = tmp_path / name
        path.write_text(source)
        loaded.append(models.Model(model_lines, path, seconds))
        return loaded[-1]

    yield load
    for model in loaded:
        model.close()
