// What happens in a table now: its partitions by heat, its busiest keys, and what follows it.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { events } from "./api.js";
import { count, plural, rate, size, span, time } from "./format.js";
import { link } from "./route.js";
import { Badge, Problem } from "./ui.js";
import { shown } from "./values.js";

/**
 * @typedef {{
 *   number: number, start: number, items: number, size_bytes: number, read_units: number,
 *   write_units: number, read_refusals: number, write_refusals: number, read_limit: number,
 *   write_limit: number,
 * }} PartitionUse
 */
/** @typedef {{key: import("./values.js").Item, weight: number}} KeyUse */
/**
 * @typedef {{
 *   name: string, partition_count: number, partitions: PartitionUse[], read_units: number,
 *   write_units: number, keys: Record<string, KeyUse[]>, lag_records: number,
 *   lag_seconds: number | null, backfill_percentage: number | null,
 * }} ResourceUse
 */
/**
 * @typedef {{
 *   topic: string, state: string, lag_records: number, lag_seconds: number,
 *   published_records: number,
 * }} Topic
 */
/**
 * @typedef {{
 *   seconds: number, now_epoch_seconds: number, throttling: string, recording: string,
 *   resources: ResourceUse[], throttles: Record<string, number>,
 *   would_throttle: Record<string, number>, conflicts: number, expired_items: number,
 *   time_to_live_lag_seconds: number | null, topics: Topic[],
 * }} TableUse
 */
/** @typedef {{reads: number, writes: number, refused: number}} Rates */
/** @typedef {{at: number, resource: string, parent: number, children: number[]}} Split */

const KEPT_SECONDS = 120;
const KEPT_SPLITS = 20;
const RETRY_SECONDS = 2;
const MEAN_SECONDS = 3;
// The list of partitions starts open up to this number of them.
const FEW_PARTITIONS = 32;
// A smaller range of hashes is a part of the items of one partition key.
const KEY_RANGE = 1e-9;
// The least visible width of a partition, in thousandths of the line.
const LEAST_WIDTH = 16;

/**
 * The events of a table while the page is visible, the last one at the end.
 * @param {string} name
 */
function useEvents(name) {
  const [uses, setUses] = useState(/** @type {() => TableUse[]} */ (() => []));
  const [splits, setSplits] = useState(/** @type {() => Split[]} */ (() => []));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const last = useRef(/** @type {TableUse | null} */ (null));
  useEffect(() => {
    let abort = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const receive = (/** @type {any} */ event) => {
      const use = /** @type {TableUse | null} */ (event);
      setError(use ? null : new Error("There is no such table"));
      if (!use) return;
      const found = last.current ? splitsBetween(last.current, use) : [];
      if (found.length) setSplits((before) => [...found, ...before].slice(0, KEPT_SPLITS));
      last.current = use;
      setUses((before) => [...before, use].slice(-KEPT_SECONDS));
    };
    const connect = () => {
      if (document.hidden) return;
      abort = new AbortController();
      const { signal } = abort;
      const path = `/console/live?table=${encodeURIComponent(name)}`;
      const again = (/** @type {unknown} */ failure) => {
        if (signal.aborted) return;
        if (failure) setError(failure);
        timer = setTimeout(connect, RETRY_SECONDS * 1000);
      };
      events(path, receive, signal).then(() => again(null), again);
    };
    const follow = () => {
      clearTimeout(timer);
      abort.abort();
      connect();
    };
    document.addEventListener("visibilitychange", follow);
    connect();
    return () => {
      document.removeEventListener("visibilitychange", follow);
      clearTimeout(timer);
      abort.abort();
    };
  }, [name]);
  return { uses, splits, error };
}

/**
 * The partitions that were split between two events.
 * @param {TableUse} before
 * @param {TableUse} after
 * @returns {Split[]}
 */
export function splitsBetween(before, after) {
  return before.resources.flatMap((old) => {
    const now = after.resources.find((each) => each.name === old.name);
    if (!now || now.partition_count > now.partitions.length) return [];
    const kept = new Set(now.partitions.map((each) => each.number));
    const known = new Set(old.partitions.map((each) => each.number));
    return old.partitions.flatMap((parent, at) => {
      if (kept.has(parent.number)) return [];
      const end = old.partitions[at + 1]?.start ?? 1;
      const children = now.partitions
        .filter((each) => !known.has(each.number))
        .filter((each) => each.start >= parent.start && each.start < end)
        .map((each) => each.number);
      const { number } = parent;
      return [{ at: after.now_epoch_seconds, resource: old.name, parent: number, children }];
    });
  });
}

