"""Finds sentences that are hard to read in comments, docstrings, help, log events and documents.

The checker knows phrases that have a plainer alternative, British spellings, openings that put the
object before the subject, and sentences of more than 30 words. List the findings of a folder with::

    python -m tests.architecture.words model/ docs/KEYS.md

Without arguments the command prints the number of findings in each folder. ``test_words.py``
compares these numbers with its limits. The checker finds words, not meaning: a sentence without a
finding can still be one that has to be read twice.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.architecture.sources import PROJECT, text_of

MOST_WORDS: Final = 30

# A phrase, as a regular expression, and the words to write instead.
PHRASES: Final = {
    r"who(m|se)?(so)?ever\b": "name the actor",
    r"what who\b": "name the actor",
    r"in hand\b": "pending, in flight",
    r"anew\b": "again, restarted",
    r"(came|comes?|coming) to nothing\b": "failed, rejected",
    r"(?<!, )so (many|few)\b": "the number, the limit, therefore",
    r"worked off\b": "processed",
    r"(takes?|took|taking) (no |little |more |much )?room\b": "uses memory, uses space",
    r"for good\b": "permanently",
    r"told apart\b": "distinguished",
    r"(is|are|was|were|be|been) told (of|about)\b": "is notified of, is reported",
    r"(hears?|heard|hearing) of\b": "is notified of, receives",
    r"(is|are|was|were|be) let in\b": "is accepted, is admitted",
    r"lets? (everybody|anybody|nobody|somebody|all) in\b": "accepts",
    r"(is|are|was|were|be|been) looked (into|at|for|after|up in)\b": "is checked, is searched",
    r"(can|could|to|can't|cannot) be had\b": "is available",
    r"of which\b": "whose, or two sentences",
    r"near enough\b": "approximately",
    r"at work\b": "is running, is active",
    r"the (other|wrong) way (a?round|about)\b": "in reverse order",
    r"(by|to|of|for|from|with) (nobody|somebody|everybody|anybody)\b": "name the actor",
    r"what (is|was|are|were) (in hand|left|usual|odd|kept|said|told|there|owed|missing|wrong)\b": (
        "the noun: pending work, the remainder, the rule"
    ),
    r"it is (looked|waited|asked|told|read on)\b": "name the actor",
    r"so (it )?(is|are|was|were|does|do|did) (it|they|that|this)\b": "say it in full",
    r"so it (is|was|does|did)[.;:,]": "say it in full",
    r"(becomes?|became) of\b": "the outcome of",
    r"all the same\b": "anyway, still",
    r"(held|holds?|holding) up\b": "delays, blocks",
    r"with full hands\b": "in full batches",
    r"without more\b": "by default",
    r"(draws?|drew|drawn) (no )?lots?\b": "at random",
    r"by lot\b": "at random",
    r"(?<!there )(is|are|was|were) none\b": "the noun: is not a number",
    r"(no more|nothing) of it\b": "none of the",
    r"makes? good\b": "restores",
    r"(lest|thereof|whereof|whence|hitherto|albeit|thereby|wherein|hence|thus)\b": "so, because",
    r"(begin|begins|begun|began) with the\b(?= (next|other))": "starts",
    r"has (it|them|him) (told|sent|made|done)\b": "name the actor",
    r"(nothing|nobody|none) else('s)? (of|than)\b": "only",
    r"than which\b": "two sentences",
    r"out of turn\b": "out of order",
    r"in vain\b": "without effect",
    r"left over\b": "remaining",
    r"stands? (once|there|for itself|in full)\b": "is defined, is listed",
    r"from of old\b": "earlier",
    r"at their hands\b": "by them",
    r"(so|as) to speak\b": "leave it out",
    r"the (former|latter)\b": "repeat the noun",
    r"(odd|queer) one\b": "unusual value",
    r"must miss it\b": "must fail",
    r"as ever\b": "as always",
    r"(is|are|was|were|be) told\b": "is reported, is notified",
    r"passed over\b": "ignored, skipped",
    r"had better\b": "should",
    r"(somebody|anybody|everybody)\b": "name the actor",
    r"as good as\b": "equivalent to",
    r"amid\b": "during",
    r"in the place of\b": "in place of, replaces",
    r"let go( of)?\b": "released, closed",
    r"(thrown away|thrown out)\b": "discarded",
    r"put out\b": "evicted",
    r"for ever\b": "forever",
    r"(is|are) held against\b": "is compared with",
    r"and the like\b": "and similar",
    r"by halves\b": "partially",
    r"for want of\b": "without",
}
SPELLINGS: Final = {
    r"behaviours?": "behavior",
    r"(un)?favour(s|ed|ing|ites?|able)?": "favor",
    r"colour(s|ed|ing|ful|less)?": "color",
    r"(dis)?honour(s|ed|ing)?": "honor",
    r"neighbour(s|ing|hood)?": "neighbor",
    r"labour(s|ed)?": "labor",
    r"centre[sd]?": "center",
    r"metres?": "meter",
    r"grey(s|ed)?": "gray",
    r"catalogues?": "catalog",
    r"licences?": "license",
    r"defences?": "defense",
    r"offences?": "offense",
    r"programmes?": "program",
    r"judgements?": "judgment",
    r"acknowledgements?": "acknowledgment",
    r"whilst": "while",
    r"amongst": "among",
    r"(re|un|de)?(serial|initial|normal|optim|organ|recogn|synchron|author|summar|minim|maxim|util|special|"
    r"general|final|real|memo|token|randomi|prior|standard|custom|emphas|categor|visual|material|local)"
    r"is(e|es|ed|ing|er|ers|ation|ations)": "-ize, -ization",
    r"analys(e|es|ed|ing)": "analyze",
    r"(travell|modell|signall|labell|cancell)(ing|er)": "one l",
    r"(modell|signall|labell|travell)ed": "one l",
}
OPENINGS: Final = (
    "Of", "Whom", "Whose", "What", "Where", "As", "That", "Those of", "Who", "Wherever",
)  # fmt: skip
# Sentences that stay, each with the reason.
EXCEPTIONS: Final[dict[str, str]] = {}

# Log events are nouns with a participle or an adjective of state.
_EVENT: Final = re.compile(
    r"(?!not_)[a-z0-9]+(_[a-z0-9]+)*_(?:\w+ed|begun|built|lost|made|read|sent|set|split|stuck|full|unreadable)"
)
_LOGGED: Final = re.compile(
    r"\b_?log(?:ger)?\.(?:debug|info|warning|error|critical|exception)\(\s*\"([^\"]*)\""
)

# Matched against lower case: much faster than a pattern that ignores case.
_PHRASES: Final = tuple(
    (re.compile(rf"\b(?:{phrase})"), plain) for phrase, plain in PHRASES.items()
)
_ANY_PHRASE: Final = re.compile(rf"\b(?:{'|'.join(PHRASES)})")
_SPELLINGS: Final = tuple(
    (re.compile(rf"\b(?:{british})\b"), american) for british, american in SPELLINGS.items()
)
_ANY_SPELLING: Final = re.compile(rf"\b(?:{'|'.join(SPELLINGS)})\b")
_OPENING: Final = re.compile(rf"[\"'(*_]*({'|'.join(OPENINGS)})\b")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"'*_)\]]*\s+(?=[\"'*_(\[`]*[A-Z`])|:\s*\n")
_CODE: Final = re.compile(r"``[^`]*``|`[^`]*`|https?://\S+")
_WORD: Final = re.compile(r"\S*\w\S*")
# Strings and comments: only a # outside a string begins a comment.
_STRING_OR_COMMENT: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*',
    re.DOTALL,
)
_DIRECTIVE: Final = re.compile(r"#\s*(noqa|type:|pragma|fmt:|ruff:|!)|#\s*-- .* -{3,}$")
_SECTION: Final = re.compile(r"\s*(Raises|Returns|Yields|Args):\s*$")
# Folders whose error messages are ours alone. Others repeat the texts of AWS.
_OWN_ERRORS: Final = (
    "api/serve", "api/commands", "api/admin", "api/testing", "api/faults",
    "dynactor", "load", "storage",
)  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A text that people read: its file and line, its kind, its words."""

    path: Path
    line: int
    kind: str
    words: str


