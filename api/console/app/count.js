// Counts the items that a read matches, page by page, with the consumed units.

import { html, useState } from "../vendor/preact.js";
import { dynamodb } from "./api.js";
import { count, plural } from "./format.js";
import { Problem, useRun } from "./ui.js";

/** @param {{operation: string, request: import("./api.js").Json}} properties */
export function Count({ operation, request }) {
  const [state, setState] = useState({ found: 0, read: 0, units: 0, isDone: false });
  const { run, stop, isRunning, error } = useRun(async (signal) => {
    const { Limit, ExclusiveStartKey, ...body } = request;
    let start = {};
    let next = { found: 0, read: 0, units: 0, isDone: false };
    while (!next.isDone && !signal.aborted) {
      const { data } = await dynamodb(operation, { ...body, ...start, Select: "COUNT" });
      start = { ExclusiveStartKey: data["LastEvaluatedKey"] };
      next = {
        found: next.found + data["Count"],
        read: next.read + data["ScannedCount"],
        units: next.units + (data["ConsumedCapacity"]?.["CapacityUnits"] ?? 0),
        isDone: !data["LastEvaluatedKey"],
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
