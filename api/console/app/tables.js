// The list of the tables.

import { html, useRef, useState } from "../vendor/preact.js";
import { admin } from "./api.js";
import { count, plural, rate, size, span } from "./format.js";
import { link } from "./route.js";
import { Badge, DataTable, Empty, Input, Problem, useLoaded, useRepeated } from "./ui.js";

/**
 * @typedef {{
 *   name: string, status: string, progress: number | null, lag_records: number,
 *   lag_seconds: number | null,
 * }} IndexOverview
 */
/** @typedef {{AttributeName: string, KeyType: string}} Key */
/**
 * @typedef {{topic: string, status: string, state: string, lag_records: number,
 *   lag_seconds: number}} Destination
 */
/**
 * @typedef {{
 *   name: string, status: string, mode: string, provisioned_read_units: number,
 *   provisioned_write_units: number, item_count: number, size_bytes: number,
 *   partitions: number, keys: Key[], attributes: Record<string, string>, read_units: number,
 *   write_units: number, throttled: number, would_be_throttled: number, has_stream: boolean, has_recovery: boolean,
 *   time_to_live: string, time_to_live_attribute: string | null, indexes: IndexOverview[],
 *   destinations: Destination[],
 * }} TableOverview
 */
/** @typedef {{seconds: number, tables: TableOverview[]}} Overview */

const REFRESH_SECONDS = 5;

/** @returns {{
 *   overview: Overview | null, before: Overview | null, error: unknown, reload: () => void
 * }}
 */
export function useOverview() {
  const last = useRef(/** @type {Overview | null} */ (null));
  const loaded = useLoaded(async (signal) => {
    /** @type {Overview} */
    const overview = await admin("/console/tables", { signal });
    const before = last.current;
    last.current = overview;
    return { overview, before };
  }, []);
  useRepeated(loaded.reload, REFRESH_SECONDS);
  return {
    overview: loaded.data?.overview ?? null,
    before: loaded.data?.before ?? null,
    error: loaded.error,
    reload: loaded.reload,
  };
}

/**
 * Units per second between two answers.
 * @param {Overview} now
 * @param {Overview | null} before
 * @param {TableOverview} table
 */
function rates(now, before, table) {
  const old = before?.tables.find((each) => each.name === table.name);
  const seconds = before ? now.seconds - before.seconds : 0;
  if (!old || seconds <= 0) return { reads: 0, writes: 0 };
  return {
    reads: Math.max(0, (table.read_units - old.read_units) / seconds),
    writes: Math.max(0, (table.write_units - old.write_units) / seconds),
  };
}

/** @param {Key[]} keys */
const keyText = (keys) => keys.map((key) => key.AttributeName).join(" + ");

/** @param {{server: import("./main.js").Server}} properties */
export function Tables({ server }) {
  const { overview, before, error } = useOverview();
  const [filter, setFilter] = useState("");
  if (!overview) return html`<h1>Tables</h1><${Problem} error=${error} />`;
  const tables = overview.tables.filter((table) =>
    table.name.toLowerCase().includes(filter.toLowerCase()),
  );
  const make =
    !server.is_read_only && html`<a class="button main" href=${link(["new"])}>Make a table</a>`;
  return html`<div class="title-row">
      <h1>Tables <small>${count(overview.tables.length)}</small></h1>
      ${overview.tables.length > 0 &&
      html`<${Input}
        label="Find a table"
        hidden=${true}
        type="search"
        placeholder="Find a table"
        value=${filter}
        onInput=${setFilter}
      />`}
      ${make}
    </div>
    <${Problem} error=${error} />
    ${overview.tables.length
      ? html`<${List} tables=${tables} overview=${overview} before=${before} />`
      : html`<${Empty} title="There are no tables yet">
          <p>Make one here, or point a client at <code>${server.endpoint}</code>.</p>
        <//>`}`;
}

/**
 * @param {{tables: TableOverview[], overview: Overview, before: Overview | null}} properties
 */