/**
 * The mean rates of a partition over the last seconds.
 * @param {TableUse[]} uses
 * @param {string} resource
 * @param {PartitionUse} partition
 * @returns {Rates}
 */
export function ratesOf(uses, resource, partition) {
  const now = uses.at(-1);
  const before = uses.at(Math.max(-uses.length, -1 - MEAN_SECONDS));
  const old = before?.resources
    .find((each) => each.name === resource)
    ?.partitions.find((each) => each.number === partition.number);
  const seconds = now && before ? now.seconds - before.seconds : 0;
  if (!old || seconds <= 0) return { reads: 0, writes: 0, refused: 0 };
  const per = (/** @type {number} */ units) => Math.max(0, units / seconds);
  return {
    reads: per(partition.read_units - old.read_units),
    writes: per(partition.write_units - old.write_units),
    refused: per(
      partition.read_refusals +
        partition.write_refusals -
        old.read_refusals -
        old.write_refusals,
    ),
  };
}

/**
 * How hot a rate is, from 0 to 1. The scale is logarithmic, so that little use is visible too.
 * @param {number} units
 * @param {number} limit
 */
export const heat = (units, limit) =>
  units <= 0 ? 0 : Math.min(1, 0.08 + (0.92 * Math.log1p(units)) / Math.log1p(limit || 1000));

/** @param {{table: import("./table_page.js").TableFacts}} properties */
export function Live({ table }) {
  const { uses, splits, error } = useEvents(table.name);
  const use = uses.at(-1);
  if (!use) return html`<${Problem} error=${error} /><p class="hint" role="status">Connecting</p>`;
  return html`<${Problem} error=${error} />
    <p class="hint">
      Updated once a second. Limits: ${use.throttling}. ${keysText(use.recording)}
    </p>
    ${use.resources.map(
      (resource) =>
        html`<${Resource} key=${resource.name} resource=${resource} uses=${uses} use=${use} />`,
    )}
    <div class="grid">
      <${Splits} splits=${splits} />
      <${Throttles} use=${use} />
      <${Followers} use=${use} name=${table.name} />
    </div>`;
}

/** @param {string} recording */
function keysText(recording) {
  switch (recording) {
    case "all":
      return "Every request is counted by key.";
    case "some":
      return "A sample of the requests is counted by key.";
    default:
      return "Requests are not counted by key.";
  }
}

/** @param {{resource: ResourceUse, uses: TableUse[], use: TableUse}} properties */
function Resource({ resource, uses }) {
  const { name, partitions } = resource;
  const rates = partitions.map((each) => ratesOf(uses, name, each));
  const total = totals(uses, name);
  const title = name ? `Index ${name}` : "Table";
  const current = total.at(-1) ?? { reads: 0, writes: 0 };
  return html`<section class="panel live" aria-label=${title}>
    <div class="row live-head">
      <h2>${title}</h2>
      <span class="sub">${plural(resource.partition_count, "partition")}</span>
      <span class="legend reads">${rate(current.reads)} read units/s</span>
      <span class="legend writes">${rate(current.writes)} write units/s</span>
      ${resource.backfill_percentage !== null &&
      resource.lag_seconds === null &&
      html`<${Badge} state="BACKFILLING" note=${`${Math.floor(resource.backfill_percentage)} %`} />`}
      ${resource.lag_seconds !== null &&
      html`<span class="sub">
        ${resource.lag_records
          ? `${plural(resource.lag_records, "change")} behind the table, ${span(resource.lag_seconds)}`
          : "up to date with the table"}
      </span>`}
    </div>
    <div class="split even">
      <div>
        <${Strip} label="Reads" partitions=${partitions} value=${(/** @type {number} */ at) => heat(rates[at]?.reads ?? 0, partitions[at]?.read_limit ?? 0)} color="reads" />
        <${Strip} label="Writes" partitions=${partitions} value=${(/** @type {number} */ at) => heat(rates[at]?.writes ?? 0, partitions[at]?.write_limit ?? 0)} color="writes" />
        <${Strip} label="Over limit" partitions=${partitions} value=${(/** @type {number} */ at) => heat(rates[at]?.refused ?? 0, 100)} color="refused" />
        <div class="axis" aria-hidden="true"><span>hash 0</span><span>hash 2⁶⁴</span></div>
        <details open=${partitions.length <= FEW_PARTITIONS}>
          <summary>Partitions as a table</summary>
          <${Numbers} partitions=${partitions} rates=${rates} title=${title} />
        </details>
      </div>
      <div>
        <${Lines} totals=${total} />
        <${Keys} resource=${resource} />
      </div>
    </div>
  </section>`;
}

