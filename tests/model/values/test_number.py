"""Numbers: canonical text, exact sums, sizes, and bytes that sort as the numbers do."""

from __future__ import annotations

from decimal import Decimal, localcontext
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynactor.model.errors import ValidationException
from dynactor.model.values import number

NINES = "9" * 38


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """Any valid number in canonical form."""
    digits = draw(st.integers(-(10**38) + 1, 10**38 - 1))
    length = len(str(abs(digits)))
    exponent = draw(st.integers(-130 - length + 1, 126 - length))
    return number.canonical(f"{digits}e{exponent}")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("+0", "0"),
        ("0.000", "0"),
        ("-0e5", "0"),
        ("0e125", "0"),
        ("0e-130", "0"),
        ("0.000e128", "0"),
        ("1", "1"),
        ("+3", "3"),
        ("-3", "-3"),
        ("007", "7"),
        ("1.", "1"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("1.50", "1.5"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1e+3", "1000"),
        ("1000", "1000"),
        ("1000.0", "1000"),
        ("12.34e1", "123.4"),
        ("12.34e2", "1234"),
        ("12.34e-1", "1.234"),
        ("12.34e-2", "0.1234"),
        ("12.34e-3", "0.01234"),
        ("-12.34e-3", "-0.01234"),
        ("0.00001e5", "1"),
        (f"{NINES}e-19", f"{'9' * 19}.{'9' * 19}"),
        ("1e125", "1" + "0" * 125),
        ("-1e125", "-1" + "0" * 125),
        ("1e-130", "0." + "0" * 129 + "1"),
        ("12e-131", "0." + "0" * 129 + "12"),
        (f"{NINES}e88", NINES + "0" * 88),
        ("1" + "0" * 100, "1" + "0" * 100),
        ("0" * 100 + "1", "1"),
        ("1." + "0" * 100, "1"),
        (NINES, NINES),
        ("1" + "0" * 36 + "1", "1" + "0" * 36 + "1"),
    ],
)
def test_a_number_has_one_spelling(text, plain):
    assert number.canonical(text) == plain


@given(numbers())
def test_canonical_text_is_its_own_canonical_text_and_the_same_number(text):
    assert number.canonical(text) == text
    assert number.canonical(f"{Decimal(text):E}") == text


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-60, 60))
def test_canonical_text_has_the_value_of_the_original(digits, exponent):
    plain = number.canonical(f"{digits}e{exponent}")

    with localcontext(prec=200):
        assert Decimal(plain) == Decimal(digits).scaleb(exponent)
    assert "e" not in plain.lower()
    assert not plain.startswith(("+", "."))
    assert "." not in plain or not plain.endswith(("0", "."))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " 1",
        "1 ",
        "1\n",
        "a",
        "1a",
        "--1",
        "+-1",
        ".",
        "-",
        "1..2",
        "1.2.3",
        "1e",
        "e5",
        "1e5.0",
        "1e1e1",
        "0x10",
        "1_000",
        "1,000",
        "NaN",
        "nan",
        "Infinity",
        "-inf",
        "\N{FULLWIDTH DIGIT ONE}",
        "\N{ARABIC-INDIC DIGIT ONE}",
        "1e9999999999",
    ],
)
def test_an_invalid_number_is_refused(text):
    with pytest.raises(ValidationException) as error:
        number.canonical(text)

    message = "The parameter cannot be converted to a numeric value"
    assert error.value.message == (f"{message}: {text}" if text else message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e126", "overflow"),
        ("-1e126", "overflow"),
        ("10e125", "overflow"),
        ("0e126", "overflow"),
        ("0e-131", "underflow"),
        ("1e2147483646", "overflow"),
        ("1e2147483647", "underflow"),
        ("1e999999999", "overflow"),
        ("1e-131", "underflow"),
        ("-1e-131", "underflow"),
        ("0.1e-130", "underflow"),
        ("1e-999999999", "underflow"),
        ("9" * 39, "38 significant digits"),
        ("1" + "0" * 37 + "1", "38 significant digits"),
        ("0." + "9" * 39, "38 significant digits"),
    ],
)
def test_a_number_out_of_range_is_refused(text, message):
    with pytest.raises(ValidationException, match=message):
        number.canonical(text)


@pytest.mark.parametrize(
    "text",
    [
        "1" * 8_000_000,
        "1" * 50_000 + "x",
        "1" * 50_000 + ".5.",
        "1" * 50_000 + "e5e",
        "." + "1" * 50_000 + "x",
    ],
    ids=["digits", "a letter", "a second point", "a second exponent", "a fraction and a letter"],
)
def test_a_long_text_is_refused_at_once(text):
    """The check blocks the event loop, so it must cost less than a look at 8 million characters."""
    started = process_time()
    with pytest.raises(ValidationException):
        number.canonical(text)
    refused = process_time()
    assert sum(map(ord, "1" * 8_000_000))

    assert refused - started < process_time() - refused


