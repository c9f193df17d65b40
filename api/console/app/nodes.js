// The nodes of a cluster, as the leader sees them.

import { html } from "../vendor/preact.js";
import { admin } from "./api.js";
import { count, plural } from "./format.js";
import { Badge, DataTable, Problem, useLoaded, useRepeated } from "./ui.js";

/**
 * @typedef {{
 *   name: string, address: string, version: string, is_home: boolean, is_leaving: boolean,
 *   missed_beats: number, tables: number,
 * }} Member
 */

const REFRESH_SECONDS = 1;
// The observer's renewal may come between two renewals of the other node.
const USUAL_MISSED = 1;

export function Nodes() {
  const { data, error, reload } = useLoaded((signal) => admin("/nodes", { signal }), []);
  useRepeated(reload, REFRESH_SECONDS);
  const members = /** @type {Member[]} */ (data?.["members"] ?? []);
  return html`<div class="title-row">
      <h1>Nodes ${data && html`<small>${count(members.length)}</small>`}</h1>
    </div>
    <${Problem} error=${error} />
    ${data &&
    html`<p role="status">
        ${data["home"] ? html`<strong>${data["home"]}</strong> is the leader.` : "No node is the leader now."}
        ${" "}<span class="sub">Seen by ${data["node"]}, epoch ${count(data["epoch"])}</span>
      </p>
      <${DataTable}
        label="Table of the nodes"
        columns=${["Node", "State", "Home of", "Address for other nodes", "Version"]}
      >
        ${members.map(
          (member) =>
            html`<tr key=${member.name}>
              <th scope="row">${member.name}</th>
              <td><${State} member=${member} /></td>
              <td>${member.is_home ? "all other tables" : plural(member.tables, "table")}</td>
              <td><code>${member.address}</code></td>
              <td>${member.version}</td>
            </tr>`,
        )}
      <//>
      <p class="hint">
        Every node answers clients. If the leader fails, another node becomes the leader, and the epoch
        rises.
      </p>`}`;
}

/** @param {{member: Member}} properties */
function State({ member }) {
  const isLate = member.missed_beats > USUAL_MISSED;
  const state = isLate ? "problem" : member.is_leaving ? "leaving" : "OK";
  return html`<${Badge} state=${state} /> ${member.is_home && html`<strong>leader</strong>`}
    ${isLate && html`<span class="sub">missed ${plural(member.missed_beats, "beat")}</span>`}`;
}
