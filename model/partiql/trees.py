"""Converts PartiQL's expressions into trees of DynamoDB's expression language.

Therefore the same code binds and evaluates statements and expressions. This module converts the
syntax that differs between the two languages, and refuses syntax that DynamoDB does not support.

Source of the messages: DynamoDB Local 3.3.
"""

from __future__ import annotations

from typing import Final, cast

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import syntax as expressions
from dynactor.model.partiql import literals, syntax
from dynactor.model.partiql.syntax import Expression
from dynactor.model.values.attribute_value import AttributeValue

_CONDITION_FUNCTIONS: Final = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
_UPDATE_FUNCTIONS: Final = frozenset({"if_not_exists", "list_append"})
_SET_ACTIONS: Final = frozenset({"set_add", "set_delete"})
_SET_ARGUMENTS: Final = 2
_CONDITION_OPERATORS: Final = frozenset({"and", "or", "not", "between", "in", "is"})
_COMPARATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})

# The types that IS accepts besides MISSING, and DynamoDB's type for each.
_TYPES: Final = {
    "null": "NULL",
    "boolean": "BOOL",
    "blob": "B",
    "string": "S",
    "numeric": "N",
    "struct": "M",
    "tuple": "M",
    "list": "L",
}
_NO_BOOLEAN: Final = "WHERE clause must contain an expression that resolves to a boolean"
_NO_CONDITION: Final = "The arguments to AND/OR must be Expressions"
_NOTHING_TO_NEGATE: Final = "The argument to NOT must be a Type or Expression"
_NO_SEQUENCE: Final = (
    "IN operator must have a left hand argument of type Variable Reference and right hand "
    "argument of type Seq with at least one member"
)


