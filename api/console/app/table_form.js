// The form of a new table, or of a new index, and the request that it makes.

import { html, useEffect, useState } from "../vendor/preact.js";
import { dynamodb } from "./api.js";
import { awsCli } from "./command_lines.js";
import { go } from "./route.js";
import { Choice, Code, Input, Problem } from "./ui.js";
import { pretty } from "./values.js";

/** @typedef {import("./api.js").Json} Json */
/**
 * @typedef {{
 *   name: string, kind: string, partition: string, partitionType: string, sort: string,
 *   sortType: string, projection: string, included: string,
 * }} IndexForm
 */
/**
 * @typedef {{
 *   name: string, partition: string, partitionType: string, sort: string, sortType: string,
 *   mode: string, read: string, write: string, indexes: IndexForm[], stream: string,
 *   isProtected: boolean,
 * }} TableForm
 */

const KEY_TYPES = /** @type {const} */ ([
  ["S", "String"],
  ["N", "Number"],
  ["B", "Binary"],
]);
const PROJECTIONS = /** @type {const} */ (["ALL", "KEYS_ONLY", "INCLUDE"]);
export const STREAM_VIEWS = /** @type {const} */ ([
  "NEW_AND_OLD_IMAGES",
  "NEW_IMAGE",
  "OLD_IMAGE",
  "KEYS_ONLY",
]);

/** @returns {IndexForm} */
export const newIndex = () => ({
  name: "",
  kind: "GLOBAL",
  partition: "",
  partitionType: "S",
  sort: "",
  sortType: "S",
  projection: "ALL",
  included: "",
});

/** @returns {TableForm} */
const newTable = () => ({
  name: "",
  partition: "pk",
  partitionType: "S",
  sort: "",
  sortType: "S",
  mode: "PAY_PER_REQUEST",
  read: "5",
  write: "5",
  indexes: [],
  stream: "",
  isProtected: false,
});

/**
 * @param {{partition: string, sort: string}} keys
 * @returns {Json[]}
 */
const schema = (keys) => [
  { AttributeName: keys.partition, KeyType: "HASH" },
  ...(keys.sort ? [{ AttributeName: keys.sort, KeyType: "RANGE" }] : []),
];

/** @param {IndexForm} index */
const projection = (index) => ({
  ProjectionType: index.projection,
  ...(index.projection === "INCLUDE" && {
    NonKeyAttributes: index.included.split(",").map((each) => each.trim()),
  }),
});

/** @param {readonly (IndexForm | TableForm)[]} parts */
function attributes(parts) {
  /** @type {Map<string, string>} */
  const types = new Map();
  for (const part of parts) {
    if (part.partition) types.set(part.partition, part.partitionType);
    if (part.sort) types.set(part.sort, part.sortType);
  }
  return [...types].map(([name, type]) => ({ AttributeName: name, AttributeType: type }));
}

/**
 * The request that makes a table.
 * @param {TableForm} form
 * @returns {Json}
 */
export function createTable(form) {
  const isProvisioned = form.mode === "PROVISIONED";
  const throughput = isProvisioned
    ? {
        ProvisionedThroughput: {
          ReadCapacityUnits: Number(form.read),
          WriteCapacityUnits: Number(form.write),
        },
      }
    : {};
  const local = form.indexes
    .filter((index) => index.kind === "LOCAL")
    .map((index) => ({
      IndexName: index.name,
      KeySchema: schema({ partition: form.partition, sort: index.sort }),
      Projection: projection(index),
    }));
  const global = form.indexes
    .filter((index) => index.kind === "GLOBAL")
    .map((index) => ({
      IndexName: index.name,
      KeySchema: schema(index),
      Projection: projection(index),
      ...throughput,
    }));
  const typed = form.indexes.map((index) =>
    index.kind === "LOCAL" ? { ...index, partition: "" } : index,
  );
  return {
    TableName: form.name,
    AttributeDefinitions: attributes([form, ...typed]),
    KeySchema: schema(form),
    BillingMode: form.mode,
    ...throughput,
    ...(local.length && { LocalSecondaryIndexes: local }),
    ...(global.length && { GlobalSecondaryIndexes: global }),
    ...(form.stream && {
      StreamSpecification: { StreamEnabled: true, StreamViewType: form.stream },
    }),
    ...(form.isProtected && { DeletionProtectionEnabled: true }),
  };
}

