// The requests of clients as they are answered, while this page is open.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { events } from "./api.js";
import { count, plural, rate } from "./format.js";
import { link } from "./route.js";
import { Choice, DataTable, Empty, Input, Problem, Recording } from "./ui.js";

/**
 * @typedef {{
 *   at: number, request_id: string, operation: string, tables: string[], milliseconds: number,
 *   capacity_units: number, http_status: number, code: string,
 * }} Answered
 */

const KEPT = 10_000;
const SHOWN = 200;
const RETRY_SECONDS = 2;
const OK = 200;

/** @param {boolean} isPaused */
function useRequests(isPaused) {
  const [requests, setRequests] = useState(/** @type {() => Answered[]} */ (() => []));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const paused = useRef(isPaused);
  paused.current = isPaused;
  useEffect(() => {
    const abort = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const receive = (/** @type {any} */ batch) => {
      setError(null);
      if (paused.current || !batch.length) return;
      setRequests((before) => [...batch.reverse(), ...before].slice(0, KEPT));
    };
    const connect = () => {
      const again = (/** @type {unknown} */ failure) => {
        if (abort.signal.aborted) return;
        if (failure) setError(failure);
        timer = setTimeout(connect, RETRY_SECONDS * 1000);
      };
      events("/console/requests", receive, abort.signal).then(() => again(null), again);
    };
    connect();
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, []);
  return { requests, error, clear: () => setRequests([]) };
}

/** @param {{query: Record<string, string>}} properties */
export function Requests({ query }) {
  const [isPaused, setPaused] = useState(false);
  const [table, setTable] = useState(query["table"] ?? "");
  const [operation, setOperation] = useState("");
  const [outcome, setOutcome] = useState("");
  const [least, setLeast] = useState("");
  const { requests, error, clear } = useRequests(isPaused);
  const visible = requests.filter(
    (each) =>
      (!table || each.tables.some((name) => name.includes(table))) &&
      (!operation || each.operation === operation) &&
      (!outcome || (outcome === "failed") === each.http_status > OK) &&
      each.milliseconds >= Number(least || 0),
  );
  const operations = [...new Set(requests.map((each) => each.operation))].filter(Boolean).sort();
  const units = visible.reduce((sum, each) => sum + each.capacity_units, 0);
  return html`<h1>Requests</h1>
    <div class="panel">
      <div class="row">
        <${Input} label="Table" type="search" value=${table} onInput=${setTable} />
        <${Choice}
          label="Operation"
          value=${operation}
          options=${[["", "all"], ...operations]}
          onChange=${setOperation}
        />
        <${Choice}
          label="Outcome"
          value=${outcome}
          options=${[["", "all"], "succeeded", "failed"]}
          onChange=${setOutcome}
        />
        <${Input}
          label="At least milliseconds"
          type="number"
          value=${least}
          onInput=${setLeast}
        />
        <${Recording} isPaused=${isPaused} onPause=${setPaused} onClear=${clear} />
      </div>
    </div>
    <${Problem} error=${error} />
    <p role="status" class="hint">
      ${plural(visible.length, "request")}, ${rate(units)} capacity units.${" "}
      ${visible.length > SHOWN ? `The latest ${SHOWN} are shown.` : ""}
    </p>
    ${visible.length
      ? html`<${DataTable}
          label="Table of the requests"
          columns=${[
            "Time",
            "Operation",
            "Tables",
            ["Milliseconds", "number"],
            ["Capacity units", "number"],
            "Outcome",
          ]}
        >
          ${visible.slice(0, SHOWN).map(
            (each) =>
              html`<tr key=${each.request_id}>
                <td>
                  <time title=${each.request_id}
                    >${new Date(each.at * 1000).toISOString().slice(11, 23)}</time
                  >
                </td>
                <td>${each.operation || "unknown"}</td>
                <td>
                  ${each.tables.map(
                    (name) =>
                      html`<a key=${name} href=${link(["table", name, "live"])}>${name}</a>${" "}`,
                  )}
                </td>
                <td class="number">${each.milliseconds.toFixed(2)}</td>
                <td class="number">${count(each.capacity_units)}</td>
                <td>${each.code ? html`<span class="failed">${each.code}</span>` : "OK"}</td>
              </tr>`,
          )}
        <//>`
      : html`<${Empty} title=${requests.length ? "No request matches" : "No requests yet"}>
          <p>
            Requests of clients appear here while this page is open. Their keys and values are not
            recorded.
          </p>
        <//>`}`;
}
