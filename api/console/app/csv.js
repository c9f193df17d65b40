// CSV files of items: the types of their columns, and the values of their cells. The server's
// imports have the same rules: model/files/csv_columns.py.

import { TYPES, checkedValue, isNumber, typeOf } from "./values.js";

/** @typedef {import("./values.js").Item} Item */
/** @typedef {import("./values.js").AttributeValue} AttributeValue */
/** @typedef {{name: string, type: string}} Column */
/** @typedef {{line: number, cells: string[], problem: string}} Row */

/** The type of a column whose cells are whole values, with their types. */
const ANY = "JSON";
/** The types of columns with their names. */
export const COLUMN_TYPES = /** @type {Record<string, string>} */ ({ ...TYPES, [ANY]: "Any type" });

const TEXT_TYPES = ["S", "N", "B"];

/**
 * The lines of a CSV file. Its header gives each column its type.
 * @param {Item[]} items
 * @param {string[]} names
 * @param {string[]} keys
 */
export function csvOf(items, names, keys) {
  const columns = names.map((name) => ({ name, type: exportedType(items, name) }));
  const header = columns.map(({ name, type }) => `${name}:${type}`);
  if (keys.every((name) => header.includes(name))) {
    throw new Error("The key of this table has the name of another column: export DynamoDB JSON");
  }
  return [
    header,
    ...items.map((item) => columns.map((column) => cellOf(column, item))),
  ].map((cells) => `${cells.map(quoted).join(",")}\r\n`);
}

/**
 * @param {Item[]} items
 * @param {string} name
 */
function exportedType(items, name) {
  const values = items.flatMap((item) => (Object.hasOwn(item, name) && item[name]) || []);
  const types = new Set(values.map(typeOf));
  // An empty cell is an attribute that the item does not have.
  const isEmpty = values.some((value) => value[typeOf(value)] === "");
  return types.size === 1 && !isEmpty ? ([...types][0] ?? ANY) : ANY;
}

/**
 * @param {Column} column
 * @param {Item} item
 */
function cellOf({ name, type }, item) {
  const value = Object.hasOwn(item, name) && item[name];
  if (!value) return "";
  if (TEXT_TYPES.includes(type)) return value[type];
  return JSON.stringify(type === ANY ? value : value[type]);
}

/** @param {string} cell */
const quoted = (cell) => (/[",\n\r\uFEFF]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

/**
 * The columns of a header. Attributes are strings unless the table declares their type. A header with
 * a type for each column counts only if it lacks a key: others are as in AWS's ImportTable.
 * @param {string[]} header
 * @param {string[]} keys
 * @param {Record<string, string>} declared
 * @returns {Column[]}
 */
export function columnsOf(header, keys, declared) {
  const typed = header.map((cell) => {
    const at = cell.lastIndexOf(":");
    return { name: cell.slice(0, Math.max(at, 0)), type: cell.slice(at + 1), at };
  });
  const isTyped =
    !keys.every((name) => header.includes(name)) &&
    typed.every(({ type, at }) => at >= 0 && Object.hasOwn(COLUMN_TYPES, type));
  const columns = isTyped
    ? typed.map(({ name, type }) => ({ name, type }))
    : header.map((name) => ({
        name,
        type: (Object.hasOwn(declared, name) && declared[name]) || "S",
      }));
  const names = columns.map(({ name }) => name);
  if (new Set(names).size < names.length) {
    throw new SyntaxError("A column name occurs twice in the header");
  }
  if (names.includes("")) throw new SyntaxError("A column of the header has no name");
  return columns;
}

/**
 * The item of a row.
 * @param {Column[]} columns
 * @param {string[]} cells
 * @returns {Item}
 */
export function itemOf(columns, cells) {
  if (cells.length !== columns.length) {
    throw new SyntaxError(
      `The record has ${cells.length} columns, the header has ${columns.length}`,
    );
  }
  return Object.fromEntries(
    columns.flatMap((column, at) => {
      const cell = cells[at];
      return cell ? [[column.name, valueOf(column, cell)]] : [];
    }),
  );
}

/**
 * @param {Column} column
 * @param {string} cell
 */
function valueOf({ name, type }, cell) {
  if (type === "N" && !isNumber(cell)) throw new SyntaxError(`${name}: the cell is not a number`);
  if (TEXT_TYPES.includes(type)) return { [type]: cell };
  if (type === "BOOL" || type === "NULL") {
    if (cell !== "true" && cell !== "false") {
      throw new SyntaxError(`${name}: the cell is neither true nor false`);
    }
    return { [type]: cell === "true" };
  }
  let content;
  try {
    content = JSON.parse(cell);
  } catch (error) {
    throw new SyntaxError(`${name}: the cell is not DynamoDB JSON: ${error}`);
  }
  return checkedValue(name, type === ANY ? content : { [type]: content });
}

/**
 * The rows of a CSV file (RFC 4180) with the numbers of their first lines. Blank lines are none.
 * @param {string} text
 * @returns {Row[]}
 */
export function rowsOf(text) {
  /** @type {Row[]} */
  const rows = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    /** @type {Row} */
    const row = { line, cells: [], problem: "" };
    const end = readRow(text, at, row);
    if (row.problem || row.cells.length > 1 || row.cells[0]) rows.push(row);
    for (let next = at; (next = text.indexOf("\n", next) + 1) > 0 && next <= end; ) line += 1;
    at = end;
  }
  return rows;
}

/**
 * Read the cells of a row.
 * @param {string} text
 * @param {number} start
 * @param {Row} row
 * @returns {number} the place after the row
 */
function readRow(text, start, row) {
  for (let at = start; ; ) {
    let end;
    if (text[at] === '"') {
      end = endOfQuote(text, at + 1);
      if (end < 0) {
        row.problem = "A quote has no end";
        return text.length;
      }
      row.cells.push(text.slice(at + 1, end).replaceAll('""', '"'));
      end += 1;
    } else {
      end = endOfCell(text, at);
      row.cells.push(text.slice(at, end));
    }
    if (end >= text.length) return end;
    if (text[end] === "\n") return end + 1;
    if (text.startsWith("\r\n", end)) return end + 2;
    if (text[end] !== ",") {
      row.problem = "A cell goes on after its quote or after a carriage return";
      const next = text.indexOf("\n", end);
      return next < 0 ? text.length : next + 1;
    }
    at = end + 1;
  }
}

/**
 * @param {string} text
 * @param {number} start
 */
function endOfQuote(text, start) {
  let at = text.indexOf('"', start);
  while (at >= 0 && text[at + 1] === '"') at = text.indexOf('"', at + 2);
  return at;
}

/**
 * @param {string} text
 * @param {number} start
 */
function endOfCell(text, start) {
  const ends = /[,\r\n]/g;
  ends.lastIndex = start;
  return ends.exec(text)?.index ?? text.length;
}
