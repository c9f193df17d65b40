// Writes records with BatchWriteItem. A record that DynamoDB refuses does not stop the others.

import { RequestError, dynamodb } from "./api.js";
import { canonical, keyOf } from "./values.js";

/** @typedef {import("./values.js").Item} Item */
/** @typedef {{line: number, item: Item}} Put */
/** @typedef {{line: number, reason: string}} Fault */

const BATCH = 25;
// The admin port accepts a body of 1 MB, and a character has up to 3 bytes.
const BATCH_CHARACTERS = 300_000;
const PAUSE_MILLISECONDS = 200;
const REFUSALS = [
  "ValidationException",
  "SerializationException",
  "ItemCollectionSizeLimitExceededException",
];

/** An import that continues where an error or the user has stopped it. */
export class ItemImport {
  /**
   * @param {string} table
   * @param {string[]} keys
   * @param {import("./item_file.js").ItemRecord[]} records
   */
  constructor(table, keys, records) {
    this.table = table;
    this.keys = keys;
    this.done = 0;
    /** @type {Fault[]} */
    this.faults = [];
    /** @type {Map<string, Put>} */
    const last = new Map();
    for (const { line, item, problem } of records) {
      if (!item) {
        this.faults.push({ line, reason: problem });
        continue;
      }
      const key = keys.every((name) => item[name]) ? this.#keyOf(item) : `line ${line}`;
      const earlier = last.get(key);
      if (earlier) {
        this.faults.push({ line: earlier.line, reason: "A later item has the same key" });
      }
      last.set(key, { line, item });
    }
    /** @type {Put[]} */
    this.puts = [...last.values()];
    // The place of the next put, and the puts before it that were not processed.
    this.next = 0;
    /** @type {Put[]} */
    this.left = [];
    // The number of puts to send one by one, because one of them was refused.
    this.alone = 0;
  }

  get isComplete() {
    return this.next === this.puts.length && !this.left.length;
  }

  /**
   * Write the items until all are written or refused, or the signal aborts.
   * @param {AbortSignal} signal
   * @param {() => void} onProgress
   */
  async run(signal, onProgress) {
    while (!this.isComplete && !signal.aborted) {
      const batch = this.#batch();
      const unprocessed = await this.#write(batch);
      if (!unprocessed) continue;
      const kept = this.left.slice(batch.length);
      this.next += Math.max(batch.length - this.left.length, 0);
      this.left = [...kept, ...unprocessed];
      this.alone = Math.max(this.alone - batch.length, 0);
      onProgress();
      if (unprocessed.length) {
        await new Promise((resume) => setTimeout(resume, PAUSE_MILLISECONDS));
      }
    }
  }

  /** The puts of the next request: those that were not processed, and some of the others. */
  #batch() {
    const most = this.alone ? 1 : BATCH;
    const batch = [];
    let characters = 0;
    for (const put of [...this.left, ...this.puts.slice(this.next, this.next + most)]) {
      characters += JSON.stringify(put.item).length;
      if (batch.length === most || (batch.length && characters > BATCH_CHARACTERS)) break;
      batch.push(put);
    }
    return batch;
  }

  /**
   * Write some puts.
   * @param {Put[]} batch
   * @returns {Promise<Put[] | null>} those that were not processed; null to repeat them one by one
   */
  async #write(batch) {
    try {
      const { data } = await dynamodb("BatchWriteItem", {
        RequestItems: { [this.table]: batch.map(({ item }) => ({ PutRequest: { Item: item } })) },
      });
      const unprocessed = (data["UnprocessedItems"]?.[this.table] ?? []).map(
        (/** @type {any} */ each) => this.#keyOf(each["PutRequest"]["Item"]),
      );
      const found = batch.filter(({ item }) => unprocessed.includes(this.#keyOf(item)));
      // The server may write a number of a key in another way. A put can be repeated.
      const left = found.length === unprocessed.length ? found : batch;
      this.done += batch.length - left.length;
      return left;
    } catch (failure) {
      if (!(failure instanceof RequestError && REFUSALS.includes(failure.code))) throw failure;
      const [put, ...others] = batch;
      if (!put || others.length) {
        this.alone = batch.length;
        return null;
      }
      this.faults.push({ line: put.line, reason: failure.message });
      return [];
    }
  }

  /** @param {Item} item */
  #keyOf(item) {
    return canonical(keyOf(item, this.keys));
  }
}
