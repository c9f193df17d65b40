// Requests to the server: DynamoDB's operations, and the paths of the admin port.

/** @typedef {Record<string, any>} Json */
/** @typedef {{data: Json, explanation: Json | null, milliseconds: number}} Answer */

const meta = /** @type {HTMLMetaElement | null} */ (
  document.querySelector('meta[name="dynactor-token"]')
);
/** The token of this page; empty before the user has signed in. */
export const token = meta?.content ?? "";

/** An error that the server has answered. */
export class RequestError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {number} status
   * @param {Json} body
   */
  constructor(code, message, status, body) {
    super(message);
    this.code = code;
    this.status = status;
    this.body = body;
  }
}

/** The region and the access key whose tables the pages show. */
export const place = { region: "", keyId: "" };

/** @param {string} path */
function placed(path) {
  if (!place.region) return path;
  const url = new URL(path, location.origin);
  url.searchParams.set("region", place.region);
  if (place.keyId) url.searchParams.set("access_key_id", place.keyId);
  return url.pathname + url.search;
}

/**
 * Perform an operation of DynamoDB.
 * @param {string} operation
 * @param {Json} body
 * @param {{explain?: boolean, signal?: AbortSignal}} [options]
 * @returns {Promise<Answer>}
 */
export async function dynamodb(operation, body, { explain = false, signal } = {}) {
  const streams = ["ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"];
  const service = streams.includes(operation) ? "DynamoDBStreams" : "DynamoDB";
  const began = performance.now();
  const response = await fetch(placed("/console/dynamodb"), {
    method: "POST",
    headers: {
      ...ownHeaders(),
      "Content-Type": "application/json",
      "X-Amz-Target": `${service}_20120810.${operation}`,
      ...(explain ? { "X-Dynactor-Explain": "true" } : {}),
    },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
  const data = await content(response);
  const explained = response.headers.get("X-Dynactor-Explanation");
  return {
    data,
    explanation: explained ? JSON.parse(explained) : null,
    milliseconds: performance.now() - began,
  };
}

/**
 * Send a request to a path of the admin port.
 * @param {string} path
 * @param {{method?: string, body?: Json, signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
export async function admin(path, { method = "GET", body, signal } = {}) {
  const response = await fetch(placed(path), {
    method,
    headers: { ...ownHeaders(), ...(body ? { "Content-Type": "application/json" } : {}) },
    body: body ? JSON.stringify(body) : null,
    signal: signal ?? null,
  });
  return content(response);
}

/**
 * Receive the events of a path until the signal aborts.
 * @param {string} path
 * @param {(event: Json) => void} receive
 * @param {AbortSignal} signal
 */
export async function events(path, receive, signal) {
  const response = await fetch(placed(path), { headers: ownHeaders(), signal });
  if (!response.ok || !response.body) {
    await content(response);
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (pending + value).split("\n\n");
    pending = parts.pop() ?? "";
    for (const part of parts) {
      if (part.startsWith("data: ")) receive(JSON.parse(part.slice(6)));
    }
  }
}

/** @returns {Record<string, string>} */
function ownHeaders() {
  return { "X-Dynactor-Admin": "1", "X-Dynactor-Console": token };
}

/** @param {Response} response */
async function content(response) {
  const text = await response.text();
  /** @type {Json} */
  let data = {};
  try {
    data = text ? JSON.parse(text) : {};
  } catch {
    data = { message: text };
  }
  if (response.ok) return data;
  // The session has ended, or the server has restarted with another key: the page signs in again.
  if (response.status === 401 && token) location.reload();
  const code = String(data["__type"] ?? "").split("#").pop() || `HTTP ${response.status}`;
  const message = data["message"] ?? data["Message"] ?? "The server gave no reason";
  throw new RequestError(code, String(message), response.status, data);
}
