"""Texts are plain English: each folder has at most as many findings as its limit.

The limits are a ratchet. Lower the limit of a folder whenever its texts get better, and never raise
one; a folder without a limit has no findings. List the findings of a folder with::

    python -m tests.architecture.words FOLDER

Limits are upper bounds rather than exact numbers, so that two changes of one folder don't conflict.
``words.EXCEPTIONS`` holds the sentences that stay, each with its reason.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.architecture.words import (
    EXCEPTIONS,
    counts,
    problems,
    readable_files,
    sentences,
)

# The highest number of findings of a folder: only lower it. No folder has a finding left.
LIMITS: Final[dict[str, int]] = {}

# Sentences of earlier versions, each with a part of the problem that the checker reports.
HARD_SENTENCES: Final = (
    ("Never more than what is in hand.", "'in hand'"),
    ("Whoever waits for it is woken.", "'whoever'"),
    ("The reader has to be begun anew.", "'anew'"),
    ("Give back the units of a request that came to nothing.", "'came to nothing'"),
    ("Of so many item collections the sizes are kept in memory.", "opens with 'Of'"),
    ("Wait at most so many seconds.", "'so many'"),
    ("Orders that are worked off one after another.", "'worked off'"),
    ("Throttled: so it is.", "'so it is.'"),
    ("What is sent from now on goes nowhere.", "opens with 'What'"),
    ("Whom its head alone refuses is not let in.", "opens with 'Whom'"),
    ("Where nothing has to be awaited, the answer follows at once.", "opens with 'Where'"),
    ("As there.", "opens with 'As'"),
    ("That of an ended log has begun.", "opens with 'That'"),
    ("Those of the full lane until they are closed.", "opens with 'Those of'"),
    ("Without more, every signature is taken.", "'without more'"),
    ("Any other key is told apart here.", "'told apart'"),
    ("How often it is looked for partitions that are to be split.", "'it is looked'"),
    ("The last request is answered to nobody.", "'to nobody'"),
    ("A body of which little is read at a time.", "'of which'"),
    ("A line that is none.", "'is none'"),
    ("A connection that is refused takes no room.", "'takes no room'"),
    ("The catalogue recognises the behaviour of its neighbours.", "American spelling"),
    (
        "The tables by name, and what who asks for one is told of those that can't be had.",
        "what who",
    ),
    (
        (
            "A burst of writes that finds the mailbox full is answered with an error, and then a "
            "subscriber that finds it full waits there until there is a place for it again."
        ),
        "words, at most 30",
    ),
)
PLAIN_SENTENCES: Final = (
    "Tables by name, and the errors for tables that are missing or busy.",
    "Don't bind the exception to a name: exception and frame would form a reference cycle.",
    "Number of item collections whose sizes are cached.",
    "Requests that fail on their headers alone are rejected before their body is buffered.",
    "What does a write cost?",
    "Bytes per second. ``Of`` and ``whoever`` may stand in code.",
)


@pytest.mark.parametrize(("sentence", "problem"), HARD_SENTENCES)
def test_a_hard_sentence_is_found(sentence: str, problem: str):
    assert any(problem in found for found, _ in problems(sentence))


@pytest.mark.parametrize("sentence", PLAIN_SENTENCES)
def test_a_plain_sentence_passes(sentence: str):
    assert problems(sentence) == []


@pytest.mark.parametrize("event", ["table_created", "checkpoint_not_stored", "sync_failed"])
def test_a_log_event_is_a_noun_with_a_participle(event: str):
    assert problems(event, "log event") == []


@pytest.mark.parametrize(
    "event", ["a client left", "stopping", "not_reopened_as_asked", "Table-Created"]
)
def test_another_form_of_log_event_is_found(event: str):
    assert problems(event, "log event") != []


def test_paragraphs_items_and_cells_are_sentences_of_their_own():
    text = (
        "A title\n\n- first item\n- second\n  item\n\n| cell | other |\n\nOne. Two\n\n```\nx\n```"
    )
    assert list(sentences(text)) == [
        "A title",
        "first item",
        "second item",
        "cell",
        "other",
        "One.",
        "Two",
    ]


def test_every_file_with_texts_is_read():
    names = {path.name for path in readable_files()}
    assert {
        "CHANGELOG.md",
        "KAFKA.md",
        "Makefile",
        "partition.py",
        "options.py",
        "test_words.py",
    } <= names


def test_no_folder_has_more_findings_than_its_limit():
    above = {
        folder: f"{number} findings, at most {LIMITS.get(folder, 0)}"
        for folder, number in counts().items()
        if number > LIMITS.get(folder, 0)
    }
    assert above == {}, "list them with: python -m tests.architecture.words FOLDER"


def test_an_exception_has_a_finding_and_a_reason():
    assert [sentence for sentence in EXCEPTIONS if not problems(sentence)] == []
    assert all(EXCEPTIONS.values())
