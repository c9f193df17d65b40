// Counts the items that a read matches, page by page, with the consumed units.

import { html, useState } from "../vendor/preact.js";
import { count, plural } from "./format.js";
import { allPages } from "./pages.js";
import { Problem, useRun } from "./ui.js";

/** @param {{operation: string, request: import("./api.js").Json}} properties */
export function Count({ operation, request }) {
  const [state, setState] = useState({ found: 0, read: 0, units: 0, isDone: false });
  const { run, stop, isRunning, error } = useRun(async (signal) => {
    let next = { found: 0, read: 0, units: 0, isDone: false };
    for await (const page of allPages(operation, { ...request, Select: "COUNT" }, signal)) {
      next = {
        found: next.found + page["Count"],
        read: next.read + page["ScannedCount"],
        units: next.units + (page["ConsumedCapacity"]?.["CapacityUnits"] ?? 0),
        isDone: !page["LastEvaluatedKey"],
      };
      setState(next);
    }
  });
  return html`<span class="count">
    ${isRunning
      ? html`<button type="button" onClick=${stop}>Stop</button>`
      : html`<button type="button" onClick=${run}>Count all</button>`}
    ${(state.read > 0 || state.isDone) &&
    html`<span role="note">
      ${state.isDone ? "" : "at least "}${plural(state.found, "item")}, for
      ${` ${count(state.units)}`} units
    </span>`}
    <${Problem} error=${error} />
  </span>`;
}
