// Files of items: records in DynamoDB JSON or CSV, each with the number of its first line.

import { columnsOf, itemOf, rowsOf } from "./csv.js";
import { checkedItem } from "./values.js";

/** @typedef {import("./values.js").Item} Item */
/** @typedef {import("./csv.js").Column} Column */
/** @typedef {{line: number, item: Item | null, problem: string}} ItemRecord */
/**
 * @typedef {{
 *   columns: Column[], sample: string[], records: (columns: Column[]) => ItemRecord[],
 * }} ItemFile
 */

// It stands for bytes that are not UTF-8.
const REPLACEMENT = "\uFFFD";

/**
 * Read a file: an array or lines of DynamoDB JSON, or CSV with a header, which has columns.
 * @param {File} file
 * @param {string[]} keys
 * @param {Record<string, string>} declared the types of the table's definition
 * @returns {Promise<ItemFile>}
 */
export async function itemFile(file, keys, declared) {
  const bytes = await file.arrayBuffer();
  const text = new TextDecoder().decode(bytes);
  const isDamaged = text.includes(REPLACEMENT) && !isUtf8(bytes);
  const check = (/** @type {string} */ content) => {
    if (isDamaged && content.includes(REPLACEMENT)) {
      throw new SyntaxError("The record is not UTF-8");
    }
  };
  const start = text.trimStart()[0] ?? "";
  if (file.name.endsWith(".csv") || !"[{".includes(start)) {
    const [header, ...rows] = rowsOf(text);
    if (header?.problem) throw new SyntaxError(`Line ${header.line}: ${header.problem}`);
    return {
      columns: columnsOf(header?.cells ?? [], keys, declared),
      sample: rows[0]?.cells ?? [],
      records: (columns) =>
        rows.map(({ line, cells, problem }) =>
          record(line, () => {
            check(cells.join());
            if (problem) throw new SyntaxError(problem);
            return itemOf(columns, cells);
          }),
        ),
    };
  }
  const records = (start === "[" ? elements(text) : lines(text)).map(({ line, content }) =>
    record(line, () => {
      check(content);
      return jsonItem(JSON.parse(content), keys);
    }),
  );
  return { columns: [], sample: [], records: () => records };
}

/**
 * @param {number} line
 * @param {() => Item} read
 * @returns {ItemRecord}
 */
function record(line, read) {
  try {
    return { line, item: read(), problem: "" };
  } catch (error) {
    return { line, item: null, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** @param {ArrayBuffer} bytes */
function isUtf8(bytes) {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {any} given
 * @param {string[]} keys
 */
function jsonItem(given, keys) {
  // Exports of DynamoDB have each item in a member.
  const isItem = given === null || keys.every((name) => given[name]);
  return checkedItem(isItem ? given : (given["Item"] ?? given));
}

/**
 * One JSON object, or an object in each line.
 * @param {string} text
 */
function lines(text) {
  try {
    JSON.parse(text);
    return [{ line: 1, content: text }];
  } catch {
    return text
      .split("\n")
      .map((content, at) => ({ line: at + 1, content }))
      .filter(({ content }) => content.trim());
  }
}

/**
 * The elements of a JSON array.
 * @param {string} text
 */
function elements(text) {
  const given = /** @type {any[]} */ (JSON.parse(text));
  /** @type {number[]} */
  const starts = [];
  let [line, depth, isStart] = [1, 0, false];
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"]|\n/g)) {
    if (token === "\n") line += 1;
    else if ("]}".includes(token)) depth -= 1;
    else {
      if (isStart) starts.push(line);
      if ("[{".includes(token)) depth += 1;
      isStart = depth === 1 && (token === "," || !starts.length);
    }
  }
  return given.map((each, at) => ({ line: starts[at] ?? 1, content: JSON.stringify(each) }));
}
