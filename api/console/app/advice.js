// Advice on a table, and the cost of an index that does not exist yet.

import { html, useState } from "../vendor/preact.js";
import { admin } from "./api.js";
import { count, plural, rate, size, span } from "./format.js";
import { go, link } from "./route.js";
import { Rules } from "./rules.js";
import { Badge, Choice, Empty, Input, Problem, useLoaded } from "./ui.js";
import { shown } from "./values.js";

/** @typedef {import("./api.js").Json} Json */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */
/**
 * @typedef {{about: string, level: string, rules: string[], text: string, advice: string | null}}
 *   Finding
 */

/** @param {{table: TableFacts}} properties */
export function Advice({ table }) {
  const path = `/console/advice?table=${encodeURIComponent(table.name)}`;
  const { data, error, isLoading, reload } = useLoaded((signal) => admin(path, { signal }), [path]);
  const findings = /** @type {Finding[]} */ (data?.["findings"] ?? []);
  const parts = [...new Set(findings.map((each) => each.about))];
  return html`<div class="title-row">
      <p class="hint" role="status">
        ${data
          ? `From ${plural(data["sampled_items"], "item")} and the requests of the last ` +
            `${span(data["to"] - data["from"])}.`
          : "Reading a sample of the items"}
      </p>
      <span class="spacer"></span>
      <button type="button" disabled=${isLoading} onClick=${reload}>Again</button>
      <a class="button" href=${link(["table", table.name, "index-cost"])}>Cost of an index</a>
    </div>
    <${Problem} error=${error} />
    ${data && !findings.length && html`<${Empty} title="There is no advice for this table" />`}
    ${parts.map(
      (about) =>
        html`<section class="panel" key=${about} aria-label=${about}>
          <h2>${about}</h2>
          <ul class="findings">
            ${findings
              .filter((each) => each.about === about)
              .map(
                (each, at) =>
                  html`<li class=${each.level === "problem" ? "problem" : ""} key=${at}>
                    <p><${Badge} state=${each.level} /> ${each.text}</p>
                    ${each.advice && html`<p class="cheaper">${each.advice}</p>`}
                    <${Rules} rules=${each.rules} />
                  </li>`,
              )}
          </ul>
        </section>`,
    )}`;
}

const PROJECTIONS = /** @type {const} */ (["ALL", "KEYS_ONLY", "INCLUDE"]);
const TYPES = /** @type {const} */ ([
  ["S", "String"],
  ["N", "Number"],
  ["B", "Binary"],
]);
const NEAR = 0.5;

/**
 * @param {{
 *   table: TableFacts, server: import("./main.js").Server, query: Record<string, string>,
 * }} properties
 */