class TreeBuilder:
    """Builds the trees of one statement; ``values`` are its literals, by their names in the trees.

    Parameters have names, too, by their positions: ``parameter_name``.
    """

    def __init__(self) -> None:
        self.values: dict[str, AttributeValue] = {}
        # The parameters that must be sets, each with the message for other types.
        self.sets: dict[str, str] = {}

    def value(self, expression: Expression) -> expressions.Value:
        """A literal or parameter; raises ``ValidationException`` if the expression is no value."""
        if isinstance(expression, syntax.Parameter):
            return expressions.Value(parameter_name(expression.position))
        name = f":{len(self.values)}"
        self.values[name] = literals.literal_value(expression)
        return expressions.Value(name)

    # Conditions.

    def condition(self, expression: Expression) -> expressions.Condition:
        """A condition; raises ``ValidationException`` if DynamoDB does not support it."""
        match expression:
            case syntax.OperationNode("and", operands):
                return expressions.ParsedAnd(self._conditions(operands, _NO_CONDITION))
            case syntax.OperationNode("or", operands):
                return expressions.ParsedOr(self._conditions(operands, _NO_CONDITION))
            case syntax.OperationNode("not", operands):
                return expressions.ParsedNot(*self._conditions(operands, _NOTHING_TO_NEGATE))
            case syntax.OperationNode("between", (operand, lower, upper)):
                return expressions.ParsedBetween(*map(self.comparand, (operand, lower, upper)))
            case syntax.OperationNode("in", (operand, choices)):
                return self._choice(operand, choices)
            case syntax.OperationNode("is"):
                return self._type_test(expression)
            case syntax.OperationNode("=" | "<>", (left, right)) if _is_test(left, right):
                return self._tested(expression)
            case syntax.OperationNode(operator, (left, right)) if operator in _COMPARATORS:
                comparator = cast("expressions.Comparator", operator)
                return expressions.ParsedComparison(comparator, *map(self.comparand, (left, right)))
            case syntax.OperationNode(operator):
                raise _unsupported_operator("Condition", operator)
            case syntax.CallNode(name, arguments) if _function(name) in _CONDITION_FUNCTIONS:
                return expressions.Function(_function(name), tuple(map(self.operand, arguments)))
            case syntax.CallNode(name) if _function(name) != "size":
                raise self._no_condition_function(expression)
            case syntax.Unsupported():
                self.plain_operand(expression)
        raise ValidationException(_NO_BOOLEAN)

    def _tested(self, test: syntax.OperationNode) -> expressions.Condition:
        left, right = test.operands
        if isinstance(left, syntax.Literal):
            left, right = right, left
        assert isinstance(right, syntax.Literal)
        condition = self.condition(left)
        wanted = right.value["BOOL"] is (test.operator == "=")
        return condition if wanted else expressions.ParsedNot(condition)

    def _conditions(
        self, operands: tuple[Expression, ...], otherwise: str
    ) -> tuple[expressions.Condition, ...]:
        """The operands of AND, OR or NOT; ``otherwise`` is the message if one is a value."""
        joined = tuple(map(self._joined, operands))
        conditions = tuple(
            tree
            for tree in joined
            if not isinstance(tree, expressions.ParsedPath | expressions.Value)
        )
        if len(conditions) < len(joined):
            raise ValidationException(otherwise)
        return conditions

    def _joined(
        self, expression: Expression
    ) -> expressions.Condition | expressions.ParsedPath | expressions.Value:
        """A condition or a value. A call of ``size`` is accepted; binding refuses it later."""
        match expression:
            case syntax.CallNode(name, arguments) if _function(name) == "size":
                return expressions.Function("size", tuple(map(self.operand, arguments)))
            case syntax.OperationNode() | syntax.CallNode():
                return self.condition(expression)
        return self.plain_operand(expression)

    def _choice(self, operand: Expression, choices: Expression) -> expressions.Condition:
        if not (isinstance(choices, syntax.Sequence) and choices.elements):
            raise ValidationException(_NO_SEQUENCE)
        return expressions.ParsedIn(
            self.comparand(operand), tuple(map(self.comparand, choices.elements))
        )

    def _type_test(self, test: syntax.OperationNode) -> expressions.Condition:
        operand, wanted = test.operands
        assert isinstance(wanted, syntax.TypeName)
        if not isinstance(operand, syntax.VariableNode | syntax.Path | syntax.Literal):
            raise ValidationException(
                "The left hand side argument to IS must be a Variable Reference, Literal, or Path"
            )
        tested = self.operand(operand)
        if wanted.name == "missing":
            return expressions.Function("attribute_not_exists", (tested,))
        type_name = _TYPES.get(wanted.name)
        if type_name is None:
            raise ValidationException(
                f"Unsupported data type for IS operator: {wanted.name.upper()}. Supported data "
                "types are [MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST]"
                f"{test.token.at}"
            )
        wanted_type = syntax.Literal({"S": type_name}, wanted.token)
        return expressions.Function("attribute_type", (tested, self.value(wanted_type)))

    def comparand(self, expression: Expression) -> expressions.Operand:
        """An operand of a comparison or of IN: a function's outcome is a value, too."""
        match expression:
            case syntax.CallNode(name, arguments) if _function(name) in _CONDITION_FUNCTIONS:
                return expressions.Function(_function(name), tuple(map(self.operand, arguments)))
        return self.operand(expression)

    def operand(self, expression: Expression) -> expressions.Operand:
        """An operand of a condition."""
        match expression:
            case syntax.CallNode(name, arguments) if _function(name) == "size":
                operands = tuple(map(self.operand, arguments))
                return expressions.Function("size", operands)
            case syntax.CallNode(name) if _function(name) in _CONDITION_FUNCTIONS:
                raise ValidationException(
                    "The function is not allowed to be used this way in an expression; "
                    f"function: {_function(name)}"
                )
            case syntax.CallNode():
                raise self._no_condition_function(expression)
            case syntax.OperationNode(operator):
                raise _unsupported_operator("Condition", operator)
        return self.plain_operand(expression)

    def plain_operand(self, expression: Expression) -> expressions.ParsedPath | expressions.Value:
        """An operand of conditions and updates alike: a path or a value."""
        match expression:
            case syntax.VariableNode() | syntax.Path():
                return expression_path(expression)
            case syntax.Missing():
                raise ValidationException("MISSING must be compared using IS operator")
            case syntax.Subquery(_, token):
                raise ValidationException(f"Unsupported token in expression: SELECT{token.at}")
            case syntax.Unsupported(_, shown, token):
                raise ValidationException(f"Unsupported token in expression: {shown}{token.at}")
            case syntax.Star(token):
                raise ValidationException(f"Unexpected path component{token.at}")
        return self.value(expression)

    def _no_condition_function(self, call: syntax.CallNode) -> ValidationException:
        """The error for a function that conditions don't have, or for a fault in its arguments."""
        function = _function(call.name)
        if call.is_aggregate:
            return ValidationException(
                f"Unsupported token in expression: {function}{call.token.at}"
            )
        for argument in call.arguments:
            self.operand(argument)
        if function in _UPDATE_FUNCTIONS:
            return ValidationException(
                f"The function is not allowed in a condition expression; function: {function}"
            )
        return _unknown_function(call)

    # Updates.

    def clause(self, action: syntax.Assignment | syntax.Removal) -> expressions.Clause:
        """Wrap one action of an update in a separate section; raises ``ValidationException``."""
        path = expression_path(action.path)
        if isinstance(action, syntax.Removal):
            return expressions.Clause("REMOVE", (expressions.ParsedRemove(path),))
        value = action.value
        if isinstance(value, syntax.CallNode) and value.name.lower() in _SET_ACTIONS:
            return self._set_action(path, value)
        return expressions.Clause("SET", (expressions.ParsedSet(path, self.right_side(value)),))

    def _set_action(
        self, path: expressions.ParsedPath, call: syntax.CallNode
    ) -> expressions.Clause:
        name = call.name.upper()
        if len(call.arguments) != _SET_ARGUMENTS:
            raise ValidationException(f"{name} must have exactly two arguments{call.token.at}")
        first, second = call.arguments
        if (
            not isinstance(first, syntax.VariableNode | syntax.Path)
            or expression_path(first) != path
        ):
            raise ValidationException(
                f"The first argument to {name} must equal the assignment value{call.token.at}"
            )
        # DynamoDB's messages show a position for a name, and none for a path.
        place = first.token.at if isinstance(first, syntax.VariableNode) else ""
        no_set = f"The second argument to {name} must be a value with type SET{place}"
        is_bag = isinstance(second, syntax.Sequence) and second.is_bag
        if isinstance(second, syntax.Sequence) and second.is_bag and not second.elements:
            # In other cases, the message shows the position of the bag.
            raise ValidationException(literals.EMPTY_BAG)
        if isinstance(second, syntax.Sequence | syntax.Tuple):
            # DynamoDB reports faults within the value first.
            literals.literal_value(second)
        if not (is_bag or isinstance(second, syntax.Parameter)):
            raise ValidationException(no_set)
        value = self.value(second)
        if not is_bag:
            self.sets[value.name] = no_set
        if name == "SET_ADD":
            return expressions.Clause("ADD", (expressions.ParsedAdd(path, value),))
        return expressions.Clause("DELETE", (expressions.ParsedDelete(path, value),))

    def right_side(self, expression: Expression) -> expressions.Operand:
        """The new value of a path."""
        match expression:
            case syntax.OperationNode("+" | "-" as operator, sides):
                if len(sides) == 1:
                    raise ValidationException(
                        "Incorrect number of operands for operator or function; "
                        f"operator or function: {operator}, number of operands: 1"
                    )
                left, right = map(self.right_side, sides)
                return expressions.Arithmetic(operator, left, right)
            case syntax.OperationNode("is"):
                raise ValidationException("IS operator is not supported in update expressions")
            case syntax.OperationNode(operator):
                raise _unsupported_operator("Update", operator)
            case syntax.CallNode(name, arguments):
                function = _function(name)
                operands = tuple(map(self.right_side, arguments))
                if function in _UPDATE_FUNCTIONS:
                    return expressions.Function(function, operands)
                if function in _CONDITION_FUNCTIONS or function == "size":
                    raise ValidationException(
                        f"The function is not allowed in an update expression; function: {function}"
                    )
                raise _unknown_function(expression)
        return self.plain_operand(expression)


