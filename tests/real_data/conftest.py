"""Every test of this folder runs on each data set, with each of its indexes, filters and so on."""

from __future__ import annotations

from itertools import product

import pytest

from tests.real_data.airports import AIRPORTS
from tests.real_data.data_set import DataSet
from tests.real_data.films import FILE, PACKAGE, films
from tests.real_data.npm_file import NotFetched, npm_file
from tests.support.environment.left_out import leave_out

_DATA_SETS = pytest.StashKey[list[DataSet]]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = [
        kind
        for kind in ("index", "text_index", "filtered", "projection")
        if kind in metafunc.fixturenames
    ]
    cases = [
        (data_set, *chosen)
        for data_set in _data_sets(metafunc.config)
        for chosen in product(*map(data_set.cases, kinds))
    ]
    ids = ["-".join(map(str, case)) for case in cases]
    metafunc.parametrize(["data_set", *kinds], cases, ids=ids)


def _data_sets(config: pytest.Config) -> list[DataSet]:
    if _DATA_SETS not in config.stash:
        config.stash[_DATA_SETS] = [AIRPORTS]
        try:
            file = npm_file(PACKAGE, FILE, config.rootpath / ".pytest_cache" / "npm")
        except NotFetched as error:
            leave_out(config, f"tests/real_data, the films: {error}")
        else:
            config.stash[_DATA_SETS].append(films(file))
    return config.stash[_DATA_SETS]
