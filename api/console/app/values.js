// Attribute values: text, comparison, and DynamoDB's JSON. A number is always text.

/** @typedef {Record<string, any>} AttributeValue */
/** @typedef {Record<string, AttributeValue>} Item */

/** Characters of a cell of a table. */
export const CELL_CHARACTERS = 200;

const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/;

/** The types of values with their names. */
export const TYPES = /** @type {Record<string, string>} */ ({
  S: "String",
  N: "Number",
  B: "Binary",
  BOOL: "Boolean",
  NULL: "Null",
  M: "Map",
  L: "List",
  SS: "String set",
  NS: "Number set",
  BS: "Binary set",
});

/** @param {string} text */
export const isNumber = (text) => NUMBER.test(text);

/** @param {AttributeValue} value */
export const typeOf = (value) => Object.keys(value)[0] ?? "";

/**
 * A value as short text.
 * @param {AttributeValue} value
 * @returns {string}
 */
export function shown(value) {
  const type = typeOf(value);
  const content = value[type];
  switch (type) {
    case "S":
    case "N":
      return content;
    case "B":
      return hex(content);
    case "BOOL":
      return String(content);
    case "NULL":
      return "null";
    case "SS":
    case "NS":
      return `{${content.join(", ")}}`;
    case "BS":
      return `{${content.map(hex).join(", ")}}`;
    case "L":
      return `[${content.map(shown).join(", ")}]`;
    default:
      return `{${Object.entries(content)
        .map(([name, each]) => `${name}: ${shown(/** @type {AttributeValue} */ (each))}`)
        .join(", ")}}`;
  }
}

/** @param {AttributeValue} value */
export function cut(value) {
  const text = shown(value);
  return text.length > CELL_CHARACTERS ? `${text.slice(0, CELL_CHARACTERS)}…` : text;
}

