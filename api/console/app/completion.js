// The names that may stand at a place of a PartiQL statement.

const WORDS = [
  ...["SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "BETWEEN", "IN", "ORDER BY", "DESC", "IS"],
  ...["MISSING", "NULL", "INSERT INTO", "VALUE", "UPDATE", "SET", "REMOVE", "DELETE FROM"],
  ...["RETURNING ALL OLD *", "begins_with", "contains", "attribute_type", "size"],
];
const MOST_SUGGESTIONS = 8;
// A word, after which a table or an attribute has to follow.
const TABLE_NEXT = /\b(from|into|update)\s+$/i;
const ATTRIBUTE_NEXT = /(\b(where|and|or|not|set|remove|select|by)\s+|[,(]\s*)$/i;
const TABLE = /\b(?:from|into|update)\s+"?([\w.-]+)/i;

/** @param {string} name */
const quoted = (name) => `"${name.replaceAll('"', '""')}"`;

/** @param {string} name */
const plain = (name) => name.replaceAll('"', "").toLowerCase();

/**
 * The table that a statement names; empty if it names none.
 * @param {string} text
 * @param {import("./tables.js").TableOverview[]} tables
 */
export function tableIn(text, tables) {
  const name = TABLE.exec(text)?.[1] ?? "";
  return tables.some((table) => table.name === name) ? name : "";
}

/**
 * The word before a place, and the names that complete it, the most likely ones first.
 * @param {string} before the text before the place
 * @param {import("./tables.js").TableOverview[]} tables
 * @param {string[]} attributes the attributes of the table that the statement names
 */
export function completion(before, tables, attributes) {
  const word = /"?[\w.-]*$/.exec(before)?.[0] ?? "";
  const start = plain(word);
  const rest = before.slice(0, before.length - word.length);
  const places = [
    ...tables.map((table) => quoted(table.name)),
    ...tables.flatMap((table) =>
      table.indexes.map((each) => `${quoted(table.name)}.${quoted(each.name)}`),
    ),
  ];
  const own = attributes.map(quoted);
  const isTableNext = TABLE_NEXT.test(rest);
  const isInText = before.split("'").length % 2 === 0;
  /** @type {string[]} */
  let names = [];
  if (isInText) names = [];
  else if (isTableNext) names = places;
  else if (start) names = [...own, ...WORDS, ...places];
  else if (ATTRIBUTE_NEXT.test(rest)) names = own;
  const suggestions = names
    .filter((name) => plain(name).startsWith(start) && plain(name) !== start)
    .slice(0, MOST_SUGGESTIONS);
  return { word, suggestions };
}