/**
 * @param {TableUse[]} uses
 * @param {string} name
 */
function totals(uses, name) {
  const found = uses.map((use) => ({
    seconds: use.seconds,
    resource: use.resources.find((each) => each.name === name),
  }));
  return found.slice(1).map((now, at) => {
    const before = found[at];
    const seconds = now.seconds - (before?.seconds ?? 0);
    if (!before?.resource || !now.resource || seconds <= 0) return { reads: 0, writes: 0 };
    return {
      reads: Math.max(0, (now.resource.read_units - before.resource.read_units) / seconds),
      writes: Math.max(0, (now.resource.write_units - before.resource.write_units) / seconds),
    };
  });
}

/**
 * The places of partitions on a line of 1000. A part of an item collection has a range of sort keys
 * only, so it gets the least width.
 * @param {PartitionUse[]} partitions
 */
export function placesOf(partitions) {
  const widths = partitions.map((partition, at) =>
    Math.max(LEAST_WIDTH, ((partitions[at + 1]?.start ?? 1) - partition.start) * 1000),
  );
  const scale = 1000 / widths.reduce((sum, width) => sum + width, 0);
  let x = 0;
  return widths.map((width) => {
    const place = { x, width: width * scale };
    x += place.width;
    return place;
  });
}

/**
 * The partitions on a line: width by range, color by heat.
 * @param {{
 *   label: string, partitions: PartitionUse[], value: (at: number) => number, color: string,
 * }} properties
 */
function Strip({ label, partitions, value, color }) {
  const places = placesOf(partitions);
  return html`<div class="strip">
    <span class="label">${label}</span>
    <svg viewBox="0 0 1000 30" preserveAspectRatio="none" aria-hidden="true">
      ${partitions.map((partition, at) => {
        const { x, width } = places[at] ?? { x: 0, width: 0 };
        return html`<g key=${partition.number}>
          <rect class="cold" x=${x} y="0" width=${width} height="30" />
          <rect
            class=${`heat ${color}`}
            x=${x}
            y="0"
            width=${width}
            height="30"
            fill-opacity=${value(at).toFixed(3)}
          />
        </g>`;
      })}
    </svg>
  </div>`;
}

/**
 * @param {{partitions: PartitionUse[], rates: Rates[], title: string}} properties
 */
