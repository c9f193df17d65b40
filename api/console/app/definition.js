// The definition of a table and the changes of it, each with its request.

import { html, useEffect, useState } from "../vendor/preact.js";
import { dynamodb } from "./api.js";
import { count, size, time } from "./format.js";
import { go, link } from "./route.js";
import { Badge, Choice, Code, DataTable, Dialog, Input, Problem, useLoaded, useRepeated } from "./ui.js";
import { IndexFields, Preview, STREAM_VIEWS, addIndex, newIndex } from "./table_form.js";
import { pretty } from "./values.js";

/** @typedef {import("./api.js").Json} Json */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */
/**
 * @typedef {{
 *   table: TableFacts, server: import("./main.js").Server, reload: () => void,
 * }} Properties
 */

const REFRESH_SECONDS = 2;

/** @param {Properties & {query: Record<string, string>}} properties */
export function Definition({ table, server, reload, query }) {
  const isEditable = !server.is_read_only;
  const [dialog, setDialog] = useState(isEditable && query["partition"] ? "index" : "");
  const { description } = table;
  const name = { TableName: table.name };
  const more = useLoaded(async (signal) => {
    const [expiry, backups] = await Promise.all([
      dynamodb("DescribeTimeToLive", name, { signal }),
      dynamodb("DescribeContinuousBackups", name, { signal }),
    ]);
    return {
      expiry: expiry.data["TimeToLiveDescription"],
      recovery:
        backups.data["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"],
    };
  }, [table.name]);
  const refresh = () => {
    reload();
    more.reload();
  };
  const isSettled =
    description["TableStatus"] === "ACTIVE" &&
    (description["GlobalSecondaryIndexes"] ?? []).every(
      (/** @type {Json} */ index) => index["IndexStatus"] === "ACTIVE",
    );
  // Other clients may have changed the table since its page was opened.
  useEffect(reload, []);
  // Follow a change until it is done.
  useRepeated(() => isSettled || refresh(), REFRESH_SECONDS);
  const done = () => {
    setDialog("");
    refresh();
  };
  const properties = { table, server, onClose: () => setDialog(""), onDone: done };
  const change = (/** @type {string} */ key, /** @type {string} */ text) =>
    isEditable &&
    html`<button type="button" class="small" onClick=${() => setDialog(key)}>${text}</button>`;
  const throughput = description["ProvisionedThroughput"];
  const stream = description["StreamSpecification"];
  const expiry = more.data?.expiry;
  const recovery = more.data?.recovery;
  return html`<${Problem} error=${more.error} />
    <div class="panel">
      <dl class="facts">
        <dt>Keys</dt>
        <dd>${table.keys.map((key) => `${key} (${table.types[key]})`).join(", ")}</dd>
        <dt>Made</dt>
        <dd>${time(description["CreationDateTime"])}</dd>
        <dt>Capacity</dt>
        <dd>
          ${throughput["ReadCapacityUnits"]
            ? `provisioned: ${count(throughput["ReadCapacityUnits"])} read units and ` +
              `${count(throughput["WriteCapacityUnits"])} write units`
            : "on demand"}${" "}
          ${change("capacity", "Change")}
        </dd>
        <dt>Stream</dt>
        <dd>${stream ? stream["StreamViewType"] : "off"} ${change("stream", "Change")}</dd>
        <dt>Time to live</dt>
        <dd>
          ${expiry?.["AttributeName"] ? `attribute ${expiry["AttributeName"]}, ` : ""}
          ${expiry && html`<${Badge} state=${expiry["TimeToLiveStatus"]} />`}${" "}
          ${change("expiry", "Change")}
        </dd>
        <dt>Point-in-time recovery</dt>
        <dd>
          ${recovery && html`<${Badge} state=${recovery["PointInTimeRecoveryStatus"]} />`}${" "}
          <a href=${link(["table", table.name, "recovery"])}>Restore to a time</a>
        </dd>
        <dt>Protection against deletion</dt>
        <dd>
          ${description["DeletionProtectionEnabled"] ? "on" : "off"}${" "}
          ${change("protection", "Change")}
        </dd>
        <dt>ARN</dt>
        <dd><code>${description["TableArn"]}</code></dd>
      </dl>
    </div>
    <div class="title-row">
      <h2>Indexes</h2>
      ${change("index", "Add a global index")}
    </div>
    <${Indexes} table=${table} onDelete=${isEditable && ((/** @type {string} */ each) => setDialog(`delete ${each}`))} />
    <div class="row after">
      ${isEditable &&
      html`<a class="button" href=${link(["new"], { like: table.name })}>Make a table like this</a>`}
      <span class="spacer"></span>
      ${isEditable &&
      html`<button type="button" class="danger" onClick=${() => setDialog("delete")}>
        Delete the table
      </button>`}
    </div>
    <details>
      <summary>DescribeTable</summary>
      <${Code} label="Description" text=${pretty(description)} />
    </details>
    ${dialog === "capacity" && html`<${Capacity} ...${properties} />`}
    ${dialog === "stream" && html`<${Stream} ...${properties} />`}
    ${dialog === "expiry" && html`<${Expiry} ...${properties} expiry=${expiry} />`}
    ${dialog === "protection" && html`<${Protection} ...${properties} />`}
    ${dialog === "index" && html`<${AddIndex} ...${properties} query=${query} />`}
    ${dialog === "delete" && html`<${DeleteTable} ...${properties} />`}
    ${dialog.startsWith("delete ") &&
    html`<${DeleteIndex} ...${properties} name=${dialog.slice(7)} />`}`;
}