@dataclass(frozen=True)
class Finding:
    """A sentence that is hard to read, and why."""

    path: Path
    line: int
    problem: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(PROJECT)}:{self.line}: {self.problem}\n    {self.sentence}"


def problems(text: str, kind: str = "comment") -> list[tuple[str, str]]:
    """Each problem in a text, with the sentence that has it."""
    if kind == "log event":
        return [] if _EVENT.fullmatch(text) else [("not a noun with a participle", text)]
    found: list[tuple[str, str]] = []
    for sentence in sentences(text):
        bare = _CODE.sub("code", sentence)
        lower = bare.replace("None", "null").lower()
        if _ANY_PHRASE.search(lower):
            found += [
                (f"'{match[0]}': write {plain}", sentence)
                for pattern, plain in _PHRASES
                if (match := pattern.search(lower))
            ]
        if _ANY_SPELLING.search(lower):
            found += [
                (f"'{match[0]}': American spelling is {american}", sentence)
                for pattern, american in _SPELLINGS
                if (match := pattern.search(lower))
            ]
        opening = _OPENING.match(bare)
        if opening is not None and not bare.rstrip().endswith("?"):
            found.append((f"opens with '{opening[1]}': start with the subject", sentence))
        words = len(_WORD.findall(bare))
        if words > MOST_WORDS and not bare.startswith(("Source", "Sources")):
            found.append((f"{words} words, at most {MOST_WORDS}", sentence))
    return found


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text; paragraphs, list items and table cells end one, too."""
    for paragraph in _paragraphs(text):
        for sentence in _SENTENCE_END.split(paragraph):
            joined = " ".join(sentence.split())
            if joined:
                yield joined


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a text without examples of code."""
    lines: list[str] = []
    fenced = section = False
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
            bare = ""
        elif fenced or (line.startswith("    ") and not lines and not section):
            continue
        item = re.match(r"([-*>|]|\d+\.|#+)\s", bare)
        starts = item is not None or (section and re.match(r"[\w.]+: ", bare) is not None)
        if (not bare or starts) and lines:
            yield "\n".join(lines)
            lines = []
        if not bare:
            section = False
        elif _SECTION.match(line):
            section = True
        elif bare.startswith("|"):
            yield from (cell.strip() for cell in bare.split("|") if cell.strip(" -:"))
        elif starts and item is None:
            lines.append(bare.partition(": ")[2])
        elif bare.startswith("#"):
            yield bare.strip("# ")
        else:
            lines.append(bare[item.end() :] if item else bare)


