// Deletes several items, each only as it was shown. The first 100 are listed, and it can be stopped.

import { html, useState } from "../vendor/preact.js";
import { RequestError, dynamodb } from "./api.js";
import { plural } from "./format.js";
import { Dialog, Problem, RunButtons, useRun } from "./ui.js";
import { keyOf, shown, unchanged } from "./values.js";

/** @typedef {import("./values.js").Item} Item */

const LISTED = 100;

/**
 * @param {{
 *   table: import("./table_page.js").TableFacts, items: Item[], onClose: () => void,
 * }} properties
 */
export function BulkDelete({ table, items, onClose }) {
  const [done, setDone] = useState(0);
  const [kept, setKept] = useState(0);
  const work = useRun(async (signal) => {
    for (const item of items.slice(done + kept)) {
      if (signal.aborted) return;
      try {
        await dynamodb("DeleteItem", {
          TableName: table.name,
          Key: keyOf(item, table.keys),
          ...unchanged(item, table.keys),
        });
        setDone((before) => before + 1);
      } catch (failure) {
        const hasChanged =
          failure instanceof RequestError && failure.code === "ConditionalCheckFailedException";
        if (!hasChanged) throw failure;
        setKept((before) => before + 1);
      }
    }
  });
  const isComplete = done + kept === items.length;
  return html`<${Dialog} title=${`Delete ${plural(items.length, "item")}`} onClose=${onClose}>
    <p>
      ${items.length > LISTED ? `The first ${LISTED} of them:` : "These items are deleted:"}
    </p>
    <ul class="key-list" tabindex="0" aria-label="Items to delete">
      ${items.slice(0, LISTED).map((item, at) => {
        const key = table.keys.map((name) => shown(item[name] ?? {})).join(" · ");
        return html`<li key=${at}>${key}</li>`;
      })}
    </ul>
    <p role="status">
      ${done || kept
        ? `${plural(done, "item")} deleted. ${kept ? `${plural(kept, "item")} had changed and stay.` : ""}`
        : ""}
    </p>
    <${Problem} error=${work.error} />
    <${RunButtons}
      work=${work}
      action="Delete"
      kind="danger"
      isComplete=${isComplete}
      onClose=${onClose}
    />
  <//>`;
}
