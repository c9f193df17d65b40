"""Requests of tenants who share a table: their own items, and sometimes those of others."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Notes"
TENANTS = ("ann", "bob", "Ann", "ann2", "an", "ann*", "*", "${aws:username}", "ann#1", " ann")
IDS = ("1", "2", "3")
SECRET = "secret of "
# A fifth of the keys are of another tenant, so most requests of several keys name both.
FOREIGN_SHARE = 0.2

# The policy of the guide: docs/ACCESS.md, "Tenants in one table".
POLICY = {
    "Action": [
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:BatchWriteItem",
        "dynamodb:ConditionCheckItem",
        "dynamodb:PartiQL*",
    ],
    "Resource": [ARN, f"{ARN}/index/*"],
    "Condition": {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:PrincipalTag/tenant}"},
        "Null": {"dynamodb:LeadingKeys": "false"},
    },
}

CREATE = {
    "TableName": "Notes",
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("tenant", "id", "day")
    ],
    "KeySchema": [
        {"AttributeName": "tenant", "KeyType": "HASH"},
        {"AttributeName": "id", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": name,
            "KeySchema": [
                {"AttributeName": partition, "KeyType": "HASH"},
                {"AttributeName": sort, "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
        for name, partition, sort in (("OwnDays", "tenant", "day"), ("Days", "day", "tenant"))
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
}


def item(tenant: str, note_id: str) -> dict[str, Any]:
    """The first content of an item."""
    return {**key(tenant, note_id), "day": {"S": "mon"}, "text": {"S": SECRET + tenant}}


def key(tenant: str, note_id: str) -> dict[str, Any]:
    """The key of an item."""
    return {"tenant": {"S": tenant}, "id": {"S": note_id}}


class TenantRequest(NamedTuple):
    """A request, and the tenants whose items it reads or writes; ``all`` items if it has no key."""

    operation: str
    request: dict[str, Any]
    tenants: set[str]
    is_of_all: bool = False


class TenantRequests:
    """Draws requests of one tenant."""

    def __init__(self, tenant: str, random: Random) -> None:
        self.tenant = tenant
        self._random = random

    def draw(self) -> TenantRequest:
        """Any request."""
        return self._random.choice(
            [
                self._get,
                self._put,
                self._update,
                self._delete,
                self._query,
                self._legacy_query,
                self._index_query,
                self._batch_get,
                self._batch_write,
                self._transact_get,
                self._transact_write,
                self._statement,
                self._batch_statement,
                self._transact_statements,
                self._of_all,
            ]
        )()

    def _tenant(self) -> str:
        is_foreign = self._random.random() < FOREIGN_SHARE
        return self._random.choice(TENANTS) if is_foreign else self.tenant

    def _id(self) -> str:
        return self._random.choice(IDS)

    def _keys(self, most: int = 3) -> list[tuple[str, str]]:
        """Different keys, at least one."""
        count = self._random.randint(1, most)
        return list({(self._tenant(), self._id()) for _ in range(count)})

    def _on_item(self, operation: str, **members: Any) -> TenantRequest:
        tenant = self._tenant()
        request = {"TableName": "Notes", "Key": key(tenant, self._id()), **members}
        return TenantRequest(operation, request, {tenant})

    def _get(self) -> TenantRequest:
        return self._on_item("GetItem")

    def _put(self) -> TenantRequest:
        tenant = self._tenant()
        request = {
            "TableName": "Notes",
            "Item": item(tenant, self._id()),
            "ReturnValues": "ALL_OLD",
        }
        return TenantRequest("PutItem", request, {tenant})

    def _update(self) -> TenantRequest:
        return self._on_item(
            "UpdateItem",
            UpdateExpression="ADD #n :one",
            ExpressionAttributeNames={"#n": "changes"},
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="ALL_OLD",
        )

    def _delete(self) -> TenantRequest:
        return self._on_item("DeleteItem", ReturnValues="ALL_OLD")

    def _query(self) -> TenantRequest:
        tenant = self._tenant()
        index = self._random.choice([{}, {"IndexName": "OwnDays"}])
        text = self._random.choice(["tenant = :t", ":t = #t", "(#t = :t)"])
        names = {"ExpressionAttributeNames": {"#t": "tenant"}} if "#t" in text else {}
        request = {
            "TableName": "Notes",
            "KeyConditionExpression": text,
            "ExpressionAttributeValues": {":t": {"S": tenant}},
            **names,
            **index,
        }
        return TenantRequest("Query", request, {tenant})

    def _legacy_query(self) -> TenantRequest:
        tenant = self._tenant()
        equals = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": tenant}]}
        request = {"TableName": "Notes", "KeyConditions": {"tenant": equals}}
        return TenantRequest("Query", request, {tenant})

    def _index_query(self) -> TenantRequest:
        """A Query of an index that mixes tenants; its leading key is a day."""
        request = {
            "TableName": "Notes",
            "IndexName": "Days",
            "KeyConditionExpression": "#d = :d AND tenant = :t",
            "ExpressionAttributeNames": {"#d": "day"},
            "ExpressionAttributeValues": {":d": {"S": "mon"}, ":t": {"S": self._tenant()}},
        }
        return TenantRequest("Query", request, set(), is_of_all=True)

    def _batch_get(self) -> TenantRequest:
        keys = self._keys(6)
        items = {"Notes": {"Keys": [key(*one) for one in keys]}}
        return TenantRequest("BatchGetItem", {"RequestItems": items}, {one[0] for one in keys})

    def _batch_write(self) -> TenantRequest:
        keys = self._keys(6)
        writes = [
            {"PutRequest": {"Item": item(*one)}}
            if self._random.random() < 0.5
            else {"DeleteRequest": {"Key": key(*one)}}
            for one in keys
        ]
        return TenantRequest(
            "BatchWriteItem", {"RequestItems": {"Notes": writes}}, {one[0] for one in keys}
        )

    def _transact_get(self) -> TenantRequest:
        keys = self._keys()
        gets = [{"Get": {"TableName": "Notes", "Key": key(*one)}} for one in keys]
        return TenantRequest("TransactGetItems", {"TransactItems": gets}, {one[0] for one in keys})

    def _transact_write(self) -> TenantRequest:
        keys = self._keys(4)
        actions = []
        for one in keys:
            on_key = {"TableName": "Notes", "Key": key(*one)}
            actions.append(
                self._random.choice(
                    [
                        {"Put": {"TableName": "Notes", "Item": item(*one)}},
                        {"Delete": on_key},
                        {
                            "ConditionCheck": {
                                **on_key,
                                "ConditionExpression": "attribute_exists(nothing)",
                                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                            }
                        },
                        {
                            "Update": {
                                **on_key,
                                "UpdateExpression": "SET changes = :c",
                                "ExpressionAttributeValues": {":c": {"N": "1"}},
                            }
                        },
                    ]
                )
            )
        return TenantRequest(
            "TransactWriteItems", {"TransactItems": actions}, {one[0] for one in keys}
        )

    def _text(self) -> tuple[dict[str, Any], set[str]]:
        """A statement about whole keys, and its tenants."""
        tenant, note_id = self._tenant(), self._id()
        where = f"WHERE tenant = '{tenant}' AND id = '{note_id}'"
        text = self._random.choice(
            [
                f"SELECT * FROM Notes {where}",
                f"UPDATE Notes SET changes = 1 {where} RETURNING ALL OLD *",
                f"DELETE FROM Notes {where} RETURNING ALL OLD *",
                f"INSERT INTO Notes VALUE {{'tenant': '{tenant}', 'id': '{note_id}'}}",
            ]
        )
        return {"Statement": text}, {tenant}

    def _statement(self) -> TenantRequest:
        if self._random.random() < 0.5:
            request, tenants = self._text()
            return TenantRequest("ExecuteStatement", request, tenants)
        others = [self._tenant() for _ in range(self._random.randint(1, 3))]
        marks = ", ".join("?" for _ in others)
        source = self._random.choice(["Notes", "Notes.OwnDays"])
        text = self._random.choice(
            [
                f"SELECT * FROM {source} WHERE tenant IN [{marks}]",
                f"SELECT * FROM {source} WHERE " + " OR ".join("tenant = ?" for _ in others),
            ]
        )
        parameters = [{"S": tenant} for tenant in others]
        return TenantRequest(
            "ExecuteStatement", {"Statement": text, "Parameters": parameters}, set(others)
        )

    def _batch_statement(self) -> TenantRequest:
        texts = [self._text() for _ in range(self._random.randint(1, 3))]
        return TenantRequest(
            "BatchExecuteStatement",
            {"Statements": [text for text, _ in texts]},
            {tenant for _, tenants in texts for tenant in tenants},
        )

    def _transact_statements(self) -> TenantRequest:
        texts = [self._text() for _ in range(self._random.randint(1, 3))]
        return TenantRequest(
            "ExecuteTransaction",
            {"TransactStatements": [text for text, _ in texts]},
            {tenant for _, tenants in texts for tenant in tenants},
        )

    def _of_all(self) -> TenantRequest:
        """A request that would read or change the items of all tenants."""
        of_table = {"TableName": "Notes"}
        operation, request = self._random.choice(
            [
                ("Scan", of_table),
                ("Scan", {**of_table, "IndexName": "OwnDays"}),
                ("ExecuteStatement", {"Statement": "SELECT * FROM Notes"}),
                ("ExecuteStatement", {"Statement": "SELECT * FROM Notes.Days WHERE day = 'mon'"}),
                (
                    "ExecuteStatement",
                    {"Statement": f"SELECT * FROM Notes WHERE tenant <> '{self.tenant}'"},
                ),
                (
                    "ExecuteStatement",
                    {
                        "Statement": f"SELECT * FROM Notes WHERE tenant = '{self.tenant}' OR "
                        "id = '1'"
                    },
                ),
                ("DescribeTable", of_table),
                ("DeleteTable", of_table),
                ("ListStreams", {}),
                ("CreateBackup", {**of_table, "BackupName": "notes"}),
            ]
        )
        return TenantRequest(operation, request, set(), is_of_all=True)