def parameter_name(position: int) -> str:
    """The name in the trees of the parameter at this position, counted from 0."""
    return f"?{position}"


def expression_path(expression: Expression) -> expressions.ParsedPath:
    """A document path; raises ``ValidationException`` if the expression is not a path."""
    if isinstance(expression, syntax.VariableNode):
        literals.check_name(expression.name)
        return expressions.ParsedPath((expression.name,))
    if not isinstance(expression, syntax.Path):
        raise _no_component(expression)
    root = expression.root
    if isinstance(root, syntax.Sequence):
        raise ValidationException(f"A path cannot start with a list index{root.token.at}")
    if not isinstance(root, syntax.VariableNode):
        raise _no_component(expression)
    literals.check_name(root.name)
    parts = (root.name, *map(_part, expression.steps))
    return expressions.ParsedPath(parts)


def _part(step: Expression) -> str | int:
    match step:
        case syntax.Star(token, in_brackets):
            kind, example = ("Wildcard", "a[*].b") if in_brackets else ("Unpivot", "a.*.b")
            raise ValidationException(
                f"{kind} path component like {example} are not supported{token.at}"
            )
        case syntax.Literal({"S": name}) | syntax.VariableNode(name):
            # DynamoDB treats a name in brackets as the member of that name.
            literals.check_name(name)
            return str(name)
        case syntax.Literal({"N": text}) if text.removeprefix("-").isdigit():
            index = int(text)
            if not 0 <= index <= _INDEX_MAX:
                raise ValidationException(
                    f"List index is not within the allowable range; index: [{index}]{step.token.at}"
                )
            return index
    raise _no_component(step)


_INDEX_MAX: Final = 2**31 - 1


def _is_test(left: Expression, right: Expression) -> bool:
    """Whether one of two expressions is a condition and the other TRUE or FALSE."""
    return (_is_condition(left) and _is_boolean(right)) or (
        _is_boolean(left) and _is_condition(right)
    )


def _is_boolean(expression: Expression) -> bool:
    return isinstance(expression, syntax.Literal) and "BOOL" in expression.value


def _is_condition(expression: Expression) -> bool:
    match expression:
        case syntax.OperationNode(operator):
            return operator in _COMPARATORS or operator in _CONDITION_OPERATORS
        case syntax.CallNode(name):
            return _function(name) in _CONDITION_FUNCTIONS
        case _:
            return False


def _no_component(expression: Expression) -> ValidationException:
    return ValidationException(f"Unexpected path component{expression.token.at}")


def _function(name: str) -> str:
    """A function's name in the expression language; PartiQL ignores case."""
    return name.lower()


def _unsupported_operator(kind: str, operator: str) -> ValidationException:
    return ValidationException(f"Unsupported operator in {kind} Expression. Operator: {operator}")


def _unknown_function(call: syntax.CallNode) -> ValidationException:
    return ValidationException(f"Unrecognized function: {call.name}{call.token.at}")