@given(numbers(), numbers())
@example("0.1", "0.2")
@example(NINES, "1")
@example("1e125", "-1e125")
def test_sums_and_differences_are_exact_or_refused(left, right):
    left, right = number.canonical(left), number.canonical(right)
    with localcontext(prec=400):
        exact = {
            number.add: Decimal(left) + Decimal(right),
            number.subtract: Decimal(left) - Decimal(right),
        }
    for operation, value in exact.items():
        digits = "".join(map(str, value.as_tuple().digits)).strip("0")
        if value and (len(digits) > 38 or not -130 <= value.adjusted() <= 125):
            with pytest.raises(ValidationException):
                operation(left, right)
        else:
            assert operation(left, right) == (number.canonical(str(value)) if value else "0")


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("0.1", "0.2", "0.3"),
        ("1", "-1", "0"),
        (NINES, "1", "1" + "0" * 38),
        ("1" + "0" * 125, "-1" + "0" * 125, "0"),
    ],
)
def test_a_sum_is_canonical(left, right, total):
    assert number.add(left, right) == total
    assert number.subtract(total, right) == left


@pytest.mark.parametrize(
    ("left", "right"),
    [("1" + "0" * 50, "1"), (NINES + "0" * 88, NINES + "0" * 88), ("1", number.canonical("1e-38"))],
)
def test_a_sum_that_does_not_fit_is_refused(left, right):
    with pytest.raises(ValidationException):
        number.add(left, right)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 1),
        ("1", 2),
        ("9", 2),
        ("10", 2),
        ("99", 2),
        ("100", 2),
        ("101", 3),
        ("1234", 3),
        ("12345", 4),
        ("1" + "0" * 125, 2),
        ("1200000000", 2),
        ("0.12", 2),
        ("0.0012", 2),
        ("0.00000000000012", 2),
        ("0.5", 2),
        ("1.5", 3),
        ("-1", 3),
        ("-99", 3),
        ("-12345", 5),
        (NINES, 20),
        ("-" + NINES, 21),
        # 38 digits that begin and end in the middle of a pair.
        ("1" * 37 + ".1", 21),
        ("-" + "1" * 37 + ".1", 21),
    ],
)
def test_a_number_takes_a_byte_for_two_digits_one_more_and_one_for_its_sign(text, size_bytes):
    assert number.size_bytes(text) == size_bytes


@given(numbers())
def test_a_size_is_near_what_aws_documents(text):
    """ "Approximately (1 byte per two significant digits) + (1 byte)", at most 21."""
    digits = text.lstrip("-").replace(".", "").strip("0")
    about = (len(digits) + 1) // 2 + 1 + text.startswith("-")

    assert 1 <= number.size_bytes(text) <= 21
    assert about - 1 <= number.size_bytes(text) <= about + 1


@given(numbers())
@example("0")
@example("0.0012")
@example("-0.1200")
@example("1" + "0" * 125)
@example("-" + NINES)
def test_a_size_is_that_of_the_encoded_number(text):
    assert number.size_bytes(number.canonical(text)) == len(number.encode(number.canonical(text)))


@given(st.integers(1, 10**37 - 1), st.integers(0, 36))
@example(1, 36)
@example(10**37 - 1, 0)
def test_the_usual_number_has_its_size_in_one_step(digits, zeros):
    text = f"{digits}{'0' * zeros}"[:37]
    assert number.whole_size_bytes(text) == number.size_bytes(number.canonical(text))


@pytest.mark.parametrize(
    "text", ["", "0", "01", "-1", "1.5", "1e3", "²", "\u0661", "1 ", "9" * 38, "nine"]
)
def test_the_size_of_an_unusual_number_is_computed_by_the_general_function(text):
    assert not number.whole_size_bytes(text)


@given(numbers(), numbers())
@example("0", "-0.1")
@example("-1", "-1.01")
@example("-" + NINES, "-" + NINES[:-1])
@example("0." + "0" * 129 + "1", "0")
@example("-0." + "0" * 129 + "1", "0")
@example("10", "9")
@example("100", "99.9")
def test_bytes_sort_as_numbers_do(left, right):
    assert (number.encode(left) < number.encode(right)) == (Decimal(left) < Decimal(right))
    assert (number.encode(left) == number.encode(right)) == (left == right)


@given(numbers())
def test_there_is_no_zero_after_the_first_byte(text):
    """A zero byte can therefore end a number within a longer key."""
    encoded = number.encode(text)

    assert 1 <= len(encoded) <= 21
    assert 0 not in encoded[1:]


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("0", "80"),
        ("1", "c102"),
        ("-1", "3e6466"),
        ("12.5", "c10d33"),
        ("100", "c202"),
        ("0.01", "c002"),
        ("-" + NINES, "2c" + "02" * 19 + "66"),
    ],
)
def test_a_number_is_encoded_as_dynamodb_hashes_it(text, encoded):
    """Known from the order of DynamoDB's scans; dynalite has the same form."""
    assert number.encode(text).hex() == encoded