/** @param {{table: TableFacts, onDelete: false | ((name: string) => void)}} properties */
function Indexes({ table, onDelete }) {
  const { description } = table;
  const local = /** @type {Json[]} */ (description["LocalSecondaryIndexes"] ?? []);
  const global = /** @type {Json[]} */ (description["GlobalSecondaryIndexes"] ?? []);
  const all = [
    ...local.map((index) => /** @type {const} */ (["local", index])),
    ...global.map((index) => /** @type {const} */ (["global", index])),
  ];
  if (!all.length) return html`<p class="hint">There are no indexes.</p>`;
  return html`<${DataTable}
    label="Indexes"
    columns=${[
      "Index",
      "Kind",
      "State",
      "Keys",
      "Projection",
      ["Entries", "number"],
      ["Size", "number"],
      ["Changes", "hidden"],
    ]}
  >
    ${all.map(
      ([kind, index]) =>
        html`<tr key=${index["IndexName"]}>
          <th scope="row">${index["IndexName"]}</th>
          <td>${kind}</td>
          <td>
            <${Badge}
              state=${index["IndexStatus"] ?? "ACTIVE"}
              note=${index["Backfilling"] ? "backfilling" : ""}
            />
          </td>
          <td>
            ${index["KeySchema"]
              .map((/** @type {Json} */ key) => key["AttributeName"])
              .join(" + ")}
          </td>
          <td>
            ${index["Projection"]["ProjectionType"]}${" "}
            <span class="sub">
              ${(index["Projection"]["NonKeyAttributes"] ?? []).join(", ")}
            </span>
          </td>
          <td class="number">${count(index["ItemCount"] ?? 0)}</td>
          <td class="number">${size(index["IndexSizeBytes"] ?? 0)}</td>
          <td>
            ${kind === "global" &&
            onDelete &&
            html`<button
              type="button"
              class="small danger"
              aria-label=${`Delete index ${index["IndexName"]}`}
              onClick=${() => onDelete(index["IndexName"])}
            >
              Delete
            </button>`}
          </td>
        </tr>`,
    )}
  <//>`;
}

/**
 * @typedef {{
 *   table: TableFacts, server: import("./main.js").Server, onClose: () => void,
 *   onDone: () => void,
 * }} ChangeProperties
 */

/**
 * A dialog with the fields of a change, its request, and the button that sends it.
 * @param {ChangeProperties & {
 *   title: string, operation: string, body: Json, action?: string, isDangerous?: boolean,
 *   isReady?: boolean, children?: import("./ui.js").Child,
 * }} properties
 */
export function Change(properties) {
  const { title, operation, body, server, onClose, onDone, children } = properties;
  const { action = "Send", isDangerous = false, isReady = true } = properties;
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await dynamodb(operation, body);
      onDone();
    } catch (failure) {
      setError(failure);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form class="dialog-form" onSubmit=${send}>
      ${children}
      <${Problem} error=${error} />
      <div class="row">
        <span class="spacer"></span>
        <button type="button" onClick=${onClose}>Cancel</button>
        <button class=${isDangerous ? "danger" : "main"} disabled=${!isReady}>${action}</button>
      </div>
      <${Preview} operation=${operation} body=${body} server=${server} />
    </form>
  <//>`;
}

/** @param {ChangeProperties} properties */
function Capacity(properties) {
  const { table } = properties;
  const throughput = table.description["ProvisionedThroughput"];
  const [mode, setMode] = useState(
    throughput["ReadCapacityUnits"] ? "PROVISIONED" : "PAY_PER_REQUEST",
  );
  const [read, setRead] = useState(String(throughput["ReadCapacityUnits"] || 5));
  const [write, setWrite] = useState(String(throughput["WriteCapacityUnits"] || 5));
  const units = { ReadCapacityUnits: Number(read), WriteCapacityUnits: Number(write) };
  const indexes = /** @type {Json[]} */ (table.description["GlobalSecondaryIndexes"] ?? []);
  const wasOnDemand = !throughput["ReadCapacityUnits"];
  const body = {
    TableName: table.name,
    BillingMode: mode,
    ...(mode === "PROVISIONED" && { ProvisionedThroughput: units }),
    ...(mode === "PROVISIONED" &&
      wasOnDemand &&
      indexes.length && {
        GlobalSecondaryIndexUpdates: indexes.map((index) => ({
          Update: { IndexName: index["IndexName"], ProvisionedThroughput: units },
        })),
      }),
  };
  return html`<${Change} ...${properties} title="Capacity" operation="UpdateTable" body=${body}>
    <${Choice}
      label="Capacity"
      value=${mode}
      onChange=${setMode}
      options=${[
        ["PAY_PER_REQUEST", "on demand"],
        ["PROVISIONED", "provisioned"],
      ]}
    />
    ${mode === "PROVISIONED" &&
    html`<div class="row">
      <${Input} label="Read units" type="number" value=${read} onInput=${setRead} />
      <${Input} label="Write units" type="number" value=${write} onInput=${setWrite} />
    </div>`}
  <//>`;
}

