// A request as a command line of the AWS CLI, and as code.

/** @typedef {import("./api.js").Json} Json */

/** @param {string} operation */
const dashed = (operation) => operation.replace(/(?!^)([A-Z])/g, "-$1").toLowerCase();

/** @param {string} operation */
const snake = (operation) => operation.replace(/(?!^)([A-Z])/g, "_$1").toLowerCase();

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * @param {string} operation
 * @param {Json} body
 * @param {string} endpoint
 */
export function awsCli(operation, body, endpoint) {
  const input = quoted(JSON.stringify(body));
  return `aws dynamodb ${dashed(operation)} --endpoint-url ${endpoint} --cli-input-json ${input}`;
}

/**
 * @param {string} operation
 * @param {Json} body
 * @param {string} endpoint
 */
export function boto3(operation, body, endpoint) {
  return (
    `client = boto3.client("dynamodb", endpoint_url="${endpoint}")\n` +
    `client.${snake(operation)}(**json.loads(r"""${JSON.stringify(body)}"""))`
  );
}

/**
 * @param {string} operation
 * @param {Json} body
 * @param {string} endpoint
 */
export function javaScript(operation, body, endpoint) {
  return (
    `const client = new DynamoDBClient({ endpoint: "${endpoint}" });\n` +
    `await client.send(new ${operation}Command(${JSON.stringify(body, null, 2)}));`
  );
}
