// One item as DynamoDB's JSON: show, save, duplicate, delete. A write needs the item as it was shown.

import { html, useEffect, useState } from "../vendor/preact.js";
import { RequestError, dynamodb } from "./api.js";
import { awsCli, boto3, javaScript } from "./command_lines.js";
import { Explanation } from "./explanation.js";
import { size } from "./format.js";
import { Code, DataTable, Dialog, Problem, Value } from "./ui.js";
import { canonical, changes, keyOf, parseItem, pretty, unchanged, updateOf } from "./values.js";

/** @typedef {import("./api.js").Json} Json */
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
    /** @type {Json | null} */ (null),
  );
  const [isLoading, setLoading] = useState(item !== null);
  const [asks, setAsks] = useState(false);
  const read = (/** @type {Item} */ key) =>
    dynamodb(
      "GetItem",
      { TableName: table.name, Key: key, ConsistentRead: true },
      { explain: true },
    );
  const load = async (/** @type {Item} */ key) => {
    const answer = await read(key);
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

  const write = async (/** @type {string} */ operation, /** @type {() => Json} */ request) => {
    setError(null);
    setNewer(null);
    try {
      const body = request();
      // A condition can't find attributes that others have added, so compare the item first.
      if (stored && operation !== "PutItem") {
        const now = (await read(body["Key"])).data["Item"];
        if (changes(stored, now).length) {
          setNewer(now ?? "deleted");
          return;
        }
      }
      await dynamodb(operation, {
        TableName: table.name,
        ...body,
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      });
      onChanged();
    } catch (failure) {
      if (failure instanceof RequestError && failure.code === "ConditionalCheckFailedException") {
        if (operation !== "PutItem") setNewer(failure.body["Item"] ?? "deleted");
        else setError(new Error("There is an item with this key already: nothing was written"));
      } else setError(failure);
    }
  };
  const insert = () => write("PutItem", () => ({ Item: parseItem(text), ...absent(table) }));
  const update = (/** @type {Item} */ before) =>
    write("UpdateItem", () => {
      const next = parseItem(text);
      if (canonical(keyOf(before, table.keys)) !== canonical(keyOf(next, table.keys))) {
        throw new Error("The key of an item can't change: duplicate the item instead");
      }
      return updateOf(before, next, table.keys);
    });
  const remove = (/** @type {Item} */ before) =>
    write("DeleteItem", () => ({ Key: keyOf(before, table.keys), ...unchanged(before, table.keys) }));
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
      <button type="button" class="danger" onClick=${() => stored && remove(stored)}>Delete the item</button>
      <button type="button" onClick=${() => setAsks(false)}>Keep it</button>
    </div>`}
    ${isEditable &&
    html`<div class="row">
      ${stored &&
      html`<button type="button" class="danger" onClick=${() => setAsks(true)}>Delete</button>
        <button type="button" onClick=${insert}>Save as a new item</button>`}
      <span class="spacer"></span>
      <button
        type="button"
        class="main"
        disabled=${isLoading || (item !== null && !stored)}
        onClick=${() => (stored ? update(stored) : insert())}
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
