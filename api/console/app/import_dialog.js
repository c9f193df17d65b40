// Puts the items of a JSON or CSV file into a table. Items with the same key are replaced.

import { html, useRef, useState } from "../vendor/preact.js";
import { dynamodb } from "./api.js";
import { count, plural } from "./format.js";
import { Dialog, Problem, RunButtons, useRun } from "./ui.js";
import { checkedItem, pretty } from "./values.js";

/** @typedef {import("./values.js").Item} Item */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */

const BATCH = 25;
// The admin port accepts a body of 1 MB, and a character has up to 3 bytes.
const BATCH_CHARACTERS = 300_000;
const PAUSE_MILLISECONDS = 200;
const PREVIEWED = 2;
const NUMBER = /^-?(0|[1-9]\d{0,37})(\.\d{1,37})?$/;

/**
 * The items of a file: a JSON array or lines of JSON, in DynamoDB's JSON, or CSV with a header.
 * @param {string} text
 * @param {Record<string, string>} types of the keys
 * @returns {Item[]}
 */
export function itemsOf(text, types) {
  const start = text.trimStart()[0];
  if (start === "[") return itemList(JSON.parse(text), types);
  if (start === "{") return itemList(objectsOf(text), types);
  return csvItems(text, types);
}

/**
 * One JSON object, or an object in each line.
 * @param {string} text
 * @returns {any[]}
 */
function objectsOf(text) {
  try {
    return [JSON.parse(text)];
  } catch {
    return text
      .split("\n")
      .filter((line) => line.trim())
      .map((line) => JSON.parse(line));
  }
}

/**
 * @param {any[]} given
 * @param {Record<string, string>} types
 */
function itemList(given, types) {
  // Exports of DynamoDB have each item in a member.
  const hasKey = (/** @type {any} */ item) => Object.keys(types).every((name) => name in item);
  return given.map((each) => checkedItem(hasKey(each) ? each : (each["Item"] ?? each)));
}

/**
 * @param {string} text
 * @param {Record<string, string>} types
 */
function csvItems(text, types) {
  const [header = [], ...rows] = csvRows(text);
  return rows.map((row) =>
    Object.fromEntries(
      row.flatMap((cell, at) => {
        const name = header[at];
        if (!name || (cell === "" && !types[name])) return [];
        const type = types[name] ?? (NUMBER.test(cell) ? "N" : "S");
        return [[name, { [type]: cell }]];
      }),
    ),
  );
}

/**
 * The rows of a CSV file (RFC 4180).
 * @param {string} text
 */
function csvRows(text) {
  /** @type {string[][]} */
  const rows = [];
  /** @type {string[]} */
  let row = [];
  const cells = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n|$)/g;
  for (const found of text.matchAll(cells)) {
    const [whole, cell = "", end] = found;
    if (!whole && !row.length) break;
    row.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end !== ",") {
      if (row.length > 1 || row[0]) rows.push(row);
      row = [];
    }
  }
  return rows;
}

/**
 * The items of the next request: those that the last request left, and some of the others.
 * @param {Item[]} left
 * @param {Item[]} items
 * @param {number} start
 */
function batchOf(left, items, start) {
  const batch = [...left];
  let characters = JSON.stringify(left).length;
  for (const item of items.slice(start, start + BATCH - left.length)) {
    characters += JSON.stringify(item).length;
    if (batch.length && characters > BATCH_CHARACTERS) break;
    batch.push(item);
  }
  return batch;
}

/** @param {{table: TableFacts, onClose: () => void}} properties */
export function ImportDialog({ table, onClose }) {
  const [items, setItems] = useState(/** @type {() => Item[]} */ (() => []));
  const [wrongFile, setWrongFile] = useState(/** @type {unknown} */ (null));
  const [done, setDone] = useState(0);
  // The number of items sent, and those of them that were not processed.
  const sent = useRef({ count: 0, left: /** @type {Item[]} */ ([]) });
  const read = async (/** @type {any} */ event) => {
    setWrongFile(null);
    setItems([]);
    setDone(0);
    sent.current = { count: 0, left: [] };
    const [file] = event.target.files;
    if (!file) return;
    try {
      const types = Object.fromEntries(table.keys.map((key) => [key, table.types[key] ?? "S"]));
      setItems(itemsOf(await file.text(), types));
    } catch (failure) {
      setWrongFile(failure);
    }
  };
  const work = useRun(async (signal) => {
    const progress = sent.current;
    while ((progress.count < items.length || progress.left.length) && !signal.aborted) {
      const batch = batchOf(progress.left, items, progress.count);
      const { data } = await dynamodb("BatchWriteItem", {
        RequestItems: { [table.name]: batch.map((item) => ({ PutRequest: { Item: item } })) },
      });
      progress.count += batch.length - progress.left.length;
      progress.left = (data["UnprocessedItems"]?.[table.name] ?? []).map(
        (/** @type {any} */ each) => each["PutRequest"]["Item"],
      );
      setDone(progress.count - progress.left.length);
      if (progress.left.length) {
        await new Promise((resume) => setTimeout(resume, PAUSE_MILLISECONDS));
      }
    }
  });
  const isComplete = items.length > 0 && done === items.length;
  return html`<${Dialog} title=${`Import into ${table.name}`} onClose=${onClose}>
    <p class="hint">
      A file with an array or lines of DynamoDB JSON, or CSV with a header. An item with the key of
      a stored item replaces it.
    </p>
    <label class="field">
      <span class="label">File</span>
      <input type="file" accept=".json,.jsonl,.ndjson,.csv,.txt" disabled=${work.isRunning} onChange=${read} />
    </label>
    <${Problem} error=${work.error ?? wrongFile} />
    ${items.length > 0 &&
    html`<p role="status">
        ${done ? `${count(done)} of ` : ""}${plural(items.length, "item")}${done ? " imported" : ""}
      </p>
      ${!done &&
      html`<pre tabindex="0" role="region" aria-label="First items">
${items.slice(0, PREVIEWED).map((item) => pretty(item)).join("\n")}</pre
      >`}`}
    <${RunButtons}
      work=${work}
      action="Import"
      kind="main"
      isComplete=${isComplete}
      isReady=${items.length > 0}
      onClose=${onClose}
    />
  <//>`;
}
