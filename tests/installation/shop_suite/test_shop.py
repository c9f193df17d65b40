"""The shop's tests. Their fixture ``aws`` is in conftest.py, for moto or for dynactor."""

from __future__ import annotations

import boto3
import pytest
from shop import NotOpen, OutOfStock, Shop


@pytest.fixture
def shop(aws: None) -> Shop:  # noqa: ARG001 - the requests of boto3 go to it
    dynamodb = boto3.resource("dynamodb", region_name="us-east-1")
    dynamodb.create_table(
        TableName="Products",
        KeySchema=[{"AttributeName": "Name", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "Name", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.create_table(
        TableName="Orders",
        KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": "Id", "AttributeType": "S"},
            {"AttributeName": "Customer", "AttributeType": "S"},
            {"AttributeName": "PlacedAt", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "ByCustomer",
                "KeySchema": [
                    {"AttributeName": "Customer", "KeyType": "HASH"},
                    {"AttributeName": "PlacedAt", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return Shop()


def test_an_order_takes_from_the_stock(shop: Shop):
    shop.add_products([("lamp", 5)])
    shop.place_order("Ana", "lamp", 2)
    assert shop.stock("lamp") == 3


def test_an_order_of_too_many_changes_nothing(shop: Shop):
    shop.add_products([("lamp", 1)])
    with pytest.raises(OutOfStock):
        shop.place_order("Ana", "lamp", 2)
    assert shop.stock("lamp") == 1
    assert list(shop.orders("Ana")) == []


def test_orders_of_a_customer_are_listed_newest_first(shop: Shop):
    shop.add_products([("lamp", 50)])
    placed = [shop.place_order("Ana", "lamp", 1) for _ in range(25)]
    shop.place_order("Rui", "lamp", 1)
    assert [order["Id"] for order in shop.orders("Ana")] == placed[::-1]


def test_an_order_is_cancelled_once(shop: Shop):
    shop.add_products([("lamp", 1)])
    order = shop.place_order("Ana", "lamp", 1)
    assert shop.cancel(order)["State"] == "cancelled"
    with pytest.raises(NotOpen):
        shop.cancel(order)


def test_an_order_that_was_never_placed_is_not_cancelled(shop: Shop):
    with pytest.raises(NotOpen):
        shop.cancel("none")


def test_many_products_are_added_at_once(shop: Shop):
    shop.add_products((f"product {number}", number) for number in range(60))
    assert shop.stock("product 59") == 59


def test_every_test_begins_with_an_empty_shop(shop: Shop):
    assert list(shop.orders("Ana")) == []