function List({ tables, overview, before }) {
  return html`<${DataTable}
    label="Tables"
    columns=${[
      "Table",
      "State",
      ["Items", "number"],
      ["Size", "number"],
      "Capacity",
      ["Reads/s", "number"],
      ["Writes/s", "number"],
      ["Throttled", "number"],
      "Indexes",
      "Follows its changes",
    ]}
  >
    ${tables.map((table) => {
      const { reads, writes } = rates(overview, before, table);
      return html`<tr key=${table.name}>
        <th scope="row">
          <a href=${link(["table", table.name, "items"])}>${table.name}</a>
          <span class="sub">${keyText(table.keys)}</span>
        </th>
        <td><${Badge} state=${table.status} /></td>
        <td class="number">${count(table.item_count)}</td>
        <td class="number">
          ${size(table.size_bytes)}
          <span class="sub">${plural(table.partitions, "partition")}</span>
        </td>
        <td><${Capacity} table=${table} /></td>
        <td class="number"><${Rate} value=${reads} most=${table.provisioned_read_units} /></td>
        <td class="number">
          <${Rate} value=${writes} most=${table.provisioned_write_units} />
        </td>
        <td class="number">
          <${Throttled} table=${table} />
        </td>
        <td><${Indexes} table=${table} /></td>
        <td><${Followers} table=${table} /></td>
      </tr>`;
    })}
  <//>`;
}

/** @param {{table: TableOverview}} properties */
function Capacity({ table }) {
  if (table.mode !== "PROVISIONED") return html`on demand`;
  const [reads, writes] = [table.provisioned_read_units, table.provisioned_write_units];
  return html`provisioned <span class="sub">${count(reads)} read, ${count(writes)} write</span>`;
}

/** @param {{value: number, most: number}} properties */
function Rate({ value, most }) {
  const share = most ? Math.min(1, value / most) : 0;
  return html`${rate(value)}
  ${most > 0 &&
  html`<meter
    min="0"
    max="1"
    high="0.8"
    value=${share}
    aria-label="Share of the provisioned units"
    title=${`${Math.round(share * 100)} % of the provisioned units`}
  ></meter>`}`;
}

/** @param {{table: TableOverview}} properties */
function Throttled({ table }) {
  return html`${count(table.throttled)}
  ${table.would_be_throttled > 0 &&
  html`<span class="sub" title="Requests that DynamoDB would have throttled"
    >${count(table.would_be_throttled)} on AWS</span
  >`}`;
}

/** @param {{table: TableOverview}} properties */
function Indexes({ table }) {
  if (!table.indexes.length) return html`<span class="none">–</span>`;
  return html`<ul class="plain-list">
    ${table.indexes.map(
      (index) =>
        html`<li key=${index.name}>
          ${index.name} ${index.status !== "ACTIVE" && html`<${Badge} state=${index.status} />`}
          ${index.status !== "ACTIVE" &&
          index.progress !== null &&
          html`<span class="sub">${Math.floor(index.progress)} %</span>`}
          ${index.lag_records > 0 &&
          html`<span class="sub"
            >${plural(index.lag_records, "change")} behind, ${span(index.lag_seconds)}</span
          >`}
        </li>`,
    )}
  </ul>`;
}

/** @param {{table: TableOverview}} properties */
function Followers({ table }) {
  const hasTimeToLive = table.time_to_live !== "DISABLED";
  const followers = table.has_stream || table.has_recovery || hasTimeToLive;
  if (!followers && !table.destinations.length) {
    return html`<span class="none">–</span>`;
  }
  return html`<ul class="plain-list">
    ${table.has_stream &&
    html`<li><a href=${link(["table", table.name, "stream"])}>Stream</a></li>`}
    ${table.has_recovery &&
    html`<li><a href=${link(["table", table.name, "recovery"])}>Point-in-time recovery</a></li>`}
    ${hasTimeToLive &&
    html`<li>
      Time to live${" "}
      ${table.time_to_live !== "ENABLED" && html`<${Badge} state=${table.time_to_live} />`}
      <span class="sub">${table.time_to_live_attribute}</span>
    </li>`}
    ${table.destinations.map(
      (destination) =>
        html`<li key=${destination.topic}>
          Kafka ${destination.topic} <${Badge} state=${destination.state || destination.status} />
          ${destination.lag_records > 0 &&
          html`<span class="sub">${plural(destination.lag_records, "change")} behind</span>`}
        </li>`,
    )}
  </ul>`;
}
