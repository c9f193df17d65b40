// The keys of a table by kind of item: their patterns, their shares, and the indexes that have them.

import { html } from "../vendor/preact.js";
import { admin } from "./api.js";
import { UNNAMED, entitiesOf } from "./entities.js";
import { count, plural } from "./format.js";
import { newTerm } from "./read_request.js";
import { link } from "./route.js";
import { DataTable, Empty, Problem, useLoaded } from "./ui.js";

/** @typedef {import("./table_page.js").TableFacts} TableFacts */
/** @typedef {import("./entities.js").Entity} Entity */

const SAMPLED_ITEMS = 1000;
const MOST_ENTITIES = 50;
const MOST_ATTRIBUTES = 12;

/** @param {{table: TableFacts}} properties */
export function Keys({ table }) {
  const { data, error, isLoading, reload } = useLoaded(
    async (signal) => {
      const query = new URLSearchParams({ table: table.name, count: String(SAMPLED_ITEMS) });
      const { items } = await admin(`/insights/sample?${query}`, { signal });
      return { items, entities: entitiesOf(items, table) };
    },
    [table],
  );
  if (data && !data.items.length) {
    return html`<${Empty} title="No items">
      <p>The patterns of keys appear here when the table has items.</p>
    <//>`;
  }
  return html`<div class="title-row">
      <p class="hint" role="status">
        ${data
          ? `${plural(data.entities.length, "kind")} of items in a sample of ` +
            `${plural(data.items.length, "item")}, which consumes no units.`
          : "Reading a sample of the items"}
      </p>
      <span class="spacer"></span>
      <button type="button" disabled=${isLoading} onClick=${reload}>Again</button>
    </div>
    <${Problem} error=${error} />
    ${data && html`<${Entities} table=${table} entities=${data.entities} total=${data.items.length} />`}`;
}

/** @param {{table: TableFacts, entities: Entity[], total: number}} properties */
function Entities({ table, entities, total }) {
  const groups = grouped(entities.slice(0, MOST_ENTITIES));
  const hasSort = table.keys.length > 1;
  const indexes = table.sources.slice(1);
  const columns = [
    ...table.keys.map((name) => /** @type {const} */ ([name, "key"])),
    /** @type {const} */ (["Items", "number"]),
    /** @type {const} */ (["Partition keys", "number"]),
    ...indexes.map((index) => index.name),
    "Other attributes",
  ];
  return html`<${DataTable} label="Kinds of items" kind="list entities" columns=${columns}>
      ${groups.map((group) =>
        group.map(
          (entity, at) =>
            html`<tr key=${JSON.stringify([entity.partition, entity.sort])}>
              ${at === 0 &&
              html`<th scope="rowgroup" rowspan=${group.length}>
                <${Pattern} text=${entity.partition} />
              </th>`}
              ${hasSort && html`<th scope="row"><${Pattern} text=${entity.sort} /></th>`}
              <td class="number">
                <a href=${link(["table", table.name, "items"], queryOf(entity, table))}
                  >${Math.round((100 * entity.count) / total) || "< 1"} %</a
                >
                <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="bar reads" width=${(100 * entity.count) / total} height="4" />
                </svg>
              </td>
              <td class="number">${count(entity.partitions)}</td>
              ${indexes.map(
                ({ name }) =>
                  html`<td key=${name}>
                    ${entity.places[name]?.length
                      ? entity.places[name]?.map(
                          (text) => html`<div key=${text}><${Pattern} text=${text} /></div>`,
                        )
                      : html`<span class="none" aria-label="no entry">–</span>`}
                  </td>`,
              )}
              <td><${Attributes} entity=${entity} /></td>
            </tr>`,
        ),
      )}
    <//>
    <p class="hint">
      “…” stands for different values. An attribute in italics is in some of the items only.
      The <a href=${link(["table", table.name, "live"])}>live view</a> shows the busiest keys.
      ${entities.length > MOST_ENTITIES ? ` The ${MOST_ENTITIES} most frequent kinds are shown.` : ""}
    </p>`;
}

/**
 * The entities with the same pattern of the partition key, together.
 * @param {Entity[]} entities
 */
function grouped(entities) {
  /** @type {Map<string, Entity[]>} */
  const groups = new Map();
  for (const entity of entities) {
    groups.set(entity.partition, [...(groups.get(entity.partition) ?? []), entity]);
  }
  return [...groups.values()];
}

/** @param {{text: string}} properties */
function Pattern({ text }) {
  if (UNNAMED.includes(text)) return html`<span class="hint">${text}</span>`;
  return html`<code>${text}</code>`;
}

/** @param {{entity: Entity}} properties */
function Attributes({ entity: { always, sometimes } }) {
  const shown = [
    ...always.map((name) => html`<span key=${name}>${name}</span>`),
    ...sometimes.map((name) => html`<em key=${name}>${name}</em>`),
  ];
  const more = shown.length - MOST_ATTRIBUTES;
  return html`<span class="attributes">
    ${shown.slice(0, MOST_ATTRIBUTES)} ${more > 0 && html`<span class="hint">${more} more</span>`}
  </span>`;
}

/**
 * The address of the items of an entity: a Scan with filters.
 * @param {Entity} entity
 * @param {TableFacts} table
 * @returns {Record<string, string>}
 */
function queryOf(entity, table) {
  const patterns = [entity.partition, entity.sort];
  const terms = table.keys.flatMap((name, at) => {
    const pattern = patterns[at] ?? "";
    const text = pattern.split("…")[0] ?? "";
    if (UNNAMED.includes(pattern) || !text) return [];
    return [{ ...newTerm(), name, operator: text === pattern ? "=" : "begins_with", text }];
  });
  return { filter: terms.length ? JSON.stringify(terms) : "" };
}