/**
 * The request that adds a global index to a table.
 * @param {Json} description
 * @param {IndexForm} index
 * @returns {Json}
 */
export function addIndex(description, index) {
  const known = /** @type {Json[]} */ (description["AttributeDefinitions"]);
  const added = attributes([index]).filter(
    (each) => !known.some((other) => other["AttributeName"] === each.AttributeName),
  );
  const { ReadCapacityUnits, WriteCapacityUnits } = description["ProvisionedThroughput"];
  return {
    TableName: description["TableName"],
    AttributeDefinitions: [...known, ...added],
    GlobalSecondaryIndexUpdates: [
      {
        Create: {
          IndexName: index.name,
          KeySchema: schema(index),
          Projection: projection(index),
          ...(ReadCapacityUnits > 0 && {
            ProvisionedThroughput: { ReadCapacityUnits, WriteCapacityUnits },
          }),
        },
      },
    ],
  };
}

/**
 * The form of a table like another one.
 * @param {Json} description
 * @returns {TableForm}
 */
function formOf(description) {
  const types = Object.fromEntries(
    description["AttributeDefinitions"].map((/** @type {Json} */ each) => [
      each["AttributeName"],
      each["AttributeType"],
    ]),
  );
  const keys = (/** @type {Json[]} */ given) => {
    const [partition = "", sort = ""] = given.map((key) => key["AttributeName"]);
    const [partitionType, sortType] = [types[partition] ?? "S", types[sort] ?? "S"];
    return { partition, partitionType, sort, sortType };
  };
  const indexes = (/** @type {string} */ kind, /** @type {Json[]} */ given) =>
    given.map((index) => ({
      name: index["IndexName"],
      kind,
      ...keys(index["KeySchema"]),
      projection: index["Projection"]["ProjectionType"],
      included: (index["Projection"]["NonKeyAttributes"] ?? []).join(", "),
    }));
  const throughput = description["ProvisionedThroughput"];
  return {
    ...newTable(),
    ...keys(description["KeySchema"]),
    mode: throughput["ReadCapacityUnits"] ? "PROVISIONED" : "PAY_PER_REQUEST",
    read: String(throughput["ReadCapacityUnits"] || 5),
    write: String(throughput["WriteCapacityUnits"] || 5),
    indexes: [
      ...indexes("LOCAL", description["LocalSecondaryIndexes"] ?? []),
      ...indexes("GLOBAL", description["GlobalSecondaryIndexes"] ?? []),
    ],
    stream: description["StreamSpecification"]?.["StreamViewType"] ?? "",
  };
}

/** @param {{server: import("./main.js").Server, query: Record<string, string>}} properties */
export function NewTable({ server, query }) {
  const [form, setForm] = useState(newTable);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const model = query["like"] ?? "";
  useEffect(() => {
    if (!model) return;
    dynamodb("DescribeTable", { TableName: model }).then(
      (answer) => setForm(formOf(answer.data["Table"])),
      setError,
    );
  }, [model]);
  const change = (/** @type {Partial<TableForm>} */ part) => setForm({ ...form, ...part });
  const body = createTable(form);
  const make = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await dynamodb("CreateTable", body);
      go(["table", form.name, "definition"]);
    } catch (failure) {
      setError(failure);
    }
  };
  return html`<h1>Make a table</h1>
    ${model && html`<p class="hint">With the keys and indexes of ${model}.</p>`}
    <form class="split" onSubmit=${make}>
      <div class="panel">
        <${Input}
          label="Name"
          required=${true}
          value=${form.name}
          onInput=${(/** @type {string} */ name) => change({ name })}
        />
        <${KeyFields} value=${form} onChange=${change} />
        <div class="row">
          <${Choice}
            label="Capacity"
            value=${form.mode}
            options=${[
              ["PAY_PER_REQUEST", "on demand"],
              ["PROVISIONED", "provisioned"],
            ]}
            onChange=${(/** @type {string} */ mode) => change({ mode })}
          />
          ${form.mode === "PROVISIONED" &&
          html`<${Input}
              label="Read units"
              type="number"
              value=${form.read}
              onInput=${(/** @type {string} */ read) => change({ read })}
            />
            <${Input}
              label="Write units"
              type="number"
              value=${form.write}
              onInput=${(/** @type {string} */ write) => change({ write })}
            />`}
          <${Choice}
            label="Stream"
            value=${form.stream}
            options=${[["", "no stream"], ...STREAM_VIEWS]}
            onChange=${(/** @type {string} */ stream) => change({ stream })}
          />
        </div>
        <label class="check"
          ><input
            type="checkbox"
            checked=${form.isProtected}
            onChange=${(/** @type {any} */ event) => change({ isProtected: event.target.checked })}
          />
          Protect the table against deletion</label
        >
        ${form.indexes.map(
          (index, at) =>
            html`<fieldset class="filter" key=${at}>
              <legend>Index ${at + 1}</legend>
              <${IndexFields}
                index=${index}
                onChange=${(/** @type {IndexForm} */ next) =>
                  change({ indexes: form.indexes.map((each, i) => (i === at ? next : each)) })}
              />
              <button
                type="button"
                class="small"
                aria-label=${`Remove index ${at + 1}`}
                onClick=${() => change({ indexes: form.indexes.filter((_, i) => i !== at) })}
              >
                Remove
              </button>
            </fieldset>`,
        )}
        <div class="row">
          <button
            type="button"
            onClick=${() => change({ indexes: [...form.indexes, newIndex()] })}
          >
            Add an index
          </button>
          <span class="spacer"></span>
          <button class="main">Make the table</button>
        </div>
        <${Problem} error=${error} />
      </div>
      <${Preview} operation="CreateTable" body=${body} server=${server} />
    </form>`;
}