/** @param {string} base64 */
function hex(base64) {
  const bytes = atob(base64.slice(0, 4 * Math.ceil(CELL_CHARACTERS / 6)));
  return `0x${[...bytes].map((each) => each.charCodeAt(0).toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Parse the text of an item in DynamoDB's JSON.
 * @param {string} text
 * @returns {Item}
 */
export const parseItem = (text) => checkedItem(JSON.parse(text));

/**
 * @param {any} item
 * @returns {Item} the same object
 */
export function checkedItem(item) {
  if (typeof item !== "object" || item === null || Array.isArray(item)) {
    throw new SyntaxError("An item is a JSON object of attributes");
  }
  for (const [name, value] of Object.entries(item)) check(name, value);
  return item;
}

/**
 * @param {string} path
 * @param {any} value
 * @returns {AttributeValue} the same object
 */
export function checkedValue(path, value) {
  check(path, value);
  return value;
}

const isObject = (/** @type {any} */ content) =>
  typeof content === "object" && content !== null && !Array.isArray(content);

const isText = (/** @type {any} */ content) => typeof content === "string";
const isBoolean = (/** @type {any} */ content) => typeof content === "boolean";
const areTexts = (/** @type {any} */ content) => Array.isArray(content) && content.every(isText);

const CONTENTS = /** @type {Record<string, (content: any) => boolean>} */ ({
  S: isText,
  N: isText,
  B: isText,
  BOOL: isBoolean,
  NULL: isBoolean,
  M: isObject,
  L: Array.isArray,
  SS: areTexts,
  NS: areTexts,
  BS: areTexts,
});

/**
 * @param {string} path
 * @param {any} value
 */
function check(path, value) {
  const types = isObject(value) ? Object.keys(value) : [];
  const [type = ""] = types;
  if (types.length !== 1 || !Object.hasOwn(TYPES, type)) {
    throw new SyntaxError(`${path} needs one type, such as {"S": "text"} or {"N": "1"}`);
  }
  const content = value[type];
  const numbers = type === "N" ? [content] : type === "NS" && Array.isArray(content) ? content : [];
  for (const number of numbers) {
    if (typeof number !== "string" || !isNumber(number)) {
      throw new SyntaxError(`${path}: write a number as text, such as {"N": "12.5"}`);
    }
  }
  const isFitting = CONTENTS[type]?.(content);
  if (!isFitting) throw new SyntaxError(`${path} has no content of the type ${TYPES[type]}`);
  if (type === "M") {
    for (const [name, each] of Object.entries(content)) check(`${path}.${name}`, each);
  }
  if (type === "L") {
    content.forEach((/** @type {any} */ each, /** @type {number} */ at) =>
      check(`${path}[${at}]`, each),
    );
  }
}

/**
 * The names of the items' attributes: the keys, then the others by their frequency.
 * @param {Item[]} items
 * @param {string[]} keys
 */
export function attributesOf(items, keys) {
  /** @type {Map<string, number>} */
  const uses = new Map();
  for (const item of items) {
    for (const name of Object.keys(item)) uses.set(name, (uses.get(name) ?? 0) + 1);
  }
  const others = [...uses.keys()]
    .filter((name) => !keys.includes(name))
    .sort((a, b) => (uses.get(b) ?? 0) - (uses.get(a) ?? 0) || a.localeCompare(b));
  return [...keys.filter((name) => uses.has(name)), ...others];
}

/**
 * Make a value of a type from the text of an input.
 * @param {string} type
 * @param {string} text
 * @returns {AttributeValue}
 */
export function valueOf(type, text) {
  if (type === "BOOL") return { BOOL: text === "true" };
  if (type === "NULL") return { NULL: true };
  if (type === "B") return { B: text };
  if (type === "N" && !isNumber(text.trim())) throw new SyntaxError(`${text} is not a number`);
  return type === "N" ? { N: text.trim() } : { S: text };
}

const LINE_CHARACTERS = 76;

/**
 * JSON with a line for each value that fits on one.
 * @param {any} value
 * @param {string} [margin]
 * @returns {string}
 */
export function pretty(value, margin = "") {
  const line = JSON.stringify(value);
  const isItem = margin === "";
  if (value === null || typeof value !== "object") return line;
  if (!isItem && line.length + margin.length <= LINE_CHARACTERS) return spaced(value);
  const inner = `${margin}  `;
  if (Array.isArray(value)) {
    const parts = value.map((each) => inner + pretty(each, inner));
    return parts.length ? `[\n${parts.join(",\n")}\n${margin}]` : "[]";
  }
  const parts = Object.entries(value).map(
    ([name, each]) => `${inner}${JSON.stringify(name)}: ${pretty(each, inner)}`,
  );
  return parts.length ? `{\n${parts.join(",\n")}\n${margin}}` : "{}";
}

/**
 * @param {any} value
 * @returns {string}
 */
function spaced(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  const parts = Object.entries(value).map(
    ([name, each]) => `${JSON.stringify(name)}: ${spaced(each)}`,
  );
  return `{${parts.join(", ")}}`;
}

/**
 * The JSON of a value with sorted names and set members, so that equal values have equal texts.
 * @param {any} value
 * @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") {
    return `{${Object.keys(value)
      .sort()
      .map((name) => {
        const content = value[name];
        const isSet = ["SS", "NS", "BS"].includes(name) && Array.isArray(content);
        return `${JSON.stringify(name)}:${canonical(isSet ? [...content].sort() : content)}`;
      })
      .join(",")}}`;
  }
  return JSON.stringify(value);
}

/** @typedef {{name: string, before: AttributeValue | null, after: AttributeValue | null}} Change */

/**
 * The attributes that differ between two items.
 * @param {Item | null | undefined} before
 * @param {Item | null | undefined} after
 * @returns {Change[]}
 */
export function changes(before, after) {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names].sort().flatMap((name) => {
    const [old, now] = [before?.[name] ?? null, after?.[name] ?? null];
    return old && now && canonical(old) === canonical(now)
      ? []
      : [{ name, before: old, after: now }];
  });
}

// An expression has at most 300 operators and 4 KB.
const MOST_TERMS = 120;
const MOST_CHANGES = 100;

/**
 * The condition that is true for an item as it was shown. It names at most 120 attributes.
 * @param {Item} item
 * @param {string[]} [first] attributes that the condition names in any case, absent ones too
 */
export function unchanged(item, first = []) {
  /** @type {Record<string, string>} */
  const names = {};
  /** @type {Item} */
  const values = {};
  const terms = [...new Set([...first, ...Object.keys(item)])]
    .slice(0, MOST_TERMS)
    .map((name, at) => {
      names[`#a${at}`] = name;
      const value = item[name];
      if (!value) return `attribute_not_exists(#a${at})`;
      values[`:a${at}`] = value;
      return `#a${at}=:a${at}`;
    });
  return {
    ConditionExpression: terms.join(" AND "),
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: values,
  };
}

/**
 * The update of the attributes that differ. Attributes that others add meanwhile stay.
 * @param {Item} item as it was shown
 * @param {Item} next
 * @param {string[]} keys
 */
export function updateOf(item, next, keys) {
  const different = changes(item, next);
  if (different.length > MOST_CHANGES) {
    throw new Error(`Change at most ${MOST_CHANGES} attributes at a time`);
  }
  const condition = unchanged(item, [...keys, ...different.map((each) => each.name)]);
  const { ExpressionAttributeNames: names, ExpressionAttributeValues: values } = condition;
  const [sets, removals] = /** @type {[string[], string[]]} */ ([[], []]);
  different.forEach(({ name, after }, at) => {
    names[`#n${at}`] = name;
    if (after) {
      values[`:n${at}`] = after;
      sets.push(`#n${at}=:n${at}`);
    } else removals.push(`#n${at}`);
  });
  const clauses = [
    ...(sets.length ? [`SET ${sets.join(",")}`] : []),
    ...(removals.length ? [`REMOVE ${removals.join(",")}`] : []),
  ];
  return {
    Key: keyOf(item, keys),
    ...(clauses.length ? { UpdateExpression: clauses.join(" ") } : {}),
    ...condition,
  };
}

/**
 * @param {Item} item
 * @param {string[]} names
 * @returns {Item}
 */
export const keyOf = (item, names) =>
  Object.fromEntries(names.flatMap((name) => (item[name] ? [[name, item[name]]] : [])));
