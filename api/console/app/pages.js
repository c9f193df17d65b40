// All pages of a Query or Scan.

import { dynamodb } from "./api.js";

/**
 * The answers of all pages, from the first one on, until the signal aborts.
 * @param {string} operation
 * @param {import("./api.js").Json} request
 * @param {AbortSignal} signal
 */
export async function* allPages(operation, { Limit, ExclusiveStartKey, ...body }, signal) {
  let start = {};
  while (start && !signal.aborted) {
    const { data } = await dynamodb(operation, { ...body, ...start });
    const next = data["LastEvaluatedKey"];
    yield data;
    if (!next) return;
    start = { ExclusiveStartKey: next };
  }
}