/**
 * @param {{
 *   value: {partition: string, partitionType: string, sort: string, sortType: string},
 *   onChange: (part: object) => void, hasPartition?: boolean, needsSort?: boolean,
 * }} properties
 */
function KeyFields({ value, onChange, hasPartition = true, needsSort = false }) {
  return html`<div class="row">
    ${hasPartition &&
    html`<${Input}
        label="Partition key"
        required=${true}
        value=${value.partition}
        onInput=${(/** @type {string} */ partition) => onChange({ partition })}
      />
      <${Choice}
        label="Type of the partition key"
        value=${value.partitionType}
        options=${KEY_TYPES}
        onChange=${(/** @type {string} */ partitionType) => onChange({ partitionType })}
      />`}
    <${Input}
      label=${needsSort ? "Sort key" : "Sort key, if any"}
      required=${needsSort}
      value=${value.sort}
      onInput=${(/** @type {string} */ sort) => onChange({ sort })}
    />
    ${value.sort &&
    html`<${Choice}
      label="Type of the sort key"
      value=${value.sortType}
      options=${KEY_TYPES}
      onChange=${(/** @type {string} */ sortType) => onChange({ sortType })}
    />`}
  </div>`;
}

/**
 * @param {{
 *   index: IndexForm, onChange: (index: IndexForm) => void, isGlobal?: boolean,
 * }} properties
 */
export function IndexFields({ index, onChange, isGlobal = false }) {
  const change = (/** @type {Partial<IndexForm>} */ part) => onChange({ ...index, ...part });
  return html`<div class="row">
      <${Input}
        label="Name of the index"
        required=${true}
        value=${index.name}
        onInput=${(/** @type {string} */ name) => change({ name })}
      />
      ${!isGlobal &&
      html`<${Choice}
        label="Kind"
        value=${index.kind}
        options=${[
          ["GLOBAL", "global"],
          ["LOCAL", "local"],
        ]}
        onChange=${(/** @type {string} */ kind) => change({ kind })}
      />`}
      <${Choice}
        label="Projection"
        value=${index.projection}
        options=${PROJECTIONS}
        onChange=${(/** @type {string} */ projected) => change({ projection: projected })}
      />
      ${index.projection === "INCLUDE" &&
      html`<${Input}
        label="Attributes, separated by commas"
        required=${true}
        value=${index.included}
        onInput=${(/** @type {string} */ included) => change({ included })}
      />`}
    </div>
    <${KeyFields}
      value=${index}
      onChange=${change}
      hasPartition=${index.kind !== "LOCAL"}
      needsSort=${index.kind === "LOCAL"}
    />`;
}

/**
 * A request before it is sent.
 * @param {{operation: string, body: Json, server: import("./main.js").Server}} properties
 */
export function Preview({ operation, body, server }) {
  return html`<div class="preview">
    <${Code} label=${`${operation} as JSON`} text=${pretty(body)} />
    <${Code} label="AWS CLI" text=${awsCli(operation, body, server.endpoint)} />
  </div>`;
}
