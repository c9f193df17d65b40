"""Transactions of the unmodified PynamoDB 6."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pynamodb.attributes import NumberAttribute, UnicodeAttribute, VersionAttribute
from pynamodb.connection import Connection
from pynamodb.exceptions import TransactGetError, TransactWriteError
from pynamodb.models import Model
from pynamodb.transactions import TransactGet, TransactWrite

from tests.support.clients.clients import REGION
from tests.support.tables.tables import unique_name


class Account(Model):
    class Meta:
        table_name = unique_name("accounts")
        region = REGION
        aws_access_key_id = "test"
        aws_secret_access_key = "test"
        billing_mode = "PAY_PER_REQUEST"
        max_retry_attempts = 0

    owner = UnicodeAttribute(hash_key=True)
    balance = NumberAttribute(default=0)


class Statement(Model):
    class Meta:
        table_name = unique_name("statements")
        region = REGION
        aws_access_key_id = "test"
        aws_secret_access_key = "test"
        billing_mode = "PAY_PER_REQUEST"
        max_retry_attempts = 0

    owner = UnicodeAttribute(hash_key=True)
    number = NumberAttribute(range_key=True)
    text = UnicodeAttribute(null=True)
    version = VersionAttribute()


@pytest.fixture(scope="module", autouse=True)
def tables(endpoint: str) -> Iterator[None]:
    for model in (Account, Statement):
        model.Meta.host = endpoint  # type: ignore[attr-defined]
        model.create_table(wait=True)
    yield
    for model in (Account, Statement):
        model.delete_table()
        model._get_connection().connection.client.close()


@pytest.fixture(scope="module")
def connection(endpoint: str) -> Iterator[Connection]:
    connection = Connection(region=REGION, host=endpoint)
    connection.session.set_credentials("test", "test")
    yield connection
    connection.client.close()


@pytest.fixture
def owner() -> str:
    return unique_name("owner")


def test_models_are_written_and_read_together(connection: Connection, owner: str) -> None:
    Account(owner, balance=10).save()
    statement = Statement(owner, 1, text="new")
    with TransactWrite(connection=connection) as transaction:
        transaction.update(
            Account(owner), [Account.balance.add(5)], condition=Account.balance == 10
        )
        transaction.save(statement, condition=Statement.owner.does_not_exist())
        transaction.condition_check(
            Account, f"{owner}-none", condition=Account.owner.does_not_exist()
        )
    assert statement.version == 1
    with TransactGet(connection=connection) as transaction:
        account = transaction.get(Account, owner)
        found = transaction.get(Statement, owner, 1)
        missing = transaction.get(Account, f"{owner}-none")
    assert account.get().balance == 15
    assert (found.get().text, found.get().version) == ("new", 1)
    with pytest.raises(Account.DoesNotExist):
        missing.get()


def test_a_cancelled_transaction_explains_its_reasons(connection: Connection, owner: str) -> None:
    Account(owner, balance=10).save()
    transaction = TransactWrite(connection=connection)
    transaction.save(Statement(owner, 1))
    transaction.update(
        Account(owner),
        [Account.balance.set(0)],
        condition=Account.balance == 99,
        return_values="ALL_OLD",
    )
    with pytest.raises(TransactWriteError) as caught:
        transaction._commit()
    assert caught.value.cause_response_code == "TransactionCanceledException"
    # PynamoDB sends the actions grouped by kind, so only one reason is checked.
    reasons = caught.value.cancellation_reasons
    failed = [reason for reason in reasons if reason is not None]
    assert [reason.code for reason in failed] == ["ConditionalCheckFailed"]
    assert failed[0].raw_item == {"owner": {"S": owner}, "balance": {"N": "10"}}
    assert Statement.count(owner) == 0


def test_a_transaction_with_an_old_version_of_a_model_is_refused(
    connection: Connection, owner: str
) -> None:
    first = Statement(owner, 1, text="a")
    first.save()
    stale = Statement.get(owner, 1)
    first.update([Statement.text.set("b")])
    with (
        pytest.raises(TransactWriteError),
        TransactWrite(connection=connection) as transaction,
    ):
        transaction.delete(stale)
    with TransactWrite(connection=connection) as transaction:
        transaction.delete(first)
    assert Statement.count(owner) == 0


def test_a_transaction_with_a_client_token_is_applied_once(
    connection: Connection, owner: str
) -> None:
    Account(owner, balance=0).save()
    for _ in range(3):
        with TransactWrite(
            connection=connection,
            client_request_token=owner[-36:],
            return_consumed_capacity="TOTAL",
        ) as transaction:
            transaction.update(Account(owner), [Account.balance.add(1)])
    assert Account.get(owner).balance == 1


def test_reads_of_one_item_twice_are_refused(connection: Connection, owner: str) -> None:
    transaction = TransactGet(connection=connection)
    transaction.get(Account, owner)
    transaction.get(Account, owner)
    with pytest.raises(TransactGetError) as caught:
        transaction._commit()
    assert "multiple operations on one item" in str(caught.value.cause_response_message)
