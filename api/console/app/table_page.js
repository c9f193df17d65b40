// The page of one table, with a tab for each view of it.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Advice, IndexCost } from "./advice.js";
import { RequestError, dynamodb } from "./api.js";
import { Definition } from "./definition.js";
import { count, size } from "./format.js";
import { Items } from "./items.js";
import { Keys } from "./keys.js";
import { Live } from "./live.js";
import { Recovery } from "./recovery.js";
import { link } from "./route.js";
import { Stream } from "./stream.js";
import { Badge, Problem, useLoaded, useRepeated } from "./ui.js";

/** @typedef {import("./api.js").Json} Json */

/**
 * A place to read from: the table itself (empty name) or one of its indexes.
 * @typedef {{name: string, partition: string[], sort: string[]}} Source
 */

/**
 * The definition of a table in the form that the views use.
 * @typedef {{
 *   name: string, description: Json, keys: string[], types: Record<string, string>,
 *   sources: Source[],
 * }} TableFacts
 */

/**
 * @param {Json} description
 * @returns {TableFacts}
 */
function factsOf(description) {
  const source = (/** @type {string} */ name, /** @type {Json[]} */ schema) => ({
    name,
    partition: names(schema, "HASH"),
    sort: names(schema, "RANGE"),
  });
  const indexes = [
    ...(description["LocalSecondaryIndexes"] ?? []),
    ...(description["GlobalSecondaryIndexes"] ?? []),
  ];
  const schema = /** @type {Json[]} */ (description["KeySchema"]);
  return {
    name: description["TableName"],
    description,
    keys: schema.map((key) => key["AttributeName"]),
    types: Object.fromEntries(
      description["AttributeDefinitions"].map((/** @type {Json} */ each) => [
        each["AttributeName"],
        each["AttributeType"],
      ]),
    ),
    sources: [
      source("", schema),
      ...indexes.map((index) => source(index["IndexName"], index["KeySchema"])),
    ],
  };
}

/**
 * @param {Json[]} schema
 * @param {string} kind
 */
const names = (schema, kind) =>
  schema.filter((key) => key["KeyType"] === kind).map((key) => key["AttributeName"]);

const REFRESH_SECONDS = 3;
const TABS = /** @type {const} */ ([
  ["items", "Items"],
  ["keys", "Keys"],
  ["live", "Live"],
  ["stream", "Stream"],
  ["advice", "Advice"],
  ["index-cost", "Index cost"],
  ["recovery", "Recovery"],
  ["definition", "Definition"],
]);

/**
 * @param {{server: import("./main.js").Server, route: import("./route.js").Route}} properties
 */
export function TablePage({ server, route }) {
  const [, name = "", tab = "items"] = route.path;
  const { data, error, reload } = useLoaded(
    async (signal) => factsOf(await descriptionOf(name, { signal })),
    [name],
  );
  const isGone = error instanceof RequestError && error.code === "ResourceNotFoundException";
  return html`<nav class="crumbs" aria-label="Path">
      <a href=${link(["tables"])}>Tables</a> <span aria-hidden="true">/</span>
    </nav>
    <div class="title-row">
      <h1>${name}</h1>
      ${data && html`<${Counts} table=${data} />`}
    </div>
    <nav class="tabs" aria-label="Views of the table">
      ${TABS.map(
        ([key, title]) =>
          html`<a
            key=${key}
            href=${link(["table", name, key])}
            aria-current=${tab === key ? "page" : undefined}
            >${title}</a
          >`,
      )}
    </nav>
    <${Problem} error=${error} />
    ${data && !isGone && html`<${Tab} tab=${tab} table=${data} server=${server} route=${route} reload=${reload} />`}`;
}

/**
 * @param {string} name
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<Json>}
 */
const descriptionOf = async (name, options) =>
  (await dynamodb("DescribeTable", { TableName: name }, options)).data["Table"];

/**
 * The state and the size of the table, read again while the page is open. The views keep the
 * definition that they have, because a new one would start them again.
 * @param {{table: TableFacts}} properties
 */
function Counts({ table }) {
  const [description, setDescription] = useState(table.description);
  useEffect(() => setDescription(table.description), [table]);
  // The views report a failure, so the last counts stay.
  useRepeated(() => descriptionOf(table.name).then(setDescription, () => {}), REFRESH_SECONDS);
  return html`<${Badge} state=${description["TableStatus"]} />
    <span class="sub"
      >${count(description["ItemCount"])} items, ${size(description["TableSizeBytes"])}</span
    >`;
}

/**
 * @param {{
 *   tab: string, table: TableFacts, server: import("./main.js").Server,
 *   route: import("./route.js").Route, reload: () => void,
 * }} properties
 */
function Tab({ tab, table, server, route, reload }) {
  if (tab === "keys") return html`<${Keys} table=${table} />`;
  if (tab === "live") return html`<${Live} key=${table.name} table=${table} />`;
  if (tab === "stream") return html`<${Stream} key=${table.name} table=${table} />`;
  if (tab === "advice") return html`<${Advice} table=${table} />`;
  if (tab === "index-cost" || tab === "recovery") {
    return html`<${tab === "recovery" ? Recovery : IndexCost}
      key=${JSON.stringify(route.query)}
      table=${table}
      server=${server}
      query=${route.query}
    />`;
  }
  if (tab === "definition") {
    return html`<${Definition} table=${table} server=${server} reload=${reload} query=${route.query} />`;
  }
  return html`<${Items} table=${table} server=${server} query=${route.query} />`;
}
