"""The unmodified library dyntastic: pydantic models, and transactions on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError
from dyntastic import A, DoesNotExist, Dyntastic, transaction

from tests.support.tables.tables import unique_name


class Product(Dyntastic):
    __table_name__ = unique_name("products")
    __table_region__ = "us-east-1"
    __hash_key__ = "name"

    name: str
    stock: int = 0
    tags: list[str] = []  # noqa: RUF012 - pydantic copies it


class Order(Dyntastic):
    __table_name__ = unique_name("orders")
    __table_region__ = "us-east-1"
    __hash_key__ = "customer"
    __range_key__ = "number"

    customer: str
    number: int
    product: str


@pytest.fixture(scope="module", autouse=True)
def tables(endpoint: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("DYNTASTIC_HOST", endpoint)
        for model in (Product, Order):
            model.create_table()
        yield
        for model in (Product, Order):
            model._dynamodb_client().delete_table(TableName=model.__table_name__)
            model._dynamodb_client().close()
            model._dynamodb_resource().meta.client.close()


@pytest.fixture
def name() -> str:
    return unique_name("name")


def order(name: str, number: int) -> Order:
    return Order(customer=name, number=number, product=name)


def test_a_transaction_writes_all_its_actions(name: str) -> None:
    Product(name=name, stock=2, tags=["a"]).save()
    old = order(name, 1)
    old.save()
    with transaction():
        Product.get(name).update(A.stock.set(A.stock - 1), condition=A.stock > 0, refresh=False)
        order(name, 2).save(condition=A.customer.not_exists())
        old.delete()
    assert Product.get(name).stock == 1
    assert [each.number for each in Order.query(name)] == [2]
    with pytest.raises(DoesNotExist):
        Order.get(name, 1)


def test_a_failed_condition_cancels_the_whole_transaction(name: str) -> None:
    Product(name=name, stock=0).save()
    with pytest.raises(ClientError) as caught, transaction():  # noqa: PT012 - it fails at its end
        order(name, 1).save()
        Product.get(name).update(A.stock.set(A.stock - 1), condition=A.stock > 0, refresh=False)
    response = caught.value.response
    assert response["Error"]["Code"] == "TransactionCanceledException"
    codes = [reason["Code"] for reason in response["CancellationReasons"]]
    assert codes == ["None", "ConditionalCheckFailed"]
    assert list(Order.query(name)) == []


def test_long_transactions_are_committed_in_parts(name: str) -> None:
    with transaction(auto_commit=True, commit_every=25) as writer:
        for number in range(60):
            order(name, number).save()
    assert writer.batches_submitted == 3
    assert [each.number for each in Order.query(name)] == list(range(60))
