"""The inputs of operations are those that ``make inputs`` writes.

The models of the project's botocore have the same inputs as those of the newer one.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from dynactor.api.requests import inputs
from tests.support.clients.service_model import plain_model
from tests.support.inputs.generate_inputs import SERVICES, module

COMMITTED = Path(inputs.__file__).read_text()


def generated(models: list[dict[str, Any]]) -> str:
    """The code that the generator writes, without its format."""
    version = re.search(r"botocore (\d+\.\d+\.\d+);", COMMITTED)
    assert version is not None, "the file names its version"
    return ast.unparse(ast.parse(module(models, version[1])))


def test_the_committed_inputs_are_those_that_the_generator_writes():
    models = [plain_model(service) for service in SERVICES]
    assert ast.unparse(ast.parse(COMMITTED)) == generated(models)