export function IndexCost({ table, server, query }) {
  const [form, setForm] = useState({
    partition: query["partition"] ?? "",
    partition_type: query["partition_type"] ?? "S",
    sort: query["sort"] ?? "",
    sort_type: query["sort_type"] ?? "S",
    projection: query["projection"] ?? "ALL",
    include: query["include"] ?? "",
  });
  const address = JSON.stringify(query);
  const { data, error, isLoading } = useLoaded(async (signal) => {
    if (!query["partition"]) return null;
    const parameters = new URLSearchParams({ ...query, table: table.name });
    return admin(`/console/index-cost?${parameters}`, { signal });
  }, [address]);
  const edit = (/** @type {string} */ name) => (/** @type {string} */ value) =>
    setForm({ ...form, [name]: value });
  const run = (/** @type {Event} */ event) => {
    event.preventDefault();
    go(["table", table.name, "index-cost"], form);
  };
  return html`<form class="panel" onSubmit=${run} aria-label="Planned index">
      <div class="row">
        <${Input}
          label="Partition key"
          required=${true}
          value=${form.partition}
          onInput=${edit("partition")}
        />
        <${Choice}
          label="Type of the partition key"
          value=${form.partition_type}
          options=${TYPES}
          onChange=${edit("partition_type")}
        />
        <${Input} label="Sort key, if any" value=${form.sort} onInput=${edit("sort")} />
        ${form.sort &&
        html`<${Choice}
          label="Type of the sort key"
          value=${form.sort_type}
          options=${TYPES}
          onChange=${edit("sort_type")}
        />`}
        <${Choice}
          label="Projection"
          value=${form.projection}
          options=${PROJECTIONS}
          onChange=${edit("projection")}
        />
        ${form.projection === "INCLUDE" &&
        html`<${Input}
          label="Attributes, separated by commas"
          value=${form.include}
          onInput=${edit("include")}
        />`}
        <button class="main">Compute the cost</button>
      </div>
    </form>
    <${Problem} error=${error} />
    ${data
      ? html`<${Cost} cost=${data}>
          ${!server.is_read_only &&
          html`<a class="button" href=${link(["table", table.name, "definition"], query)}
            >Add this index</a
          >`}
        <//>`
      : !error &&
        !isLoading &&
        html`<${Empty} title="What would an index cost?">
          <p>
            Choose its keys. Its size, its write units and its hottest key are computed from a
            sample of the items and the writes of the last hour. Nothing is changed.
          </p>
        <//>`}`;
}

/** @param {{cost: Json, children?: import("./ui.js").Child}} properties */
function Cost({ cost, children }) {
  const forecast = cost["forecast"];
  const { mean, busiest } = /** @type {Record<string, any>} */ (cost);
  const percent = (/** @type {number} */ share) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
  const isHot = busiest.hottest_units > NEAR * busiest.hottest_limit;
  return html`<section class="panel" aria-label="Forecast">
      <h2>Forecast</h2>
      <dl class="facts">
        <dt>Entries</dt>
        <dd>
          about ${count(cost["entries"])} of ${count(cost["item_count"])} items
          (${percent(forecast.with_entry)} of ${plural(forecast.sampled, "sampled item")})
        </dd>
        <dt>Size</dt>
        <dd>
          about ${size(cost["size_bytes"])}, ${count(Math.round(forecast.entry_bytes))} bytes an entry
        </dd>
        <dt>Write units in the mean</dt>
        <dd>at most ${rate(mean.write_units)} a second</dd>
        <dt>Write units in the busiest second</dt>
        <dd>at most ${rate(busiest.write_units)}, ${rate(forecast.entry_units)} for each write</dd>
        <dt>Hottest key</dt>
        <dd>
          ${forecast.keys.length
            ? html`<code>${Object.values(forecast.keys[0].key).map(shown).join(" · ")}</code> has
                ${` ${percent(forecast.keys[0].share)}`} of the entries: at most
                ${` ${rate(busiest.hottest_units)}`} of ${count(busiest.hottest_limit)} write units
                a second${" "}
                <${Badge} state=${isHot ? "problem" : "OK"} />`
            : "no entries"}
        </dd>
        <dt>Different keys</dt>
        <dd>${count(forecast.distinct_keys)} in the sample</dd>
        <dt>Invalid key values</dt>
        <dd>
          ${forecast.violating
            ? `${percent(forecast.violating)} of the items are left out, and can't be written ` +
              "unchanged once the index exists"
            : "none in the sample"}
        </dd>
      </dl>
      <p class="hint">
        Write units count every write of the last hour as a change of its entry. An item without a
        key attribute has no entry.
      </p>
      ${children}
    </section>
    ${forecast.keys.length > 1 && html`<${KeyShares} keys=${forecast.keys} />`}
    ${forecast.violations.length > 0 &&
    html`<section class="panel" aria-label="Invalid key values">
      <h2>Invalid key values</h2>
      <ul class="plain-list">
        ${forecast.violations.map(
          (/** @type {Json} */ each, /** @type {number} */ at) =>
            html`<li key=${at}>
              <code>${Object.values(each["key"]).map((value) => shown(/** @type {any} */ (value))).join(" · ")}</code>:
              ${` ${each["attribute"]}`} is ${each["reason"] === "wrong type" ? "of another type" : each["reason"]}
            </li>`,
        )}
      </ul>
    </section>`}`;
}

/** @param {{keys: {key: import("./values.js").Item, share: number}[]}} properties */
function KeyShares({ keys }) {
  const most = Math.max(...keys.map((each) => each.share));
  return html`<section class="panel" aria-label="Most frequent keys">
    <h2>Most frequent keys</h2>
    <ol class="bars">
      ${keys.map(
        ({ key, share }) =>
          html`<li key=${JSON.stringify(key)}>
            <code>${Object.values(key).map(shown).join(" · ")}</code>
            <span class="number">${(share * 100).toFixed(1)} %</span>
            <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
              <rect class="bar writes" width=${(100 * share) / most} height="4" />
            </svg>
          </li>`,
      )}
    </ol>
  </section>`;
}
