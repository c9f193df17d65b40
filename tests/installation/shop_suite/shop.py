"""A shop: products with a stock, and orders by customer. Its tests began on moto."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import boto3
from boto3.dynamodb.conditions import Key
from botocore.exceptions import ClientError


class OutOfStock(Exception):
    """The stock of a product is smaller than the order."""


class NotOpen(Exception):
    """The order is already cancelled, or was never placed."""


class Shop:
    """Products and orders, in the tables of their names."""

    def __init__(self) -> None:
        dynamodb = boto3.resource("dynamodb", region_name="us-east-1")
        self._client = dynamodb.meta.client
        self._products = dynamodb.Table("Products")
        self._orders = dynamodb.Table("Orders")

    def add_products(self, products: Iterable[tuple[str, int]]) -> None:
        """Store products with their stocks."""
        with self._products.batch_writer() as batch:
            for name, stock in products:
                batch.put_item(Item={"Name": name, "Stock": stock})

    def stock(self, product: str) -> int:
        """The number of available pieces of a product."""
        found = self._products.get_item(Key={"Name": product}, ConsistentRead=True)
        return int(found["Item"]["Stock"])

    def place_order(self, customer: str, product: str, count: int) -> str:
        """Take a product from the stock; returns the new order's id.

        Raises:
            OutOfStock: nothing was changed.
        """
        order = {
            "Id": str(uuid4()),
            "Customer": customer,
            "PlacedAt": datetime.now(UTC).isoformat(),
            "Product": product,
            "Count": count,
            "State": "open",
        }
        take = {
            "TableName": "Products",
            "Key": {"Name": product},
            "UpdateExpression": "SET Stock = Stock - :count",
            "ConditionExpression": "Stock >= :count",
            "ExpressionAttributeValues": {":count": count},
        }
        put = {"TableName": "Orders", "Item": order}
        try:
            self._client.transact_write_items(TransactItems=[{"Update": take}, {"Put": put}])
        except self._client.exceptions.TransactionCanceledException as error:
            reasons = error.response["CancellationReasons"]
            if reasons[0]["Code"] == "ConditionalCheckFailed":
                raise OutOfStock(product) from error
            raise
        return str(order["Id"])

    def orders(self, customer: str) -> Iterator[dict[str, Any]]:
        """A customer's orders, the newest first."""
        pages = self._client.get_paginator("query").paginate(
            TableName="Orders",
            IndexName="ByCustomer",
            KeyConditionExpression=Key("Customer").eq(customer),
            ScanIndexForward=False,
            PaginationConfig={"PageSize": 10},
        )
        for page in pages:
            yield from page["Items"]

    def cancel(self, order_id: str) -> dict[str, Any]:
        """Cancel an open order; returns the changed order.

        Raises:
            NotOpen: nothing was changed.
        """
        try:
            answer = self._orders.update_item(
                Key={"Id": order_id},
                UpdateExpression="SET #state = :cancelled",
                ConditionExpression="#state = :open",
                ExpressionAttributeNames={"#state": "State"},
                ExpressionAttributeValues={":cancelled": "cancelled", ":open": "open"},
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                raise NotOpen(order_id) from error
            raise
        return dict(answer["Attributes"])