function Numbers({ partitions, rates, title }) {
  const percent = (/** @type {number} */ share) => `${(share * 100).toFixed(1)} %`;
  const range = (/** @type {number} */ start, /** @type {number} */ end) =>
    end - start < KEY_RANGE
      ? `a key at ${percent(start)}`
      : `${percent(start)} to ${percent(end)}`;
  return html`<div class="scroll low" tabindex="0" role="region" aria-label=${`Partitions of ${title}`}>
    <table class="list">
      <thead>
        <tr>
          <th scope="col" class="number">Partition</th>
          <th scope="col">Range of hashes</th>
          <th scope="col" class="number">Items</th>
          <th scope="col" class="number">Size</th>
          <th scope="col" class="number">Reads/s</th>
          <th scope="col" class="number">Writes/s</th>
          <th scope="col" class="number">Over limit/s</th>
        </tr>
      </thead>
      <tbody>
        ${partitions.map(
          (partition, at) =>
            html`<tr key=${partition.number}>
              <th scope="row" class="number">${partition.number}</th>
              <td>${range(partition.start, partitions[at + 1]?.start ?? 1)}</td>
              <td class="number">${count(partition.items)}</td>
              <td class="number">${size(partition.size_bytes)}</td>
              <td class="number">${rate(rates[at]?.reads ?? 0)}</td>
              <td class="number">${rate(rates[at]?.writes ?? 0)}</td>
              <td class="number">${rate(rates[at]?.refused ?? 0)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** @param {{totals: {reads: number, writes: number}[]}} properties */
function Lines({ totals: points }) {
  const most = Math.max(1, ...points.flatMap((point) => [point.reads, point.writes]));
  const path = (/** @type {"reads" | "writes"} */ kind) =>
    points
      .map((point, at) => {
        const x = 1000 - (points.length - 1 - at) * (1000 / (KEPT_SECONDS - 1));
        return `${at ? "L" : "M"}${x.toFixed(1)} ${(98 - (point[kind] / most) * 94).toFixed(1)}`;
      })
      .join("");
  return html`<figure class="lines">
    <svg viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true">
      <path class="line reads" d=${path("reads")} />
      <path class="line writes" d=${path("writes")} />
    </svg>
    <figcaption class="axis">
      <span>2 minutes ago</span><span>at most ${rate(most)} units/s</span><span>now</span>
    </figcaption>
  </figure>`;
}

const KINDS = /** @type {const} */ ([
  ["reads", "Busiest keys by read units"],
  ["writes", "Busiest keys by write units"],
  ["throttled_reads", "Keys with reads over a limit"],
  ["throttled_writes", "Keys with writes over a limit"],
  ["conflicts", "Keys with transaction conflicts"],
]);
const KEYS = 4;

/** @param {{resource: ResourceUse}} properties */
function Keys({ resource }) {
  const given = KINDS.filter(([kind]) => resource.keys[kind]?.length);
  if (!given.length) return html`<p class="hint">No key was used in the last 5 minutes.</p>`;
  return html`<div class="key-use">
    ${given.map(([kind, title]) => {
      const keys = (resource.keys[kind] ?? []).slice(0, KEYS);
      const most = Math.max(1, ...keys.map((each) => each.weight));
      return html`<div key=${kind}>
        <h3>${title} <small>in 5 minutes</small></h3>
        <ol class="bars">
          ${keys.map(
            ({ key, weight }) =>
              html`<li key=${JSON.stringify(key)}>
                <code>${Object.values(key).map(shown).join(" · ")}</code>
                <span class="number">${rate(weight)}</span>
                <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                  <rect class=${`bar ${kind}`} width=${(100 * weight) / most} height="4" />
                </svg>
              </li>`,
          )}
        </ol>
      </div>`;
    })}
  </div>`;
}

/** @param {{splits: Split[]}} properties */
function Splits({ splits }) {
  return html`<section class="panel" aria-label="Splits">
    <h2>Splits</h2>
    <div aria-live="polite">
      ${splits.length
        ? html`<ul class="plain-list">
            ${splits.map(
              (split) =>
                html`<li key=${split.parent}>
                  <span class="sub">${time(split.at)}</span> Partition ${split.parent}
                  ${split.resource && ` of ${split.resource}`} became
                  ${` ${split.children.join(" and ")}`}
                </li>`,
            )}
          </ul>`
        : html`<p class="hint">None since this page was opened.</p>`}
    </div>
  </section>`;
}

/** @param {{use: TableUse}} properties */
function Throttles({ use }) {
  const lines = [
    ...Object.entries(use.throttles).map(([reason, number]) => ({ reason, number, note: "" })),
    ...Object.entries(use.would_throttle).map(([reason, number]) => ({
      reason,
      number,
      note: "on AWS",
    })),
  ];
  return html`<section class="panel" aria-label="Refused requests">
    <h2>Refused requests</h2>
    <dl class="facts">
      ${lines.map(
        ({ reason, number, note }) =>
          html`<dt key=${`${reason} ${note}`}>${reason} ${note}</dt>
            <dd>${count(number)}</dd>`,
      )}
      <dt>Transaction conflicts</dt>
      <dd>${count(use.conflicts)}</dd>
    </dl>
    ${!lines.length && html`<p class="hint">No limit was reached since the server started.</p>`}
  </section>`;
}

/** @param {{use: TableUse, name: string}} properties */
function Followers({ use, name }) {
  const lag = use.time_to_live_lag_seconds;
  return html`<section class="panel" aria-label="Time to live and Kafka">
    <h2>Time to live and Kafka</h2>
    <dl class="facts">
      <dt>Time to live</dt>
      <dd>
        ${lag === null
          ? html`off <a href=${link(["table", name, "definition"])}>Switch on</a>`
          : `${count(use.expired_items)} items deleted, ` +
            (lag ? `${span(lag)} behind` : "nothing has to be deleted now")}
      </dd>
      ${use.topics.map(
        (topic) =>
          html`<dt key=${topic.topic}>Kafka ${topic.topic}</dt>
            <dd>
              <${Badge} state=${topic.state} />${" "}
              ${count(topic.published_records)} published,${" "}
              ${topic.lag_records
                ? `${plural(topic.lag_records, "change")} behind, ${span(topic.lag_seconds)}`
                : "up to date"}
            </dd>`,
      )}
    </dl>
    ${!use.topics.length && html`<p class="hint">No Kafka topic follows the table.</p>`}
  </section>`;
}
