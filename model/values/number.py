"""DynamoDB's numbers: exact decimals of at most 38 digits, kept in canonical plain text.

A number is always text: as the client sent it, then canonical (``1e3`` is ``1000``, ``-0`` is
``0``), so equal numbers are equal texts. ``encode`` returns bytes that sort as the numbers do.
DynamoDB hashes the same bytes for a numeric partition key.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation, Rounded
from functools import lru_cache
from typing import Final

from dynactor.model.errors import ValidationException
from dynactor.model.limits import NUMBER_DIGITS, NUMBER_EXPONENT_MAX, NUMBER_EXPONENT_MIN
from dynactor.model.validation_faults import RefusedNumber

# The form of nearly every number, which is already canonical: an integer, or few digits on either
# side of a point with a last digit other than zero.
_PLAIN: Final = re.compile(r"(?:0|-?[1-9][0-9]{0,36}|-?(?:0|[1-9][0-9]{0,17})\.[0-9]{0,17}[1-9])\Z")
_WHOLE_DIGITS: Final = 37
# Each run of digits ends at one place only, so a long invalid text fails in linear time.
_NUMBER: Final = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?\Z"
)
# The older request layer keeps exponents in Java's int.
_EXPONENT_BITS: Final = 32
# An exponent with more digits is out of range in any case. It is cut, because int() refuses texts
# of 4,301 digits.
_EXPONENT_DIGITS: Final = 20

_OVERFLOW: Final = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)

# Wide enough for the exact sum of any two numbers of DynamoDB's range.
_EXACT: Final = Context(
    prec=300, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation, Inexact, Rounded]
)

_ZERO_BYTES: Final = b"\x80"
# Ends a negative number, so the longer of two numbers with a common prefix sorts first.
_NEGATIVE_END: Final = 102
_NEGATIVE_END_BYTE: Final = bytes([_NEGATIVE_END])
# Indexed by two digits as one byte, 0x42 for "42": the byte of the pair, 43, and its inverse, 59.
_PAIR_BYTES: Final = bytes((code >> 4) * 10 + (code & 0xF) + 1 & 0xFF for code in range(256))
_TURNED_PAIR_BYTES: Final = bytes(102 - byte & 0xFF for byte in _PAIR_BYTES)
_MANTISSA_BYTES: Final = 20
# The encoded exponent of 0.99: its decimal point is before the first significant digit.
_POINT_AT_ONE: Final = 192


def is_plain(text: str) -> bool:
    """Whether a text is a number in the most common form, which is canonical."""
    return _PLAIN.match(text) is not None


def whole_size_bytes(text: str) -> int:
    """The size of a positive canonical integer, the most common number; 0 for any other text.

    One call replaces the calls of ``canonical`` and ``size_bytes``.
    """
    digits = len(text)
    if digits > _WHOLE_DIGITS or not text.isdigit() or text[0] == "0" or not text.isascii():
        return 0
    return 1 + (digits + 1) // 2 - (digits - len(text.rstrip("0"))) // 2


def canonical(text: str) -> str:
    """The canonical spelling of a number: plain decimal, no leading or trailing zeros.

    Raises:
        ValidationException: the text is not a number, has more than 38 significant digits, or is
            outside 1E-130 to 9.9…E+125 and their negatives. A zero is out of range if its exponent
            is. The message is the older request layer's.
    """
    if _PLAIN.match(text) is not None:
        return text
    try:
        return _canonical(text, _EXPONENT_BITS)
    except ValidationException as error:
        error.fault = RefusedNumber(text)
        raise


def number_fault(text: str, exponent_bits: int) -> str:
    """The message for a text that ``canonical`` refuses, with exponents of this many bits.

    With 64 bits, as in the newer request layer, the message shows even an empty invalid text.
    """
    try:
        _canonical(text, exponent_bits)
    except ValidationException as error:
        return error.message
    raise AssertionError("a refused number")


def _canonical(text: str, exponent_bits: int) -> str:
    found = _NUMBER.match(text)
    if found is None:
        raise _no_number(text, exponent_bits)
    sign, whole, fraction, lone_fraction, exponent_text = found.groups(default="")
    fraction = fraction or lone_fraction
    exponent = 0
    if exponent_text:
        exponent = _exponent(exponent_text)
        least = -(1 << exponent_bits - 1)
        # Java stores the scale of a number, which is the negated exponent, in this many bits.
        if not least <= exponent < -least or exponent - len(fraction) <= least:
            raise _no_number(text, exponent_bits)
    exponent -= len(fraction)
    digits = (whole + fraction).lstrip("0").rstrip("0")
    if not digits:
        _check_magnitude(_wrapped(exponent + 1, exponent_bits) - 1)
        return "0"
    return _plain(sign == "-", whole + fraction, exponent, exponent_bits)


def _no_number(text: str, exponent_bits: int) -> ValidationException:
    what = "The parameter cannot be converted to a numeric value"
    if text == "" and exponent_bits == _EXPONENT_BITS:
        return ValidationException(what)
    return ValidationException(f"{what}: {text}")


def _exponent(text: str) -> int:
    """The value of an exponent; if it has too many digits, another value out of range."""
    negative = text[0] == "-"
    digits = text.lstrip("+-").lstrip("0")[:_EXPONENT_DIGITS]
    value = int(digits or "0")
    return -value if negative else value


def _wrapped(number: int, bits: int) -> int:
    """Wrap a number to a signed integer of this many bits, so a large one becomes negative."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half


