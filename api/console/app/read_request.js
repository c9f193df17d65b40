// The request of the items page: from the form to DynamoDB's Query or Scan.

import { valueOf } from "./values.js";

/** @typedef {import("./api.js").Json} Json */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */

/**
 * A condition of a filter. `other` is the upper bound of BETWEEN.
 * @typedef {{name: string, operator: string, type: string, text: string, other: string}} Term
 */
/** @typedef {{operator: string, text: string, other: string}} SortTerm */

/**
 * The form. `partition` and `sort` have a text for each key attribute of the source.
 * @typedef {{
 *   mode: string, source: string, partition: string[], sort: SortTerm[], terms: Term[],
 *   limit: string, order: string, consistent: boolean,
 * }} Form
 */

export const COMPARISONS = /** @type {const} */ (["=", "<", "<=", ">", ">="]);
export const SORT_OPERATORS = [...COMPARISONS, "between", "begins_with"];
export const FILTER_OPERATORS = /** @type {const} */ ([
  ...COMPARISONS,
  "<>",
  "between",
  "begins_with",
  "contains",
  "exists",
  "not exists",
]);
export const FILTER_TYPES = /** @type {const} */ (["S", "N", "B", "BOOL", "NULL"]);
const FIRST_LIMIT = "50";

/** @returns {Term} */
export const newTerm = () => ({ name: "", operator: "=", type: "S", text: "", other: "" });

/**
 * The form that an address has.
 * @param {Record<string, string>} query
 * @param {TableFacts} table
 * @returns {Form}
 */
export function formOf(query, table) {
  const source = query["index"] ?? "";
  const read = (/** @type {string} */ name, /** @type {any} */ otherwise) => {
    try {
      return query[name] ? JSON.parse(query[name]) : otherwise;
    } catch {
      return otherwise;
    }
  };
  const keys = table.sources.find((each) => each.name === source) ?? table.sources[0];
  return {
    mode: query["mode"] === "query" ? "query" : "scan",
    source: keys?.name ?? "",
    partition: (keys?.partition ?? []).map((_, at) => read("partition", [])[at] ?? ""),
    sort: (keys?.sort ?? []).map(
      (_, at) => read("sort", [])[at] ?? { operator: "=", text: "", other: "" },
    ),
    terms: read("filter", []),
    limit: query["limit"] ?? FIRST_LIMIT,
    order: query["order"] ?? "",
    consistent: query["consistent"] === "1",
  };
}

/**
 * The address of a form.
 * @param {Form} form
 * @returns {Record<string, string>}
 */
export function queryOf(form) {
  const isQuery = form.mode === "query";
  return {
    mode: isQuery ? "query" : "",
    index: form.source,
    partition: isQuery && form.partition.some(Boolean) ? JSON.stringify(form.partition) : "",
    sort: isQuery && form.sort.some((each) => each.text) ? JSON.stringify(form.sort) : "",
    filter: form.terms.length ? JSON.stringify(form.terms) : "",
    limit: form.limit === FIRST_LIMIT ? "" : form.limit,
    order: isQuery ? form.order : "",
    consistent: form.consistent ? "1" : "",
  };
}

/** Names and values of an expression, with their placeholders. */
class Expression {
  constructor() {
    /** @type {Json} */
    this.names = {};
    /** @type {Json} */
    this.values = {};
  }

  /** @param {string} name */
  name(name) {
    const known = Object.entries(this.names).find(([, each]) => each === name);
    if (known) return known[0];
    const place = `#${Object.keys(this.names).length}`;
    this.names[place] = name;
    return place;
  }

  /**
   * @param {string} type
   * @param {string} text
   */
  value(type, text) {
    const place = `:${Object.keys(this.values).length}`;
    this.values[place] = valueOf(type, text);
    return place;
  }

  /** @param {Term} term */
  term({ name, operator, type, text, other }) {
    const path = name
      .split(".")
      .map((part) => {
        const [attribute = "", ...positions] = part.split(/(?=\[\d+\])/);
        return this.name(attribute) + positions.join("");
      })
      .join(".");
    switch (operator) {
      case "exists":
        return `attribute_exists(${path})`;
      case "not exists":
        return `attribute_not_exists(${path})`;
      case "between":
        return `${path} BETWEEN ${this.value(type, text)} AND ${this.value(type, other)}`;
      case "begins_with":
      case "contains":
        return `${operator}(${path}, ${this.value(type, text)})`;
      default:
        return `${path} ${operator} ${this.value(type, text)}`;
    }
  }
}

/**
 * The operation and the body of a form's request.
 * @param {Form} form
 * @param {TableFacts} table
 * @returns {{operation: string, body: Json}}
 */
export function requestOf(form, table) {
  const expression = new Expression();
  const source = table.sources.find((each) => each.name === form.source) ?? table.sources[0];
  const isQuery = form.mode === "query";
  /** @type {string[]} */
  const conditions = [];
  if (isQuery && source) {
    source.partition.forEach((name, at) => {
      const text = form.partition[at] ?? "";
      conditions.push(keyTerm(expression, table, name, { operator: "=", text, other: "" }));
    });
    source.sort.forEach((name, at) => {
      const term = form.sort[at];
      if (term?.text) conditions.push(keyTerm(expression, table, name, term));
    });
  }
  const filters = form.terms.filter((term) => term.name).map((term) => expression.term(term));
  return {
    operation: isQuery ? "Query" : "Scan",
    body: {
      TableName: table.name,
      ...(form.source && { IndexName: form.source }),
      ...(conditions.length && { KeyConditionExpression: conditions.join(" AND ") }),
      ...(filters.length && { FilterExpression: filters.join(" AND ") }),
      ...(Object.keys(expression.names).length && {
        ExpressionAttributeNames: expression.names,
      }),
      ...(Object.keys(expression.values).length && {
        ExpressionAttributeValues: expression.values,
      }),
      ...(form.limit && { Limit: Number(form.limit) }),
      ...(isQuery && form.order === "descending" && { ScanIndexForward: false }),
      ...(form.consistent && { ConsistentRead: true }),
      ReturnConsumedCapacity: "INDEXES",
    },
  };
}

/**
 * @param {Expression} expression
 * @param {TableFacts} table
 * @param {string} name
 * @param {SortTerm} term
 */
function keyTerm(expression, table, name, term) {
  const path = expression.name(name);
  const value = (/** @type {string} */ text) =>
    expression.value(table.types[name] ?? "S", text);
  switch (term.operator) {
    case "between":
      return `${path} BETWEEN ${value(term.text)} AND ${value(term.other)}`;
    case "begins_with":
      return `begins_with(${path}, ${value(term.text)})`;
    default:
      return `${path} ${term.operator} ${value(term.text)}`;
  }
}
