// The explanation of a request: what was read and written, rounded and fetched, and what is cheaper.

import { html } from "../vendor/preact.js";
import { count, plural, rate } from "./format.js";
import { Rules } from "./rules.js";

/**
 * The consumed capacity and the explanation of an answer.
 * @param {{explanation: import("./api.js").Json | null}} properties
 */
export function Explanation({ explanation }) {
  if (!explanation) return null;
  const tables = explanation["Tables"] ?? [];
  return html`<details class="explanation">
    <summary>
      <strong>${plural(explanation["CapacityUnits"], "capacity unit")}</strong>
      <span> · why, and what would be cheaper</span>
    </summary>
    <ul>
      ${tables.map(
        (/** @type {any} */ table) =>
          html`${(table.Reads ?? []).map(
            (/** @type {any} */ read) =>
              html`<li>${readText(read)} <${Rules} rules=${read.Rules ?? []} /></li>`,
          )}
          ${(table.Writes ?? []).map(
            (/** @type {any} */ write) =>
              html`<li>${writeText(write)} <${Rules} rules=${write.Rules ?? []} /></li>`,
          )}`,
      )}
    </ul>
    ${(explanation["Cheaper"] ?? []).map(
      (/** @type {any} */ advice) =>
        html`<p class="cheaper">
            <strong>Cheaper:</strong> ${advice.Advice}.${advice.Saves
              ? ` Saves ${rate(advice.Saves)} units.`
              : ""}
          </p>
          <${Rules} rules=${[advice.Rule]} />`,
    )}
    ${!(explanation["Cheaper"] ?? []).length && html`<p class="hint">Nothing cheaper is known.</p>`}
  </details>`;
}

/** @param {any} read */
function readText(read) {
  const where = read.Index ? ` of index ${read.Index}` : "";
  const kind = read.Consistent ? "strongly consistent" : "eventually consistent";
  const evaluated =
    read.Evaluated === undefined
      ? ""
      : ` It read ${count(read.Evaluated)} items and returned ${count(read.Returned ?? 0)}.`;
  const fetched = read.Fetched
    ? ` ${count(read.Fetched.Items)} items were fetched from the table: ${count(read.Fetched.Units)} units.`
    : "";
  const blocks = `${count(read.Blocks)} × 4 KB`;
  return (
    `${read.Read}${where}: ${count(read.Bytes)} bytes, rounded to ${blocks}, ${kind}: ` +
    `${plural(read.Units, "unit")}.${evaluated}${fetched}`
  );
}

/** @param {any} write */
function writeText(write) {
  const indexes = (write.Indexes ?? []).map(
    (/** @type {any} */ index) => ` Index ${index.Index} (${index.Change}): ${index.Units} units.`,
  );
  return (
    `${write.Write}: ${count(write.Bytes)} bytes, rounded up to ${count(write.Units)} × 1 KB: ` +
    `${count(write.Units)} units.${indexes.join("")}`
  );
}
