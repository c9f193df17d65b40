"""PartiQL with boto3: with a client, and with the client of a resource."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest


def test_a_client_writes_and_reads_by_statements(client: Any, simple: str, pk: str) -> None:
    client.execute_statement(
        Statement=f"INSERT INTO \"{simple}\" VALUE {{'pk': ?, 'n': ?, 'b': ?}}",
        Parameters=[{"S": pk}, {"N": "1.50"}, {"B": b"\x00\xff"}],
    )
    read = f'SELECT * FROM "{simple}" WHERE pk = ?'
    answer = client.execute_statement(Statement=read, Parameters=[{"S": pk}])
    assert answer["Items"] == [{"pk": {"S": pk}, "n": {"N": "1.5"}, "b": {"B": b"\x00\xff"}}]
    with pytest.raises(client.exceptions.ConditionalCheckFailedException) as failure:
        client.execute_statement(
            Statement=f'DELETE FROM "{simple}" WHERE pk = ? AND n > 2',
            Parameters=[{"S": pk}],
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert failure.value.response["Item"]["n"] == {"N": "1.5"}


@pytest.mark.differs_from_dynamodb_local("calls it DuplicateItem")
def test_a_second_insert_raises_the_clients_exception(client: Any, simple: str, pk: str) -> None:
    insert = f"INSERT INTO \"{simple}\" VALUE {{'pk': '{pk}'}}"
    client.execute_statement(Statement=insert)
    with pytest.raises(client.exceptions.DuplicateItemException):
        client.execute_statement(Statement=insert)


def test_the_client_of_a_resource_takes_python_values(resource: Any, simple: str, pk: str) -> None:
    client = resource.meta.client
    insert = f"INSERT INTO \"{simple}\" VALUE {{'pk': ?, 'v': ?, 'tags': ?}}"
    answer = client.batch_execute_statement(
        Statements=[
            {"Statement": insert, "Parameters": [pk, Decimal("7.5"), {"a", "b"}]},
            {"Statement": insert, "Parameters": [f"{pk}b", None, {1, 2}]},
        ]
    )
    assert [response.get("Error") for response in answer["Responses"]] == [None, None]
    answer = client.execute_statement(
        Statement=f'SELECT v, tags FROM "{simple}" WHERE pk IN [?, ?]',
        Parameters=[pk, f"{pk}b"],
        ConsistentRead=True,
    )
    assert answer["Items"] == [
        {"v": Decimal("7.5"), "tags": {"a", "b"}},
        {"v": None, "tags": {1, 2}},
    ]


def test_pages_follow_the_next_token(client: Any, composite: str, pk: str) -> None:
    for sort in "abcde":
        insert = f"INSERT INTO \"{composite}\" VALUE {{'pk': '{pk}', 'sk': '{sort}'}}"
        client.execute_statement(Statement=insert)
    found = []
    request = {"Statement": f"SELECT sk FROM \"{composite}\" WHERE pk = '{pk}'", "Limit": 2}
    while True:
        answer = client.execute_statement(**request)
        found += [item["sk"]["S"] for item in answer["Items"]]
        if "NextToken" not in answer:
            break
        request["NextToken"] = answer["NextToken"]
    assert "".join(found) == "abcde"


def test_boto3_executes_a_transaction_of_statements(client: Any, simple: str, pk: str) -> None:
    insert = f"INSERT INTO \"{simple}\" VALUE {{'pk': '{pk}'}}"
    client.execute_transaction(TransactStatements=[{"Statement": insert}])
    select = f"SELECT * FROM \"{simple}\" WHERE pk = '{pk}'"
    answer = client.execute_transaction(TransactStatements=[{"Statement": select}])
    assert answer["Responses"] == [{"Item": {"pk": {"S": pk}}}]
    with pytest.raises(client.exceptions.TransactionCanceledException) as caught:
        client.execute_transaction(TransactStatements=[{"Statement": insert}])
    reasons = caught.value.response["CancellationReasons"]
    assert [reason["Message"] for reason in reasons] == ["Duplicate primary key exists in table"]
