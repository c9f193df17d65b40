// Puts the items of a JSON or CSV file into a table. Items with the same key are replaced.

import { html, useMemo, useState } from "../vendor/preact.js";
import { COLUMN_TYPES } from "./csv.js";
import { count, plural } from "./format.js";
import { itemFile } from "./item_file.js";
import { ItemImport } from "./item_import.js";
import { Choice, DataTable, Dialog, Problem, RunButtons, saveFile, useRun } from "./ui.js";
import { CELL_CHARACTERS, pretty } from "./values.js";

/** @typedef {import("./csv.js").Column} Column */
/** @typedef {import("./item_file.js").ItemFile} ItemFile */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */

const PREVIEWED = 2;
const LISTED = 100;
const TYPE_OPTIONS = Object.entries(COLUMN_TYPES);

/** @param {{table: TableFacts, onClose: () => void}} properties */
export function ImportDialog({ table, onClose }) {
  const [file, setFile] = useState(/** @type {() => ItemFile | null} */ (() => null));
  const [columns, setColumns] = useState(/** @type {() => Column[]} */ (() => []));
  const [wrongFile, setWrongFile] = useState(/** @type {unknown} */ (null));
  const [, setProgress] = useState(0);
  const job = useMemo(
    () => (file ? new ItemImport(table.name, table.keys, file.records(columns)) : null),
    [file, columns],
  );
  const read = async (/** @type {any} */ event) => {
    setWrongFile(null);
    setFile(null);
    const [given] = event.target.files;
    if (!given) return;
    try {
      const next = await itemFile(given, table.keys, table.types);
      setColumns(next.columns);
      setFile(next);
    } catch (failure) {
      setWrongFile(failure);
    }
  };
  const work = useRun(async (signal) => {
    await job?.run(signal, () => setProgress((before) => before + 1));
  });
  const hasBegun = work.isRunning || !!job?.next;
  return html`<${Dialog} title=${`Import into ${table.name}`} wide=${true} onClose=${onClose}>
    <p class="hint">
      A file with an array or lines of DynamoDB JSON, or CSV with a header. An item with the key of
      a stored item replaces it.
    </p>
    <label class="field">
      <span class="label">File</span>
      <input
        type="file"
        accept=".json,.jsonl,.ndjson,.csv,.txt"
        disabled=${work.isRunning}
        onChange=${read}
      />
    </label>
    <${Problem} error=${work.error ?? wrongFile} />
    ${job &&
    html`<p role="status">
      ${hasBegun ? `${count(job.done)} of ` : ""}${plural(job.puts.length, "item")}${hasBegun
        ? " imported"
        : ""}${job.faults.length ? `, ${plural(job.faults.length, "record")} not imported` : ""}
    </p>`}
    ${!hasBegun &&
    columns.length > 0 &&
    file &&
    html`<${Columns} file=${file} columns=${columns} onChange=${setColumns} />`}
    ${job &&
    !hasBegun &&
    job.puts.length > 0 &&
    html`<pre tabindex="0" role="region" aria-label="First items">
${job.puts.slice(0, PREVIEWED).map(({ item }) => pretty(item)).join("\n")}</pre
      >`}
    ${job && job.faults.length > 0 && html`<${Faults} table=${table} faults=${job.faults} />`}
    <${RunButtons}
      work=${work}
      action="Import"
      kind="main"
      isComplete=${!!job && job.puts.length > 0 && job.isComplete}
      isReady=${!!job && job.puts.length > 0}
      onClose=${onClose}
    />
  <//>`;
}

/**
 * The types of the columns of a CSV file.
 * @param {{
 *   file: ItemFile, columns: Column[], onChange: (columns: Column[]) => void,
 * }} properties
 */
function Columns({ file, columns, onChange }) {
  return html`<p class="hint">
      Columns are strings, unless the header or the key of the table has their type, or you choose
      one. Documents and sets are DynamoDB JSON. An empty cell is no attribute.
    </p>
    <${DataTable} label="Columns" columns=${["Column", "Type", "First cell"]}>
      ${columns.map(
        ({ name, type }, at) =>
          html`<tr key=${name}>
            <td>${name}</td>
            <td>
              <${Choice}
                label=${`Type of ${name}`}
                hidden=${true}
                value=${type}
                options=${TYPE_OPTIONS}
                onChange=${(/** @type {string} */ next) =>
                  onChange(columns.map((each, i) => (i === at ? { ...each, type: next } : each)))}
              />
            </td>
            <td>${(file.sample[at] ?? "").slice(0, CELL_CHARACTERS)}</td>
          </tr>`,
      )}
    <//>`;
}

/**
 * The records that are not imported, with their lines.
 * @param {{table: TableFacts, faults: import("./item_import.js").Fault[]}} properties
 */
function Faults({ table, faults }) {
  const text = [...faults]
    .sort((a, b) => a.line - b.line)
    .map(({ line, reason }) => `Line ${line}: ${reason}`);
  return html`<p>Not imported:</p>
    <ul class="key-list" tabindex="0" aria-label="Records not imported">
      ${text.slice(0, LISTED).map((each, at) => html`<li key=${at}>${each}</li>`)}
    </ul>
    ${text.length > LISTED &&
    html`<button
      type="button"
      onClick=${() => saveFile(`${table.name}-refused.txt`, [text.join("\n")])}
    >
      Save all ${count(text.length)}
    </button>`}`;
}
