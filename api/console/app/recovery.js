// Point-in-time recovery of a table: its window of times, and a restore to a second of it.

import { html, useState } from "../vendor/preact.js";
import { dynamodb } from "./api.js";
import { Change } from "./definition.js";
import { localTime, span, time } from "./format.js";
import { go } from "./route.js";
import { Badge, Empty, Input, Problem, useLoaded, useRepeated } from "./ui.js";
import { Preview } from "./table_form.js";

/** @typedef {import("./api.js").Json} Json */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */
/** @typedef {{earliest: number, latest: number, days: number}} Window */
/** @typedef {{table: TableFacts, server: import("./main.js").Server}} Properties */

const REFRESH_SECONDS = 5;
const DEFAULT_DAYS = "35";
const MOST_NAME_CHARACTERS = 255;
const NAME_CHARACTERS = 32;
const STEPS = /** @type {const} */ ([
  [-86400, "− 1 day"],
  [-3600, "− 1 hour"],
  [-60, "− 1 minute"],
  [-1, "− 1 second"],
  [1, "+ 1 second"],
  [60, "+ 1 minute"],
  [3600, "+ 1 hour"],
  [86400, "+ 1 day"],
]);

/** @param {Properties & {query: Record<string, string>}} properties */
export function Recovery({ table, server, query }) {
  const { data, error, reload } = useLoaded(
    async (signal) => windowOf(table.name, signal),
    [table],
  );
  const [isChanging, setChanging] = useState(false);
  useRepeated(reload, REFRESH_SECONDS);
  if (!data) return html`<${Problem} error=${error} />`;
  const { window } = data;
  const change = (/** @type {string} */ text) =>
    !server.is_read_only &&
    html`<button type="button" class=${window ? "small" : "main"} onClick=${() => setChanging(true)}>
      ${text}
    </button>`;
  const done = () => {
    setChanging(false);
    reload();
  };
  return html`<${Problem} error=${error} />
    ${window
      ? html`<div class="panel">
            <dl class="facts">
              <dt>Point-in-time recovery</dt>
              <dd><${Badge} state="ENABLED" /></dd>
              <dt>Earliest time</dt>
              <dd>${time(window.earliest)} <span class="sub">${localTime(window.earliest)} local</span></dd>
              <dt>Latest time</dt>
              <dd>${time(window.latest)} <span class="sub">${localTime(window.latest)} local</span></dd>
              <dt>Kept for</dt>
              <dd>${window.days} days ${change("Change")}</dd>
            </dl>
          </div>
          <${Restore} table=${table} server=${server} window=${window} given=${query["at"] ?? ""} />`
      : html`<${Empty} title="Point-in-time recovery is off">
          <p>Switch it on to restore the table to any second from then on.</p>
          ${change("Switch it on")}
        <//>`}
    ${isChanging &&
    html`<${Switch}
      table=${table}
      server=${server}
      window=${window}
      onClose=${() => setChanging(false)}
      onDone=${done}
    />`}`;
}

/**
 * @param {string} name
 * @param {AbortSignal} signal
 * @returns {Promise<{window: Window | null}>}
 */
async function windowOf(name, signal) {
  const { data } = await dynamodb("DescribeContinuousBackups", { TableName: name }, { signal });
  const found = data["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"];
  if (found["PointInTimeRecoveryStatus"] !== "ENABLED") return { window: null };
  return {
    window: {
      earliest: found["EarliestRestorableDateTime"],
      latest: found["LatestRestorableDateTime"],
      days: found["RecoveryPeriodInDays"],
    },
  };
}

/**
 * @param {Properties & {
 *   window: Window | null, onClose: () => void, onDone: () => void,
 * }} properties
 */
function Switch(properties) {
  const { table, window } = properties;
  const [days, setDays] = useState(String(window?.days ?? DEFAULT_DAYS));
  const isOff = days === "0";
  const body = {
    TableName: table.name,
    PointInTimeRecoverySpecification: {
      PointInTimeRecoveryEnabled: !isOff,
      ...(isOff ? {} : { RecoveryPeriodInDays: Number(days) }),
    },
  };
  return html`<${Change}
    ...${properties}
    title="Point-in-time recovery"
    operation="UpdateContinuousBackups"
    body=${body}
    isDangerous=${isOff}
  >
    <${Input}
      label=${window ? "Days to keep, 1 to 35, or 0 to switch it off" : "Days to keep, 1 to 35"}
      type="number"
      required=${true}
      value=${days}
      onInput=${setDays}
    />
    <p class="hint">
      ${isOff && window
        ? "The table can't be restored to earlier times any more."
        : "Each write then stores the item before and after it for this period."}
    </p>
  <//>`;
}

