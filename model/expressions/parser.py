"""Parses expressions of all kinds into trees, and caches the trees by text.

The parser reports faults in DynamoDB's order. Syntax errors come first, with redundant parentheses
among them. Other faults of the text alone follow from left to right: unknown or misplaced
functions, reserved words, list positions out of range. Faults that depend on placeholders are found
when a tree is bound. Only operands of functions are parsed recursively, and their depth is bounded,
so a text of brackets can't exhaust the stack.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NoReturn, TypeAlias, cast

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import syntax
from dynactor.model.expressions.reserved_words import is_reserved
from dynactor.model.expressions.tokens import Token, TokenKind, syntax_error, tokenize
from dynactor.model.limits import EXPRESSION_BYTES, EXPRESSION_OPERATORS

ConditionKind: TypeAlias = Literal[
    "ConditionExpression", "FilterExpression", "KeyConditionExpression"
]

# The functions of each language, and whether each may be used as a value.
_CONDITION_FUNCTIONS: Final = {
    "attribute_exists": False,
    "attribute_not_exists": False,
    "attribute_type": False,
    "begins_with": False,
    "contains": False,
    "size": True,
}
_UPDATE_FUNCTIONS: Final = {"if_not_exists": True, "list_append": False}

_COMPARATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_SECTIONS: Final = frozenset({"SET", "REMOVE", "ADD", "DELETE"})
# All languages share one set, so a keyword of one language is never a name in another.
_KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN"}) | _SECTIONS
_INDEX_MAX: Final = 2**31 - 1

# Applications have few expressions. The bound protects memory from a client that generates texts.
_CACHED_TEXTS: Final = 2048


def invalid(kind: str, message: str) -> ValidationException:
    """The error for a faulty expression, with the name of its parameter."""
    return ValidationException(f"Invalid {kind}: {message}")


@lru_cache(maxsize=_CACHED_TEXTS)
def condition_tree(text: str, kind: ConditionKind) -> syntax.Condition:
    """The tree of a condition, filter or key condition; raises ``ValidationException``."""
    return _ConditionParser(text, kind).parse()


@lru_cache(maxsize=_CACHED_TEXTS)
def update_tree(text: str) -> tuple[syntax.Clause, ...]:
    """The clauses of an update expression in order; raises like ``condition_tree``."""
    return _UpdateParser(text, "UpdateExpression").parse()


@lru_cache(maxsize=_CACHED_TEXTS)
def projection_tree(text: str) -> tuple[syntax.ParsedPath, ...]:
    """The paths of a projection expression; raises like ``condition_tree``."""
    return _ProjectionParser(text, "ProjectionExpression").parse()


class _LanguageParser:
    """The common part of the languages: tokens, faults, paths and operands.

    Faults other than syntax errors are collected with their position while the tree is built. The
    first one is raised once the syntax is known to be correct.
    """

    functions: dict[str, bool] = _CONDITION_FUNCTIONS
    foreign_functions: dict[str, bool] = _UPDATE_FUNCTIONS
    language = "a condition"
    shows_size = False

    def __init__(self, text: str, kind: str) -> None:
        self.text = text
        self.kind = kind
        if text == "":
            raise invalid(kind, "The expression can not be empty;")
        if len(text) > EXPRESSION_BYTES:
            size = f" expression size: {len(text)}" if self.shows_size else ""
            raise invalid(kind, f"Expression size has exceeded the maximum allowed size;{size}")
        self.tokens = tokenize(text)
        self.at = 0
        self.operators = 0
        # Positions of closed pairs of grouping parentheses, (opening, closing).
        self.groups: set[tuple[int, int]] = set()
        self.faults: list[tuple[int, str]] = []

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def accept(self, symbol: str) -> bool:
        token = self.tokens[self.at]
        if token.kind is TokenKind.SYMBOL and token.text == symbol:
            self.at += 1
            return True
        return False

    def expect(self, symbol: str) -> None:
        if not self.accept(symbol):
            self.fail()

    def accept_keyword(self, keyword: str) -> bool:
        if self.token.is_keyword(keyword):
            self.at += 1
            return True
        return False

    def fail(self) -> NoReturn:
        """Raise the syntax error of the current token."""
        raise invalid(self.kind, syntax_error(self.text, self.tokens, self.at).message)

    def finish(self) -> None:
        """Check that the text ends here, and raise the first of the other faults."""
        if self.token.kind is not TokenKind.END:
            self.fail()
        if self.faults:
            raise invalid(self.kind, min(self.faults)[1])
        if self.operators > EXPRESSION_OPERATORS:
            raise self.too_many_operators()

    def too_many_operators(self) -> ValidationException:
        """The error for an expression with too many operators."""
        return invalid(
            self.kind,
            "The expression contains too many operators; "
            f"operator count: {EXPRESSION_OPERATORS + 1}",
        )

    def path(self) -> syntax.ParsedPath:
        """A document path."""
        parts: list[str | int] = [self.path_name()]
        while True:
            if self.accept("."):
                parts.append(self.path_name())
            elif self.accept("["):
                if self.token.kind is not TokenKind.INDEX:
                    self.fail()
                index = int(self.token.text)
                if index > _INDEX_MAX:
                    self.fault(
                        self.at,
                        f"List index is not within the allowable range; index: [{index}]",
                    )
                parts.append(index)
                self.at += 1
                self.expect("]")
            else:
                return syntax.ParsedPath(tuple(parts))

    def path_name(self) -> str:
        """A name in a path, or its placeholder."""
        token = self.token
        if token.kind is TokenKind.WORD:
            if token.text.upper() in _KEYWORDS:
                self.fail()
            if is_reserved(token.text):
                self.fault(
                    self.at,
                    f"Attribute name is a reserved keyword; reserved keyword: {token.text}",
                )
        elif token.kind is not TokenKind.NAME:
            self.fail()
        self.at += 1
        return token.text

    def fault(self, at: int, message: str) -> None:
        """Record a fault of the token at this position; ``finish`` raises the leftmost one."""
        self.faults.append((at, message))

    def value_operand(self, depth: int = 1) -> syntax.Operand:
        """A path, a value, or a call that returns a value, with or without parentheses."""
        opened = self.open_groups()
        place = self.at
        operand = self.bare_operand(depth)
        self.check_as_value(operand, place)
        while opened:
            self.expect(")")
            self.close_group(opened.pop())
        return operand

    def open_groups(self) -> list[int]:
        """Consume opening parentheses, and return their positions."""
        opened = []
        while self.accept("("):
            opened.append(self.at - 1)
        return opened

    def close_group(self, opening: int) -> None:
        """Record the parenthesis just consumed as the partner of the one at ``opening``.

        Two directly nested pairs of parentheses are a fault, even if the text has other faults.
        """
        closing = self.at - 1
        if (opening + 1, closing - 1) in self.groups:
            raise invalid(self.kind, "The expression has redundant parentheses;")
        self.groups.add((opening, closing))

    def bare_operand(self, depth: int = 1) -> syntax.Operand:
        """A path, a value or a call without parentheses around it."""
        token = self.token
        if token.kind is TokenKind.VALUE:
            self.at += 1
            return syntax.Value(token.text)
        following = self.tokens[self.at + 1] if token.kind is TokenKind.WORD else token
        if following.text != "(" or token.text.upper() in _KEYWORDS:
            return self.path()
        if depth > EXPRESSION_OPERATORS:
            raise self.too_many_operators()
        place = self.at
        self.at += 2
        self.operators += 1
        if token.text in self.foreign_functions:
            self.fault(
                place,
                f"The function is not allowed in {self.language} expression; "
                f"function: {token.text}",
            )
        elif token.text not in self.functions:
            self.fault(place, f"Invalid function name; function: {token.text}")
        operands = [self.value_operand(depth + 1)]
        while self.accept(","):
            operands.append(self.value_operand(depth + 1))
        self.expect(")")
        return syntax.Function(token.text, tuple(operands))

    def check_as_value(self, operand: syntax.Operand, place: int) -> None:
        """Record a fault if an operand is a call that returns no value."""
        if isinstance(operand, syntax.Function) and self.functions.get(operand.name) is False:
            self.misplaced(operand, place)

    def misplaced(self, function: syntax.Function, place: int) -> None:
        """Record the fault of a call that is not allowed at its position."""
        self.fault(
            place,
            "The function is not allowed to be used this way in an expression; "
            f"function: {function.name}",
        )


class _ParsedGroup:
    """An incomplete condition: the whole text, or the content of one pair of parentheses.

    ``alternatives`` are the operands of OR, ``conjuncts`` the conditions joined by AND since the
    last OR, and ``negations`` counts the NOTs before the next condition.
    """

    __slots__ = ("alternatives", "conjuncts", "negations", "opening")

    def __init__(self, opening: int) -> None:
        self.opening = opening
        self.alternatives: list[syntax.Condition] = []
        self.conjuncts: list[syntax.Condition] = []
        self.negations = 0

    @property
    def is_fresh(self) -> bool:
        """Whether no token precedes the first operand in its parentheses."""
        return not (self.alternatives or self.conjuncts or self.negations)

    def add(self, condition: syntax.Condition) -> None:
        for _ in range(self.negations):
            condition = syntax.ParsedNot(condition)
        self.negations = 0
        self.conjuncts.append(condition)

    def divide(self) -> None:
        """Start the next alternative, after an OR."""
        self.alternatives.append(self._conjunction())
        self.conjuncts = []

    def close(self) -> syntax.Condition:
        last = self._conjunction()
        return syntax.ParsedOr((*self.alternatives, last)) if self.alternatives else last

    def _conjunction(self) -> syntax.Condition:
        return (
            self.conjuncts[0]
            if len(self.conjuncts) == 1
            else syntax.ParsedAnd(tuple(self.conjuncts))
        )


class _ConditionParser(_LanguageParser):
    """Conditions, with their open parentheses on a stack of groups.

    An opening parenthesis may begin a condition or an operand, ``(a = :a)`` or ``(a) = :a``. It is
    parsed as a group, which is dropped if it turns out to hold only an operand.
    """

    # DynamoDB reports the size of a text that is too long only for conditions.
    shows_size = True

    def parse(self) -> syntax.Condition:
        groups = [_ParsedGroup(opening=-1)]
        while True:
            self.open(groups)
            place = self.at
            operand = self.bare_operand()
            while len(groups) > 1 and groups[-1].is_fresh and self.accept(")"):
                self.close_group(groups.pop().opening)
            groups[-1].add(self.condition(operand, place))
            while len(groups) > 1 and self.accept(")"):
                group = groups.pop()
                self.close_group(group.opening)
                groups[-1].add(group.close())
            if self.accept_keyword("OR"):
                groups[-1].divide()
            elif not self.accept_keyword("AND"):
                break
            self.operators += 1
        if len(groups) > 1:
            self.fail()
        self.finish()
        return groups[0].close()

    def open(self, groups: list[_ParsedGroup]) -> None:
        """Consume the prefix of a condition: NOT and opening parentheses."""
        while True:
            if self.accept_keyword("NOT"):
                self.operators += 1
                groups[-1].negations += 1
            elif self.accept("("):
                groups.append(_ParsedGroup(opening=self.at - 1))
            else:
                return

    def condition(self, operand: syntax.Operand, place: int) -> syntax.Condition:
        """The condition that begins with this operand at ``place``."""
        token = self.token
        if token.kind is TokenKind.SYMBOL and token.text in _COMPARATORS:
            self.at += 1
            self.operators += 1
            self.check_as_value(operand, place)
            return syntax.ParsedComparison(
                cast("syntax.Comparator", token.text), operand, self.value_operand()
            )
        if self.accept_keyword("BETWEEN"):
            self.operators += 1
            self.check_as_value(operand, place)
            lower = self.value_operand()
            if not self.accept_keyword("AND"):
                self.fail()
            return syntax.ParsedBetween(operand, lower, self.value_operand())
        if self.accept_keyword("IN"):
            self.operators += 1
            self.check_as_value(operand, place)
            self.expect("(")
            choices = [self.value_operand()]
            while self.accept(","):
                choices.append(self.value_operand())
            self.expect(")")
            return syntax.ParsedIn(operand, tuple(choices))
        if not isinstance(operand, syntax.Function):
            self.fail()
        if self.functions.get(operand.name):
            self.misplaced(operand, place)
        return operand


class _UpdateParser(_LanguageParser):
    functions = _UPDATE_FUNCTIONS
    foreign_functions = _CONDITION_FUNCTIONS
    language = "an update"

    def parse(self) -> tuple[syntax.Clause, ...]:
        """The whole text as sections."""
        clauses = [self.clause()]
        while self.token.kind is not TokenKind.END:
            clauses.append(self.clause())
        self.finish()
        keywords = [clause.keyword for clause in clauses]
        for at, keyword in enumerate(keywords):
            if keyword in keywords[:at]:
                raise invalid(
                    self.kind,
                    f'The "{keyword}" section can only be used once in an update expression;',
                )
        return tuple(clauses)

    def clause(self) -> syntax.Clause:
        """A section: its keyword and its actions."""
        token = self.token
        keyword = token.text.upper()
        if token.kind is not TokenKind.WORD or keyword not in _SECTIONS:
            self.fail()
        self.at += 1
        actions = [self.action(keyword)]
        while self.accept(","):
            actions.append(self.action(keyword))
        return syntax.Clause(keyword, tuple(actions))

    def action(self, keyword: str) -> syntax.Action:
        path = self.path()
        if keyword == "REMOVE":
            return syntax.ParsedRemove(path)
        if keyword == "SET":
            self.expect("=")
            return syntax.ParsedSet(path, self.right_side())
        token = self.token
        if token.kind is not TokenKind.VALUE:
            self.fail()
        self.at += 1
        value = syntax.Value(token.text)
        return (
            syntax.ParsedAdd(path, value) if keyword == "ADD" else syntax.ParsedDelete(path, value)
        )

    def right_side(self) -> syntax.Operand:
        """The new value of a path: an operand, or a sum or difference of two."""
        opened = self.open_groups()
        place = self.at
        operand = self.bare_operand()
        while opened and self.accept(")"):
            self.close_group(opened.pop())
        token = self.token
        if token.kind is TokenKind.SYMBOL and token.text in ("+", "-"):
            self.at += 1
            self.operators += 1
            self.check_as_value(operand, place)
            operand = syntax.Arithmetic(
                cast("syntax.ArithmeticOperator", token.text), operand, self.value_operand()
            )
            while opened and self.accept(")"):
                self.close_group(opened.pop())
        if opened:
            self.fail()
        return operand


class _ProjectionParser(_LanguageParser):
    def parse(self) -> tuple[syntax.ParsedPath, ...]:
        """The whole text as paths."""
        paths = [self.path()]
        while self.accept(","):
            paths.append(self.path())
        self.finish()
        return tuple(paths)
