import assert from "node:assert";
import * as sdk from "@aws-sdk/client-dynamodb";

const dynamodb = new sdk.DynamoDBClient({});
const TableName = "Thread";
const Key = { Id: { S: "1" } };
await dynamodb.send(new sdk.CreateTableCommand({
  TableName,
  KeySchema: [{ AttributeName: "Id", KeyType: "HASH" }],
  AttributeDefinitions: [{ AttributeName: "Id", AttributeType: "S" }],
  BillingMode: "PAY_PER_REQUEST",
}));
let visits = 0;
for (const fault of process.argv.slice(2)) {
  const rule = { fault, operation: "TransactWriteItems", next: 1 };
  const added = await fetch(`${process.env.ADMIN}/faults`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Dynactor-Admin": "1" },
    body: JSON.stringify(rule),
  });
  assert.equal(added.status, 201);
  await dynamodb.send(new sdk.TransactWriteItemsCommand({
    TransactItems: [{ Update: {
      TableName, Key,
      UpdateExpression: "ADD Visits :one",
      ExpressionAttributeValues: { ":one": { N: "1" } },
    } }],
  }));
  visits += 1;
  const { Item } = await dynamodb.send(new sdk.GetItemCommand({ TableName, Key, ConsistentRead: true }));
  assert.equal(Item.Visits.N, String(visits), fault);
}
const { rules } = await (await fetch(`${process.env.ADMIN}/faults`)).json();
assert.deepEqual(rules.map((rule) => rule.injected), rules.map(() => 1));
console.log(`${visits} faults`);
process.exit(0);
