// What a user of the JavaScript SDK v3 does in a first hour, against the endpoint and table given.
import assert from "node:assert/strict";
import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  paginateScan,
  ResourceNotFoundException,
  DescribeTableCommand,
  waitUntilTableExists,
  waitUntilTableNotExists,
} from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  BatchWriteCommand,
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  UpdateCommand,
  paginateQuery,
} from "@aws-sdk/lib-dynamodb";

const [endpoint, TableName] = process.argv.slice(2);
const client = new DynamoDBClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
  maxAttempts: 1,
});
const documents = DynamoDBDocumentClient.from(client);

const behaviours = {
  async "a table is made, waited for and described"() {
    await client.send(
      new CreateTableCommand({
        TableName,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [
          { AttributeName: "forum", AttributeType: "S" },
          { AttributeName: "subject", AttributeType: "S" },
          { AttributeName: "replies", AttributeType: "N" },
        ],
        KeySchema: [
          { AttributeName: "forum", KeyType: "HASH" },
          { AttributeName: "subject", KeyType: "RANGE" },
        ],
        LocalSecondaryIndexes: [
          {
            IndexName: "by-replies",
            KeySchema: [
              { AttributeName: "forum", KeyType: "HASH" },
              { AttributeName: "replies", KeyType: "RANGE" },
            ],
            Projection: { ProjectionType: "ALL" },
          },
        ],
      }),
    );
    await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName });
    const { Table } = await client.send(new DescribeTableCommand({ TableName }));
    assert.equal(Table.TableStatus, "ACTIVE");
    assert.ok(Table.CreationDateTime instanceof Date);
  },

  async "a document keeps its types"() {
    const Item = {
      forum: "types",
      subject: "one",
      number: 1.5,
      big: 12345678901234567890n,
      list: [1, "two", null, true, [3]],
      map: { a: { b: "c" } },
      strings: new Set(["a", "b"]),
      binary: new Uint8Array([0, 1, 255]),
    };
    await documents.send(new PutCommand({ TableName, Item }));
    const Key = { forum: "types", subject: "one" };
    const answer = await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
    assert.deepEqual(answer.Item, { ...Item, big: 12345678901234567890n });
    assert.equal(answer.$metadata.httpStatusCode, 200);
    assert.match(answer.$metadata.requestId, /.{20,}/);
  },

  async "a conditional update counts, and fails with its own error"() {
    const update = new UpdateCommand({
      TableName,
      Key: { forum: "counter", subject: "one" },
      UpdateExpression: "ADD replies :one SET #d = list_append(if_not_exists(#d, :empty), :log)",
      ConditionExpression: "attribute_not_exists(replies) OR replies < :three",
      ExpressionAttributeNames: { "#d": "details" },
      ExpressionAttributeValues: { ":one": 1, ":three": 3, ":empty": [], ":log": [{ by: "js" }] },
      ReturnValues: "ALL_NEW",
    });
    for (const replies of [1, 2, 3]) {
      const { Attributes } = await documents.send(update);
      assert.equal(Attributes.replies, replies);
      assert.equal(Attributes.details.length, replies);
    }
    await assert.rejects(documents.send(update), { name: "ConditionalCheckFailedException" });
  },

  async "batches are written and read"() {
    for (const start of [0, 25, 50, 75]) {
      const puts = Array.from({ length: 25 }, (_, at) => ({
        PutRequest: {
          Item: {
            forum: "batch",
            subject: String(start + at).padStart(3, "0"),
            replies: (start + at) % 10,
          },
        },
      }));
      const answer = await documents.send(new BatchWriteCommand({ RequestItems: { [TableName]: puts } }));
      assert.deepEqual(answer.UnprocessedItems, {});
    }
    const Keys = Array.from({ length: 100 }, (_, at) => ({
      forum: "batch",
      subject: String(at * 2).padStart(3, "0"),
    }));
    const answer = await documents.send(new BatchGetCommand({ RequestItems: { [TableName]: { Keys } } }));
    assert.equal(answer.Responses[TableName].length, 50);
  },

  async "a query is paged, filtered and ordered by its index"() {
    const pages = paginateQuery(
      { client: documents, pageSize: 7 },
      {
        TableName,
        IndexName: "by-replies",
        KeyConditionExpression: "forum = :forum AND replies BETWEEN :low AND :high",
        FilterExpression: "subject < :subject",
        ExpressionAttributeValues: { ":forum": "batch", ":low": 3, ":high": 4, ":subject": "050" },
        ScanIndexForward: false,
      },
    );
    const found = [];
    for await (const page of pages) found.push(...page.Items);
    assert.deepEqual(
      found.map((item) => item.replies),
      [4, 4, 4, 4, 4, 3, 3, 3, 3, 3],
    );
    const counted = await documents.send(
      new QueryCommand({
        TableName,
        KeyConditionExpression: "forum = :forum",
        ExpressionAttributeValues: { ":forum": "batch" },
        Select: "COUNT",
        ReturnConsumedCapacity: "TOTAL",
      }),
    );
    assert.equal(counted.Count, 100);
    assert.ok(counted.ConsumedCapacity.CapacityUnits > 0);
  },

  async "a scan is paged"() {
    let count = 0;
    for await (const page of paginateScan({ client, pageSize: 30 }, { TableName })) count += page.Count;
    assert.equal(count, 102);
  },

  async "requests in flight together are all answered"() {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, at) =>
        documents.send(
          new PutCommand({ TableName, Item: { forum: "parallel", subject: String(at), at } }),
        ),
      ),
    );
    assert.equal(new Set(answers.map((answer) => answer.$metadata.requestId)).size, 100);
  },

  async "a deleted item is returned and gone"() {
    const Key = { forum: "types", subject: "one" };
    const answer = await documents.send(new DeleteCommand({ TableName, Key, ReturnValues: "ALL_OLD" }));
    assert.equal(answer.Attributes.number, 1.5);
    assert.equal((await documents.send(new GetCommand({ TableName, Key }))).Item, undefined);
  },

  async "a deleted table is not found"() {
    await client.send(new DeleteTableCommand({ TableName }));
    await waitUntilTableNotExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName });
    await assert.rejects(client.send(new DescribeTableCommand({ TableName })), ResourceNotFoundException);
  },
};

let failed = 0;
for (const [name, behaviour] of Object.entries(behaviours)) {
  try {
    await behaviour();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`failed: ${name}\n${error.stack}`);
  }
}
client.destroy();
process.exitCode = failed ? 1 : 0;