/** @param {Properties & {window: Window, given: string}} properties */
function Restore({ table, server, window: { earliest, latest }, given }) {
  // Null is the latest time, which moves.
  const [chosen, setChosen] = useState(() => (/^\d+$/.test(given) ? Number(given) : null));
  const [typed, setTyped] = useState("");
  const [name, setName] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const at = chosen === null ? latest : Math.min(latest, Math.max(earliest, chosen));
  const choose = (/** @type {number | null} */ seconds) => {
    setTyped("");
    setChosen(seconds === null ? null : Math.min(latest, Math.max(earliest, seconds)));
  };
  const type = (/** @type {string} */ text) => {
    setTyped(text);
    const seconds = secondsOf(text);
    if (seconds !== null) setChosen(seconds);
  };
  const isWrong = typed !== "" && secondsOf(typed) !== at;
  const suffix = `-${new Date(at * 1000).toISOString().slice(0, 19).replace(/[-:]/g, "")}`;
  const target = name || table.name.slice(0, MOST_NAME_CHARACTERS - suffix.length) + suffix;
  const body = {
    SourceTableName: table.name,
    TargetTableName: target,
    ...(chosen === null ? { UseLatestRestorableTime: true } : { RestoreDateTime: at }),
  };
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setError(null);
    try {
      await dynamodb("RestoreTableToPointInTime", body);
      go(["table", target, "definition"]);
    } catch (failure) {
      setError(failure);
    }
  };
  return html`<form class="panel" aria-label="Restore" onSubmit=${send}>
    <h2>Restore to a time</h2>
    <p class="clock">
      <strong>${time(at)}</strong>
      <span class="sub">${localTime(at)} local time</span>
      <span class="sub">
        ${chosen === null ? "the latest time" : `${span(latest - at)} before the latest time`}
      </span>
    </p>
    <div>
      <input
        type="range"
        aria-label="Time"
        aria-valuetext=${time(at)}
        min=${earliest}
        max=${latest}
        step="1"
        value=${at}
        onInput=${(/** @type {any} */ event) => choose(Number(event.target.value))}
      />
      <div class="axis" aria-hidden="true">
        <span>${time(earliest)}</span><span>${time(latest)}</span>
      </div>
    </div>
    <div class="row" role="group" aria-label="Step">
      ${STEPS.map(
        ([seconds, text]) =>
          html`<button
            type="button"
            class="small"
            key=${text}
            disabled=${at + seconds < earliest || at + seconds > latest}
            onClick=${() => choose(at + seconds)}
          >
            ${text}
          </button>`,
      )}
      <button type="button" class="small" onClick=${() => choose(null)}>Latest</button>
    </div>
    <div class="row">
      <${Input}
        label="Time in UTC"
        placeholder=${time(at).replace(" UTC", "")}
        value=${typed}
        onInput=${type}
      />
      <${Input}
        label="Name of the new table"
        placeholder=${target}
        size=${NAME_CHARACTERS}
        value=${name}
        onInput=${setName}
      />
      ${!server.is_read_only &&
      html`<button class="main" disabled=${isWrong}>Restore to a new table</button>`}
    </div>
    ${isWrong &&
    html`<p class="hint" role="status">
      Type a time of the window, such as ${time(earliest).replace(" UTC", "")}
    </p>`}
    <p class="hint">
      The new table has every change up to this time. ${table.name} stays as it is. Streams, time to
      live, tags and point-in-time recovery are not restored.
    </p>
    <${Problem} error=${error} />
    <${Preview} operation="RestoreTableToPointInTime" body=${body} server=${server} />
  </form>`;
}

/**
 * @param {string} text a time in UTC
 * @returns {number | null}
 */
function secondsOf(text) {
  const given = text.trim().replace(/ ?(UTC|Z)$/i, "").replace(" ", "T");
  const milliseconds = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(given) ? Date.parse(`${given}Z`) : NaN;
  return Number.isNaN(milliseconds) ? null : Math.floor(milliseconds / 1000);
}
