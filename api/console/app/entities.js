// The kinds of items in a table, by the patterns of their keys, such as CUSTOMER#… and ORDER#….

import { typeOf } from "./values.js";

/** @typedef {import("./values.js").Item} Item */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */
/** @typedef {import("./table_page.js").Source} Source */

/**
 * Items whose keys have the same patterns. `places` has the patterns of the table and of each index
 * in which the entity has entries; `always` are the attributes of all of its items.
 * @typedef {{
 *   partition: string, sort: string, count: number, partitions: number,
 *   places: Record<string, string[]>, always: string[], sometimes: string[],
 * }} Entity
 */

const SEPARATORS = /[#|]/;
// More different values without a separator are not names.
const MOST_NAMES = 20;
const MOST_PATTERNS = 3;
/** The patterns of values that have no name in them. */
export const UNNAMED = ["text", "number", "date", "UUID", "binary", ""];
const KINDS = /** @type {const} */ ([
  ["number", /^[-+]?\d+(\.\d+)?$/],
  ["date", /^\d{4}-\d\d(-\d\d)?([T ].*)?$/],
  ["UUID", /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i],
]);

/**
 * @param {Item[]} items
 * @param {TableFacts} table
 * @returns {Entity[]} the most frequent first
 */
export function entitiesOf(items, table) {
  const own = table.sources[0] ?? { name: "", partition: [], sort: [] };
  const keys = new Set(table.sources.flatMap((source) => [...source.partition, ...source.sort]));
  const patterns = new Map(
    [...keys].map((name) => [name, patternsOf(items, name, !own.partition.includes(name))]),
  );
  const pattern = (/** @type {Item} */ item, /** @type {string[]} */ names) =>
    names.map((name) => patterns.get(name)?.(item) ?? "").join(" · ");
  /** @type {Map<string, Item[]>} */
  const groups = new Map();
  for (const item of items) {
    const key = JSON.stringify([pattern(item, own.partition), pattern(item, own.sort)]);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return [...groups]
    .map(([key, of]) => {
      const [partition, sort] = JSON.parse(key);
      const uses = new Map();
      for (const item of of) {
        for (const name of Object.keys(item)) uses.set(name, (uses.get(name) ?? 0) + 1);
      }
      const others = [...uses.keys()].filter((name) => !table.keys.includes(name)).sort();
      const isAlways = (/** @type {string} */ name) => uses.get(name) === of.length;
      return {
        partition,
        sort,
        count: of.length,
        partitions: new Set(
          of.map((item) => JSON.stringify(own.partition.map((name) => item[name]))),
        ).size,
        places: placesOf(of, table.sources.slice(1), pattern),
        always: others.filter(isAlways),
        sometimes: others.filter((name) => !isAlways(name)),
      };
    })
    .sort((a, b) => b.count - a.count || a.sort.localeCompare(b.sort));
}

/**
 * The patterns of the keys that items have in each index.
 * @param {Item[]} items
 * @param {Source[]} indexes
 * @param {(item: Item, names: string[]) => string} pattern
 */
function placesOf(items, indexes, pattern) {
  /** @type {Record<string, string[]>} */
  const places = {};
  for (const { name, partition, sort } of indexes) {
    const keys = [...partition, ...sort];
    const entries = items.filter((item) => keys.every((key) => item[key]));
    const found = [...new Set(entries.map((item) => pattern(item, keys)))].sort();
    places[name] = found.length > MOST_PATTERNS ? [...found.slice(0, MOST_PATTERNS), "…"] : found;
  }
  return places;
}

/**
 * The function that makes a pattern from the value of an attribute. A part of a text that several
 * items share is a name and stays; any other part becomes "…".
 * @param {Item[]} items
 * @param {string} name
 * @param {boolean} mayBeName whether a value without a separator may be a name, such as PROFILE
 */
function patternsOf(items, name, mayBeName) {
  const counts = new Map();
  const single = new Set();
  for (const item of items) {
    const text = item[name]?.["S"];
    if (text === undefined) continue;
    const parts = text.split(SEPARATORS);
    if (parts.length === 1) single.add(text);
    for (const part of new Set(parts)) counts.set(part, (counts.get(part) ?? 0) + 1);
  }
  const hasNames = mayBeName && single.size <= MOST_NAMES;
  const isName = (/** @type {string} */ part) =>
    counts.get(part) > 1 && /^\p{L}/u.test(part) && kindOf(part) === "text";
  return (/** @type {Item} */ item) => {
    const value = item[name];
    if (!value) return "";
    const text = value["S"];
    if (text === undefined) return typeOf(value) === "N" ? "number" : "binary";
    const parts = text.split(SEPARATORS);
    if (parts.length === 1) return hasNames && isName(text) ? text : kindOf(text);
    let rest = text;
    return parts
      .map((/** @type {string} */ part, /** @type {number} */ at) => {
        rest = rest.slice(part.length);
        const separator = rest.slice(0, 1);
        rest = rest.slice(1);
        const isFirstName = at === 0 && /^[\p{L}_]+$/u.test(part);
        return (isFirstName || isName(part) ? part : "…") + separator;
      })
      .join("");
  };
}

/** @param {string} text */
const kindOf = (text) => KINDS.find(([, form]) => form.test(text))?.[0] ?? "text";
