// Saves items as files: those of the page that is shown, or those of all pages.

import { html, useRef, useState } from "../vendor/preact.js";
import { csvOf } from "./csv.js";
import { plural } from "./format.js";
import { allPages } from "./pages.js";
import { Problem, saveFile, useRun } from "./ui.js";
import { attributesOf } from "./values.js";

/** @typedef {import("./values.js").Item} Item */

/**
 * @param {{
 *   table: import("./table_page.js").TableFacts, items: Item[], operation: string,
 *   request: import("./api.js").Json,
 * }} properties
 */
export function Export({ table, items, operation, request }) {
  const wanted = useRef({ isCsv: false, isAll: false });
  const [read, setRead] = useState(0);
  const { run, stop, isRunning, error } = useRun(async (signal) => {
    const { isCsv, isAll } = wanted.current;
    let found = items;
    setRead(0);
    if (isAll) {
      found = [];
      for await (const page of allPages(operation, request, signal)) {
        found.push(...page["Items"]);
        setRead(found.length);
      }
    }
    if (signal.aborted) return;
    const names = attributesOf(found, table.keys);
    const parts = isCsv
      ? csvOf(found, names, table.keys)
      : ["[\n", ...found.map((item, at) => `${at ? ",\n" : ""}${JSON.stringify(item)}`), "\n]\n"];
    saveFile(`${table.name}.${isCsv ? "csv" : "json"}`, parts);
  });
  const button = (/** @type {boolean} */ isAll, /** @type {boolean} */ isCsv) =>
    html`<button
      type="button"
      onClick=${() => {
        wanted.current = { isAll, isCsv };
        run();
      }}
    >
      ${isAll ? "All pages" : "This page"} as ${isCsv ? "CSV" : "DynamoDB JSON"}
    </button>`;
  return html`<details class="menu">
      <summary class="button">Export</summary>
      <div class="menu-body">
        ${button(false, false)} ${button(false, true)} ${button(true, false)} ${button(true, true)}
      </div>
    </details>
    ${isRunning && html`<button type="button" onClick=${stop}>Stop the export</button>`}
    ${read > 0 &&
    html`<span role="note">${plural(read, "item")} ${isRunning ? "read" : "exported"}</span>`}
    <${Problem} error=${error} />`;
}