def texts(path: Path) -> Iterator[Text]:
    """All texts of a file that people read."""
    if path.suffix == ".py":
        yield from _comments(path)
        yield from _strings(path)
    elif path.suffix == ".md":
        yield Text(path, 1, "document", text_of(path))
    else:
        yield from _marked_lines(path)


def findings(path: Path) -> list[Finding]:
    """The hard sentences of a file, in the order of its lines."""
    found = [
        Finding(path, text.line + _line_within(text.words, sentence), problem, sentence)
        for text in texts(path)
        for problem, sentence in problems(text.words, text.kind)
        if sentence not in EXCEPTIONS
    ]
    return sorted(found, key=lambda finding: finding.line)


def _line_within(text: str, sentence: str) -> int:
    """The line of a text on which a sentence begins, from 0."""
    first = r"\s+".join(re.escape(word) for word in sentence.split()[:6])
    match = re.search(first, text)
    return text.count("\n", 0, match.start()) if match else 0


def _comments(path: Path) -> Iterator[Text]:
    """The comments of a Python file; those on consecutive lines are one text."""
    text = text_of(path)
    if "#" not in text:
        return
    block: list[str] = []
    begin = last = line = at = 0
    for match in _STRING_OR_COMMENT.finditer(text):
        comment = match[0]
        if comment[0] != "#" or _DIRECTIVE.match(comment):
            continue
        line += text.count("\n", at, match.start())
        at = match.start()
        own_line = not text[text.rfind("\n", 0, at) + 1 : at].strip()
        if block and own_line and line == last + 1:
            block.append(comment.lstrip("#: "))
        else:
            if block:
                yield Text(path, begin + 1, "comment", "\n".join(block))
            block, begin = [comment.lstrip("#: ")], line
        # A comment behind code is a text of its own.
        last = line if own_line else -1
    if block:
        yield Text(path, begin + 1, "comment", "\n".join(block))


