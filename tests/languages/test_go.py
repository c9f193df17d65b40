"""Go: the guide's examples."""

from __future__ import annotations

from tests.support.environment.languages import guide_files, kept_folder, run, write_files

MODULE = """module example.com/threads

go 1.22

require (
	github.com/aws/aws-sdk-go-v2/config v1.29.0
	github.com/aws/aws-sdk-go-v2/service/dynamodb v1.39.0
)
"""


def test_the_go_examples_of_the_guide_work():
    folder = kept_folder("go-suite")
    if not (folder / "go.sum").is_file():
        write_files(folder, {"go.mod": MODULE, **guide_files("go")})
        run(["go", "mod", "tidy"], folder)
    write_files(folder, guide_files("go"))
    assert "--- PASS: TestThereAreNoTables" in run(
        ["go", "test", "-v", "-count=1", "./..."], folder
    )
