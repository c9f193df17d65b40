// Items of a table or an index: Query and Scan, page by page.

import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { dynamodb } from "./api.js";
import { BulkDelete } from "./bulk_delete.js";
import { Count } from "./count.js";
import { ImportDialog } from "./import_dialog.js";
import { awsCli, boto3, javaScript } from "./command_lines.js";
import { Explanation } from "./explanation.js";
import { count, plural } from "./format.js";
import { ItemDialog } from "./item_dialog.js";
import { Export } from "./item_export.js";
import {
  FILTER_OPERATORS,
  FILTER_TYPES,
  SORT_OPERATORS,
  formOf,
  newTerm,
  queryOf,
  requestOf,
} from "./read_request.js";
import { go } from "./route.js";
import { Choice, Code, DataTable, Empty, Input, Problem, Value, useLoaded } from "./ui.js";
import { attributesOf, keyOf, shown } from "./values.js";

/** @typedef {import("./values.js").Item} Item */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */
/** @typedef {import("./read_request.js").Form} Form */

const FIRST_COLUMNS = 10;

/**
 * @param {{
 *   table: TableFacts, server: import("./main.js").Server, query: Record<string, string>,
 * }} properties
 */
export function Items({ table, server, query }) {
  const address = JSON.stringify(query);
  const form = useMemo(() => formOf(query, table), [address, table]);
  const [opened, setOpened] = useState(/** @type {Item | "new" | null} */ (null));
  const { data, error, isLoading, reload } = useLoaded(
    async (signal) => {
      const { operation, body } = requestOf(form, table);
      if (form.mode === "query" && form.partition.some((text) => !text)) return null;
      const start = query["start"] ? { ExclusiveStartKey: JSON.parse(query["start"]) } : {};
      const request = { ...body, ...start };
      const answer = await dynamodb(operation, request, { explain: true, signal });
      return { ...answer, operation, request };
    },
    [address, table],
  );
  const run = (/** @type {Form} */ next) => {
    const target = queryOf(next);
    const given = Object.fromEntries(Object.entries(target).filter(([, value]) => value));
    if (JSON.stringify(given) === address) reload();
    else go(["table", table.name, "items"], target);
  };
  return html`<${ReadForm} key=${address} table=${table} form=${form} onRun=${run} />
    <${Problem} error=${error} />
    ${data
      ? html`<${Results}
          table=${table}
          server=${server}
          answer=${data}
          query=${query}
          isLoading=${isLoading}
          onOpen=${setOpened}
          onChanged=${reload}
        />`
      : !error &&
        !isLoading &&
        html`<${Empty} title="Give the partition key to query for">
          <p>A Query reads the items of one partition key. A Scan reads all items.</p>
        <//>`}
    ${opened &&
    html`<${ItemDialog}
      table=${table}
      server=${server}
      item=${opened === "new" ? null : opened}
      onClose=${() => setOpened(null)}
      onChanged=${() => {
        setOpened(null);
        reload();
      }}
    />`}`;
}

/**
 * @param {{table: TableFacts, form: Form, onRun: (form: Form) => void}} properties
 */
function ReadForm({ table, form: given, onRun }) {
  const [form, setForm] = useState(given);
  const change = (/** @type {Partial<Form>} */ part) => setForm({ ...form, ...part });
  const source = table.sources.find((each) => each.name === form.source) ?? table.sources[0];
  const choose = (/** @type {string} */ name) => {
    const next = table.sources.find((each) => each.name === name);
    change({
      source: name,
      partition: (next?.partition ?? []).map(() => ""),
      sort: (next?.sort ?? []).map(() => ({ operator: "=", text: "", other: "" })),
    });
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    onRun(form);
  };
  const isQuery = form.mode === "query";
  return html`<form class="panel read-form" onSubmit=${submit} aria-label="Read items">
    <div class="row">
      <div class="switch" role="radiogroup" aria-label="Operation">
        ${[
          ["query", "Query"],
          ["scan", "Scan"],
        ].map(
          ([key, text]) =>
            html`<label
              ><input
                type="radio"
                name="mode"
                checked=${form.mode === key}
                onChange=${() => change({ mode: key ?? "scan" })}
              />${text}</label
            >`,
        )}
      </div>
      <${Choice}
        label="From"
        value=${form.source}
        onChange=${choose}
        options=${table.sources.map((each) => [each.name, each.name || `table ${table.name}`])}
      />
      ${isQuery &&
      source?.partition.map(
        (name, at) =>
          html`<${Input}
            key=${`${form.source} ${name}`}
            label=${`${name} =`}
            required=${true}
            value=${form.partition[at] ?? ""}
            onInput=${(/** @type {string} */ text) =>
              change({ partition: form.partition.map((each, i) => (i === at ? text : each)) })}
          />`,
      )}
      ${isQuery &&
      source?.sort.map((name, at) => {
        const term = form.sort[at] ?? { operator: "=", text: "", other: "" };
        const edit = (/** @type {object} */ part) =>
          change({ sort: form.sort.map((each, i) => (i === at ? { ...each, ...part } : each)) });
        return html`<div class="joined" key=${`${form.source} ${name}`}>
          <${Choice}
            label=${name}
            value=${term.operator}
            options=${SORT_OPERATORS}
            onChange=${(/** @type {string} */ operator) => edit({ operator })}
          />
          <${Input}
            label=${`Value of ${name}`}
            hidden=${true}
            placeholder="any"
            value=${term.text}
            onInput=${(/** @type {string} */ text) => edit({ text })}
          />
          ${term.operator === "between" &&
          html`<${Input}
            label=${`Upper bound of ${name}`}
            hidden=${true}
            value=${term.other}
            onInput=${(/** @type {string} */ other) => edit({ other })}
          />`}
        </div>`;
      })}
    </div>
    <${Filter} terms=${form.terms} onChange=${(/** @type {any} */ terms) => change({ terms })} />
    <div class="row">
      ${isQuery &&
      html`<${Choice}
        label="Order"
        value=${form.order}
        options=${[
          ["", "ascending"],
          ["descending", "descending"],
        ]}
        onChange=${(/** @type {string} */ order) => change({ order })}
      />`}
      <${Input}
        label="Items read per page"
        type="number"
        value=${form.limit}
        onInput=${(/** @type {string} */ limit) => change({ limit })}
      />
      <label class="check"
        ><input
          type="checkbox"
          checked=${form.consistent}
          onChange=${(/** @type {any} */ event) => change({ consistent: event.target.checked })}
        />
        Strongly consistent</label
      >
      <span class="spacer"></span>
      <button
        type="button"
        onClick=${() => change({ terms: [...form.terms, newTerm()] })}
      >
        Add a filter
      </button>
      <button class="main">Run</button>
    </div>
  </form>`;
}

/**
 * @param {{
 *   terms: import("./read_request.js").Term[],
 *   onChange: (terms: import("./read_request.js").Term[]) => void,
 * }} properties
 */
function Filter({ terms, onChange }) {
  const edit = (/** @type {number} */ at, /** @type {object} */ part) =>
    onChange(terms.map((each, i) => (i === at ? { ...each, ...part } : each)));
  return html`${terms.map((term, at) => {
    const hasValue = !["exists", "not exists"].includes(term.operator);
    return html`<fieldset class="row filter" key=${at}>
      <legend>Filter ${at + 1}</legend>
      <${Input}
        label="Attribute"
        value=${term.name}
        onInput=${(/** @type {string} */ name) => edit(at, { name })}
      />
      <${Choice}
        label="Condition"
        value=${term.operator}
        options=${FILTER_OPERATORS}
        onChange=${(/** @type {string} */ operator) => edit(at, { operator })}
      />
      ${hasValue &&
      html`<${Choice}
        label="Type"
        value=${term.type}
        options=${FILTER_TYPES}
        onChange=${(/** @type {string} */ type) => edit(at, { type })}
      />`}
      ${hasValue &&
      term.type !== "NULL" &&
      html`<${Input}
        label="Value"
        placeholder=${term.type === "BOOL" ? "true or false" : ""}
        value=${term.text}
        onInput=${(/** @type {string} */ text) => edit(at, { text })}
      />`}
      ${term.operator === "between" &&
      html`<${Input}
        label="Upper bound"
        value=${term.other}
        onInput=${(/** @type {string} */ other) => edit(at, { other })}
      />`}
      <button
        type="button"
        class="small"
        aria-label=${`Remove filter ${at + 1}`}
        onClick=${() => onChange(terms.filter((_, i) => i !== at))}
      >
        Remove
      </button>
    </fieldset>`;
  })}`;
}

/**
 * @param {{
 *   table: TableFacts, server: import("./main.js").Server,
 *   answer: import("./api.js").Answer & {operation: string, request: import("./api.js").Json},
 *   query: Record<string, string>, isLoading: boolean,
 *   onOpen: (item: Item | "new") => void, onChanged: () => void,
 * }} properties
 */
function Results({ table, server, answer, query, isLoading, onOpen, onChanged }) {
  const items = /** @type {Item[]} */ (answer.data["Items"]);
  const columns = useMemo(() => attributesOf(items, table.keys), [items]);
  const [hidden, setHidden] = useState(
    /** @type {() => string[] | null} */ (() => null),
  );
  const [chosen, setChosen] = useState(/** @type {() => Set<Item>} */ (() => new Set()));
  const [isDeleting, setDeleting] = useState(false);
  const [isImporting, setImporting] = useState(false);
  const [showsCode, setShowsCode] = useState(false);
  useEffect(() => setChosen(new Set()), [items]);
  const left = hidden ?? columns.slice(FIRST_COLUMNS);
  const visible = columns.filter((name) => !left.includes(name));
  const next = answer.data["LastEvaluatedKey"];
  const page = (/** @type {string} */ start) =>
    go(["table", table.name, "items"], { ...query, start });
  const toggle = (/** @type {Item} */ item) => {
    const changed = new Set(chosen);
    if (!changed.delete(item)) changed.add(item);
    setChosen(changed);
  };
  const isEditable = !server.is_read_only;
  const chooseAll = html`<th scope="col" key="">
    <input
      type="checkbox"
      aria-label="Choose all items shown"
      checked=${chosen.size === items.length}
      onChange=${() => setChosen(new Set(chosen.size === items.length ? [] : items))}
    />
  </th>`;
  return html`<section aria-label="Items" aria-busy=${isLoading}>
    <div class="row results-head">
      <span role="status"
        >${plural(items.length, "item")} of ${count(answer.data["ScannedCount"])} read,${" "}
        ${Math.round(answer.milliseconds)} ms</span
      >
      <span class="spacer"></span>
      ${isEditable &&
      html`${chosen.size > 0 &&
        html`<button type="button" class="danger" onClick=${() => setDeleting(true)}>
          Delete ${plural(chosen.size, "item")}
        </button>`}
        <button type="button" onClick=${() => onOpen("new")}>New item</button>
        <button type="button" onClick=${() => setImporting(true)}>Import</button>`}
      <${Count}
        key=${JSON.stringify(answer.request)}
        operation=${answer.operation}
        request=${answer.request}
      />
      <${Columns} columns=${columns} hidden=${left} onChange=${setHidden} />
      <${Export}
        key=${`export ${JSON.stringify(answer.request)}`}
        table=${table}
        items=${items}
        operation=${answer.operation}
        request=${answer.request}
      />
      <button type="button" aria-expanded=${showsCode} onClick=${() => setShowsCode(!showsCode)}>
        Code
      </button>
    </div>
    ${showsCode &&
    html`<div class="panel">
      <${Code}
        label="AWS CLI"
        text=${awsCli(answer.operation, answer.request, server.endpoint)}
      />
      <${Code} label="boto3" text=${boto3(answer.operation, answer.request, server.endpoint)} />
      <${Code}
        label="JavaScript"
        text=${javaScript(answer.operation, answer.request, server.endpoint)}
      />
    </div>`}
    <${Explanation} explanation=${answer.explanation} />
    ${items.length
      ? html`<${DataTable}
          label="Table of the items"
          kind="list items"
          columns=${[
            ...(isEditable ? [chooseAll] : []),
            ...visible.map((name) => [name, table.keys.includes(name) ? "key" : ""]),
          ]}
        >
          ${items.map((item) => {
            const key = JSON.stringify(keyOf(item, table.keys));
            const label = table.keys.map((name) => shown(item[name] ?? {})).join(", ");
            return html`<tr key=${key}>
              ${isEditable &&
              html`<td>
                <input
                  type="checkbox"
                  aria-label=${`Choose ${label}`}
                  checked=${chosen.has(item)}
                  onChange=${() => toggle(item)}
                />
              </td>`}
              ${visible.map(
                (name, at) =>
                  html`<td key=${name}>
                    ${at === 0
                      ? html`<button
                          type="button"
                          class="link"
                          aria-label=${`Open ${label}`}
                          onClick=${() => onOpen(item)}
                        >
                          <${Value} value=${item[name]} />
                        </button>`
                      : html`<${Value} value=${item[name]} />`}
                  </td>`,
              )}
            </tr>`;
          })}
        <//>`
      : html`<${Empty} title=${next ? "No item of this page matches" : "No items"}>
          <p>
            ${next
              ? "A filter applies after the read: the next page may have matches."
              : "Change the key or the filter, or make an item."}
          </p>
        <//>`}
    <div class="row pages">
      ${query["start"] &&
      html`<button type="button" onClick=${() => history.back()}>Previous page</button>
        <button type="button" onClick=${() => page("")}>First page</button>`}
      ${next &&
      html`<button type="button" onClick=${() => page(JSON.stringify(next))}>Next page</button>`}
    </div>
    ${isImporting &&
    html`<${ImportDialog}
      table=${table}
      onClose=${() => {
        setImporting(false);
        onChanged();
      }}
    />`}
    ${isDeleting &&
    html`<${BulkDelete}
      table=${table}
      items=${[...chosen]}
      onClose=${() => {
        setDeleting(false);
        onChanged();
      }}
    />`}
  </section>`;
}

/**
 * @param {{
 *   columns: string[], hidden: string[], onChange: (hidden: string[]) => void,
 * }} properties
 */
function Columns({ columns, hidden, onChange }) {
  return html`<details class="menu">
    <summary class="button">Columns</summary>
    <div class="menu-body">
      ${columns.map(
        (name) =>
          html`<label class="check" key=${name}
            ><input
              type="checkbox"
              checked=${!hidden.includes(name)}
              onChange=${() =>
                onChange(
                  hidden.includes(name)
                    ? hidden.filter((each) => each !== name)
                    : [...hidden, name],
                )}
            />
            ${name}</label
          >`,
      )}
    </div>
  </details>`;
}
