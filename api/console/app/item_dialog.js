// One item as DynamoDB's JSON: show, save, duplicate, delete. A write needs the item as it was shown.

import { html, useEffect, useState } from "../vendor/preact.js";
import { RequestError, dynamodb } from "./api.js";
import { awsCli, boto3, javaScript } from "./command_lines.js";
import { size } from "./format.js";
import { Code, DataTable, Dialog, Explanation, Problem, Value } from "./ui.js";
import { canonical, changes, keyOf, parseItem, pretty, unchanged } from "./values.js";

/** @typedef {import("./values.js").Item} Item */
/** @typedef {import("./table_page.js").TableFacts} TableFacts */

/**
 * @param {{
 *   table: TableFacts, server: import("./main.js").Server, item: Item | null,
 *   onClose: () => void, onChanged: () => void,
 * }} properties
 */
export function ItemDialog({ table, server, item, onClose, onChanged }) {
  // The item in the table when the dialog opened; null for a new item.
  const [stored, setStored] = useState(/** @type {Item | null} */ (null));
  const [text, setText] = useState(() => (item ? "" : pretty(blank(table))));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [newer, setNewer] = useState(/** @type {Item | "deleted" | null} */ (null));
  const [explanation, setExplanation] = useState(
    /** @type {import("./api.js").Json | null} */ (null),
  );
  const [isLoading, setLoading] = useState(item !== null);
  const [asks, setAsks] = useState(false);
  const load = async (/** @type {Item} */ key) => {
    const answer = await dynamodb(
      "GetItem",
      { TableName: table.name, Key: key, ConsistentRead: true },
      { explain: true },
    );
    const found = /** @type {Item | undefined} */ (answer.data["Item"]);
    setExplanation(answer.explanation);
    setLoading(false);
    setNewer(null);
    if (!found) {
      setError(new Error("This item is not in the table any more"));
      return;
    }
    setStored(found);
    setText(pretty(found));
  };
  useEffect(() => {
    if (item) load(keyOf(item, table.keys)).catch(setError);
  }, []);

  const write = async (/** @type {() => Promise<unknown>} */ send) => {
    setError(null);
    setNewer(null);
    try {
      await send();
      onChanged();
    } catch (failure) {
      if (failure instanceof RequestError && failure.code === "ConditionalCheckFailedException") {
        if (stored) setNewer(failure.body["Item"] ?? "deleted");
        else setError(new Error("There is an item with this key already: nothing was written"));
      } else setError(failure);
    }
  };
  const put = (/** @type {Item | null} */ before) =>
    write(async () => {
      const next = parseItem(text);
      const isSameKey =
        before &&
        canonical(keyOf(before, table.keys)) === canonical(keyOf(next, table.keys));
      if (before && !isSameKey) {
        throw new Error("The key of an item can't change: duplicate the item instead");
      }
      await dynamodb("PutItem", {
        TableName: table.name,
        Item: next,
        ...(before ? unchanged(before, next) : absent(table)),
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      });
    });
  const remove = () =>
    write(() =>
      dynamodb("DeleteItem", {
        TableName: table.name,
        Key: keyOf(stored ?? {}, table.keys),
        ...unchanged(stored ?? {}),
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    );
  const key = stored && { TableName: table.name, Key: keyOf(stored, table.keys) };
  const isEditable = !server.is_read_only;
  return html`<${Dialog} title=${item ? "Item" : "New item"} wide=${true} onClose=${onClose}>
    ${isLoading
      ? html`<p class="hint">Reading the item</p>`
      : html`<label class="field">
          <span class="label">DynamoDB JSON ${stored && `· ${size(text.length)} of text`}</span>
          <textarea
            class="code-input"
            rows="18"
            spellcheck=${false}
            readonly=${!isEditable}
            value=${text}
            onInput=${(/** @type {any} */ event) => setText(event.target.value)}
          ></textarea>
        </label>`}
    <${Problem} error=${error} />
    ${newer &&
    html`<div class="problem" role="alert">
      <strong>The item has changed since it was shown. Nothing was written.</strong>
      ${newer === "deleted"
        ? html`<p>It is not in the table any more.</p>`
        : html`<${Difference} before=${stored} after=${newer} />
            <button type="button" onClick=${() => load(keyOf(newer, table.keys)).catch(setError)}>
              Show the item as it is now
            </button>`}
    </div>`}
    ${asks &&
    html`<div class="problem" role="alert">
      <span>Delete this item?</span>
      <button type="button" class="danger" onClick=${remove}>Delete the item</button>
      <button type="button" onClick=${() => setAsks(false)}>Keep it</button>
    </div>`}
    ${isEditable &&
    html`<div class="row">
      ${stored &&
      html`<button type="button" class="danger" onClick=${() => setAsks(true)}>Delete</button>
        <button type="button" onClick=${() => put(null)}>Save as a new item</button>`}
      <span class="spacer"></span>
      <button
        type="button"
        class="main"
        disabled=${isLoading || (item !== null && !stored)}
        onClick=${() => put(stored)}
      >
        Save
      </button>
    </div>`}
    <${Explanation} explanation=${explanation} />
    ${key &&
    html`<details>
      <summary>Code</summary>
      <${Code} label="AWS CLI" text=${awsCli("GetItem", key, server.endpoint)} />
      <${Code} label="boto3" text=${boto3("GetItem", key, server.endpoint)} />
      <${Code} label="JavaScript" text=${javaScript("GetItem", key, server.endpoint)} />
    </details>`}
  <//>`;
}

/**
 * The attributes that differ between two items.
 * @param {{before: Item | null, after: Item | null}} properties
 */
export function Difference({ before, after }) {
  const different = changes(before, after);
  if (!different.length) return html`<p class="hint">No attribute differs.</p>`;
  return html`<${DataTable}
    label="Difference"
    kind="difference"
    columns=${["Attribute", "Before", "After"]}
  >
    ${different.map(
      ({ name, before: old, after: now }) =>
        html`<tr key=${name}>
          <th scope="row">${name}</th>
          <td class="old"><${Value} value=${old} /></td>
          <td class="new"><${Value} value=${now} /></td>
        </tr>`,
    )}
  <//>`;
}

/** @param {TableFacts} table */
function blank(table) {
  return Object.fromEntries(
    table.keys.map((name) => {
      const type = table.types[name] ?? "S";
      return [name, { [type]: type === "N" ? "0" : "" }];
    }),
  );
}

/** @param {TableFacts} table */
const absent = (table) => ({
  ConditionExpression: "attribute_not_exists(#key)",
  ExpressionAttributeNames: { "#key": table.keys[0] },
});