def _strings(path: Path) -> Iterator[Text]:
    """Docstrings, help texts, errors of our own, log events, names of tests."""
    # Not kept: a collection of garbage would go through all these trees again and again.
    tree = ast.parse(text_of(path))
    folder = path.relative_to(PROJECT).as_posix()
    yield from _docstrings(path, tree)
    if folder == "api/command_line.py":
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and " " in str(node.value):
                yield Text(path, node.lineno, "help", str(node.value))
    if folder.startswith(_OWN_ERRORS):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.keyword)
                and node.arg == "help"
                and isinstance(node.value, ast.Constant)
            ):
                yield Text(path, node.value.lineno, "help", str(node.value.value))
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                yield from (
                    Text(path, node.lineno, "error", _literal(each)) for each in node.exc.args
                )
    if not folder.startswith("tests"):
        text = text_of(path)
        for match in _LOGGED.finditer(text):
            yield Text(path, text.count("\n", 0, match.start()) + 1, "log event", match[1])


def _docstrings(path: Path, tree: ast.AST) -> Iterator[Text]:
    for statement in getattr(tree, "body", ()):
        match statement:
            case ast.Expr(value=ast.Constant(value=str(words))):
                yield Text(path, statement.lineno, "docstring", _dedented(words, statement))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name.startswith("test_"):
                name = statement.name.removeprefix("test_").replace("_", " ").capitalize()
                yield Text(path, statement.lineno, "test name", name)
                yield from _docstrings(path, statement)
            case (
                ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.If() | ast.With()
            ):
                yield from _docstrings(path, statement)
            case _:
                pass


def _dedented(words: str, statement: ast.stmt) -> str:
    """A docstring without the indentation of its first line."""
    return words.replace("\n" + " " * statement.col_offset, "\n")


def _literal(node: ast.expr) -> str:
    """The text of a string; the values in an f-string are one word each."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(_literal(part) or "value" for part in node.values)
        case _:
            return ""


def _marked_lines(path: Path) -> Iterator[Text]:
    """The comments of a Makefile, a Dockerfile or a configuration file."""
    block: list[str] = []
    for number, line in enumerate([*text_of(path).splitlines(), ""]):
        bare = line.strip()
        if bare.startswith("#"):
            # An indented line is a command.
            block.append("" if bare.startswith("#   ") else bare.lstrip("# "))
        elif block:
            yield Text(path, number - len(block) + 1, "comment", "\n".join(block))
            block = []


def readable_files(*folders: str) -> list[Path]:
    """The files that hold texts, of these folders or files, or of the whole project."""
    roots = [PROJECT / folder for folder in folders] or [
        *(
            PROJECT / name
            for name in ("model", "storage", "streams", "actors", "api", "load", "tests")
        ),
        *(PROJECT / name for name in ("dynactor", "compose", "docs", "Makefile")),
        *PROJECT.glob("*.md"),
    ]
    return sorted(
        path
        for root in roots
        for path in (root.rglob("*") if root.is_dir() else [root])
        if path.suffix in {".py", ".md", ".yaml", ".service"}
        or path.name in {"Makefile", "Dockerfile"}
        if not path.resolve().is_relative_to(PROJECT / "dynactor") or "dynactor" in path.parts[-3:]
    )


def folder_of(path: Path) -> str:
    """The folder whose limit a file counts for: two levels, or the name of a document."""
    parts = path.relative_to(PROJECT).parts
    if path.suffix == ".md" or len(parts) == 1:
        return "/".join(parts)
    return "/".join(parts[: 2 if len(parts) > 2 else 1])


def counts() -> Counter[str]:
    """The number of findings in each folder of the project."""
    number: Counter[str] = Counter()
    for path in readable_files():
        number[folder_of(path)] += len(findings(path))
    return number


def main() -> None:
    """Print the findings in the folders and files of the command line."""
    folders = sys.argv[1:]
    if folders:
        found = [finding for path in readable_files(*folders) for finding in findings(path)]
        lines = [*map(str, found), f"{len(found)} findings"]
    else:
        lines = [f"{number:6} {folder}" for folder, number in sorted(counts().items())]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