def _check_magnitude(magnitude: int) -> None:
    if magnitude > NUMBER_EXPONENT_MAX:
        raise ValidationException(_OVERFLOW)
    if magnitude < NUMBER_EXPONENT_MIN:
        raise ValidationException(
            "Number underflow. Attempting to store a number with magnitude smaller than "
            "supported range"
        )


def _plain(negative: bool, digits: str, exponent: int, exponent_bits: int = _EXPONENT_BITS) -> str:
    """The canonical text of ``digits`` times ten to the ``exponent``."""
    significant = digits.lstrip("0")
    trimmed = significant.rstrip("0")
    if not trimmed:
        return "0"
    exponent += len(significant) - len(trimmed)
    magnitude = exponent + len(trimmed) - 1
    if len(trimmed) > NUMBER_DIGITS:
        raise ValidationException("Attempting to store more than 38 significant digits in a Number")
    # Java computes the position of the decimal point, magnitude + 1, in this many bits.
    _check_magnitude(_wrapped(magnitude + 1, exponent_bits) - 1)
    if exponent >= 0:
        plain = trimmed + "0" * exponent
    elif magnitude >= 0:
        plain = f"{trimmed[:exponent]}.{trimmed[exponent:]}"
    else:
        plain = "0." + "0" * (-magnitude - 1) + trimmed
    return "-" + plain if negative else plain


def _result(number: Decimal) -> str:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    if len(text.strip("0")) > NUMBER_DIGITS:
        # DynamoDB reports too many digits in a result as an overflow, unlike in a request.
        raise ValidationException(_OVERFLOW)
    return _plain(sign == 1, text, exponent)


def add(left: str, right: str) -> str:
    """The exact sum of two canonical numbers; raises ``ValidationException`` if out of range."""
    return _result(_EXACT.add(Decimal(left), Decimal(right)))


def subtract(left: str, right: str) -> str:
    """The exact difference of two canonical numbers; raises as ``add`` does."""
    return _result(_EXACT.subtract(Decimal(left), Decimal(right)))


def size_bytes(text: str) -> int:
    """The DynamoDB size of a canonical number, 1 to 21 bytes.

    About one byte per two significant digits plus one, with zeros at both ends trimmed; a negative
    sign costs one ("DynamoDB item sizes and formats"). Digits are counted in pairs from the decimal
    point, as they are stored. The result is the length of ``encode``, computed ten times faster.
    """
    digits = len(text)
    if text.isdigit():
        # Nearly every number is whole and positive.
        zeros = digits - len(text.rstrip("0"))
        return 1 + (digits + 1) // 2 - zeros // 2 if zeros < digits else len(_ZERO_BYTES)
    negative = text[0] == "-"
    whole, _, fraction = (text[1:] if negative else text).partition(".")
    pairs = _pairs(len(whole)) + _pairs(len(fraction))
    if not fraction:
        pairs -= (len(whole) - len(whole.rstrip("0"))) // 2
    elif whole == "0":
        zeros = len(fraction) - len(fraction.lstrip("0"))
        pairs -= 1 + zeros // 2
    return 1 + pairs + (negative and pairs < _MANTISSA_BYTES)


def _pairs(digits: int) -> int:
    return (digits + 1) // 2


@lru_cache(maxsize=4096)
def encode(text: str) -> bytes:
    """Bytes (1 to 21) that sort as the numbers do; no mantissa byte is zero.

    The form is DynamoDB's own, known from the order of its scans: an exponent of 100, then digits
    in pairs plus one. A negative number has all bytes inverted and an end mark.
    """
    if text == "0":
        return _ZERO_BYTES
    negative = text[0] == "-"
    whole, _, fraction = (text[1:] if negative else text).partition(".")
    if whole != "0":
        point, digits = len(whole), whole + fraction
    else:
        digits = fraction.lstrip("0")
        point = len(digits) - len(fraction)
    if point % 2:
        digits, point = "0" + digits, point + 1
    digits = digits.rstrip("0")
    if len(digits) % 2:
        digits += "0"
    exponent = (point // 2 - 64) & 0xFF
    # Two digits form one hexadecimal byte, and a table maps it to the pair's byte.
    pairs = bytes.fromhex(digits)
    if not negative:
        return bytes((exponent,)) + pairs.translate(_PAIR_BYTES)
    end = _NEGATIVE_END_BYTE if len(pairs) < _MANTISSA_BYTES else b""
    return bytes((exponent ^ 0xFF,)) + pairs.translate(_TURNED_PAIR_BYTES) + end


def decode(encoded: bytes) -> str:
    """The canonical number from ``encode``'s bytes."""
    if encoded == _ZERO_BYTES:
        return "0"
    negative = encoded[0] < _ZERO_BYTES[0]
    if negative:
        mantissa = encoded[1:].removesuffix(bytes([_NEGATIVE_END]))
        exponent, pairs = encoded[0] ^ 0xFF, [101 - byte for byte in mantissa]
    else:
        exponent, pairs = encoded[0], [byte - 1 for byte in encoded[1:]]
    digits = "".join(f"{pair:02}" for pair in pairs)
    return _plain(negative, digits, (exponent - _POINT_AT_ONE) * 2 - len(digits))
