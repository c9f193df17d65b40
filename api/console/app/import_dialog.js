// Puts the items of a JSON or CSV file into a table. Items with the same key are replaced.

import { html, useRef, useState } from "../vendor/preact.js";
import { dynamodb } from "./api.js";
import { count, plural } from "./format.js";
import { Dialog, Problem } from "./ui.js";
import { parseItem, pretty } from "./values.js";

/** @typedef {import("./values.js").Item} Item */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */

const BATCH = 25;
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
  if (start === "{") {
    const lines = text.split("\n").filter((line) => line.trim());
    const given = isJson(text) ? [JSON.parse(text)] : lines.map((line) => JSON.parse(line));
    return itemList(given, types);
  }
  return csvItems(text, types);
}

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {any[]} given
 * @param {Record<string, string>} types
 */
function itemList(given, types) {
  // Exports of DynamoDB have each item in a member.
  const hasKey = (/** @type {any} */ item) => Object.keys(types).every((name) => name in item);
  return given.map((each) =>
    parseItem(JSON.stringify(hasKey(each) ? each : (each["Item"] ?? each))),
  );
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
export function csvRows(text) {
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

/** @param {{table: TableFacts, onClose: () => void}} properties */
export function ImportDialog({ table, onClose }) {
  const [items, setItems] = useState(/** @type {() => Item[]} */ (() => []));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [done, setDone] = useState(0);
  const [isRunning, setRunning] = useState(false);
  const isStopped = useRef(false);
  const read = async (/** @type {any} */ event) => {
    setError(null);
    setItems([]);
    setDone(0);
    const [file] = event.target.files;
    if (!file) return;
    try {
      const types = Object.fromEntries(table.keys.map((key) => [key, table.types[key] ?? "S"]));
      setItems(itemsOf(await file.text(), types));
    } catch (failure) {
      setError(failure);
    }
  };
  const run = async () => {
    setRunning(true);
    isStopped.current = false;
    let at = done;
    /** @type {Item[]} */
    let left = [];
    try {
      while ((at < items.length || left.length) && !isStopped.current) {
        const more = items.slice(at, at + BATCH - left.length);
        at += more.length;
        const requests = [...left, ...more].map((item) => ({ PutRequest: { Item: item } }));
        const { data } = await dynamodb("BatchWriteItem", {
          RequestItems: { [table.name]: requests },
        });
        const unprocessed = data["UnprocessedItems"]?.[table.name] ?? [];
        left = unprocessed.map((/** @type {any} */ each) => each["PutRequest"]["Item"]);
        setDone(at - left.length);
        if (left.length) await new Promise((resume) => setTimeout(resume, PAUSE_MILLISECONDS));
      }
    } catch (failure) {
      setError(failure);
    }
    setRunning(false);
  };
  const close = () => {
    isStopped.current = true;
    onClose();
  };
  const isComplete = items.length > 0 && done === items.length;
  return html`<${Dialog} title=${`Import into ${table.name}`} onClose=${close}>
    <p class="hint">
      A file with an array or lines of DynamoDB JSON, or CSV with a header. An item with the key of
      a stored item replaces it.
    </p>
    <label class="field">
      <span class="label">File</span>
      <input type="file" accept=".json,.jsonl,.ndjson,.csv,.txt" onChange=${read} />
    </label>
    <${Problem} error=${error} />
    ${items.length > 0 &&
    html`<p role="status">
        ${done ? `${count(done)} of ` : ""}${plural(items.length, "item")}${done ? " imported" : ""}
      </p>
      ${!done &&
      html`<pre tabindex="0" role="region" aria-label="First items">
${items.slice(0, PREVIEWED).map((item) => pretty(item)).join("\n")}</pre
      >`}`}
    <div class="row">
      <span class="spacer"></span>
      ${isRunning
        ? html`<button type="button" onClick=${() => (isStopped.current = true)}>Stop</button>`
        : html`<button type="button" onClick=${close}>${isComplete ? "Close" : "Cancel"}</button>
            ${!isComplete &&
            html`<button type="button" class="main" disabled=${!items.length} onClick=${run}>
              Import
            </button>`}`}
    </div>
  <//>`;
}