/** @param {ChangeProperties} properties */
function Stream(properties) {
  const { table } = properties;
  const before = table.description["StreamSpecification"]?.["StreamViewType"] ?? "";
  const [view, setView] = useState(before);
  const body = {
    TableName: table.name,
    StreamSpecification: view
      ? { StreamEnabled: true, StreamViewType: view }
      : { StreamEnabled: false },
  };
  return html`<${Change} ...${properties} title="Stream" operation="UpdateTable" body=${body}>
    <${Choice}
      label="Stream"
      value=${view}
      options=${[["", "off"], ...STREAM_VIEWS]}
      onChange=${setView}
    />
    ${before &&
    view &&
    view !== before &&
    html`<p class="hint">Switch the stream off before you change its view.</p>`}
  <//>`;
}

/** @param {ChangeProperties & {expiry: Json | undefined}} properties */
function Expiry(properties) {
  const { table, expiry } = properties;
  const isOn = ["ENABLED", "ENABLING"].includes(expiry?.["TimeToLiveStatus"]);
  const [attribute, setAttribute] = useState(expiry?.["AttributeName"] ?? "expires_at");
  const body = {
    TableName: table.name,
    TimeToLiveSpecification: { AttributeName: attribute, Enabled: !isOn },
  };
  return html`<${Change}
    ...${properties}
    title=${isOn ? "Switch time to live off" : "Switch time to live on"}
    operation="UpdateTimeToLive"
    body=${body}
  >
    <${Input}
      label="Attribute with the expiry time in epoch seconds"
      required=${true}
      value=${attribute}
      onInput=${setAttribute}
    />
  <//>`;
}

/** @param {ChangeProperties} properties */
function Protection(properties) {
  const { table } = properties;
  const isOn = Boolean(table.description["DeletionProtectionEnabled"]);
  return html`<${Change}
    ...${properties}
    title=${isOn ? "Allow the deletion of the table" : "Protect the table against deletion"}
    operation="UpdateTable"
    body=${{ TableName: table.name, DeletionProtectionEnabled: !isOn }}
  />`;
}

/** @param {ChangeProperties & {query: Record<string, string>}} properties */
function AddIndex(properties) {
  const { table, query } = properties;
  const [index, setIndex] = useState(() => ({
    ...newIndex(),
    partition: query["partition"] ?? "",
    partitionType: query["partition_type"] ?? "S",
    sort: query["sort"] ?? "",
    sortType: query["sort_type"] ?? "S",
    projection: query["projection"] ?? "ALL",
    included: query["include"] ?? "",
  }));
  const cost = link(["table", table.name, "index-cost"], {
    partition: index.partition,
    partition_type: index.partitionType,
    sort: index.sort,
    sort_type: index.sortType,
    projection: index.projection,
    include: index.included,
  });
  return html`<${Change}
    ...${properties}
    title="Add a global index"
    operation="UpdateTable"
    action="Add the index"
    body=${addIndex(table.description, index)}
  >
    <${IndexFields} index=${index} onChange=${setIndex} isGlobal=${true} />
    <p><a href=${cost}>Cost of this index</a></p>
  <//>`;
}

/** @param {ChangeProperties & {name: string}} properties */
function DeleteIndex(properties) {
  const { table, name } = properties;
  const body = {
    TableName: table.name,
    GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: name } }],
  };
  return html`<${Change}
    ...${properties}
    title=${`Delete index ${name}`}
    operation="UpdateTable"
    action="Delete the index"
    isDangerous=${true}
    body=${body}
  />`;
}

/** @param {ChangeProperties} properties */
function DeleteTable(properties) {
  const { table } = properties;
  const [typed, setTyped] = useState("");
  return html`<${Change}
    ...${properties}
    title=${`Delete ${table.name}`}
    operation="DeleteTable"
    action="Delete the table"
    isDangerous=${true}
    isReady=${typed === table.name}
    body=${{ TableName: table.name }}
    onDone=${() => go(["tables"])}
  >
    <p>
      The table has ${count(table.description["ItemCount"])} items. They can't be restored, unless
      there is a backup.
    </p>
    <${Input} label=${`Type ${table.name} to delete it`} value=${typed} onInput=${setTyped} />
  <//>`;
}
