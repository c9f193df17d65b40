// Statements of PartiQL, with completion of names.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { admin, dynamodb } from "./api.js";
import { awsCli } from "./command_lines.js";
import { completion, tableIn } from "./completion.js";
import { Explanation } from "./explanation.js";
import { plural } from "./format.js";
import { go } from "./route.js";
import { Code, DataTable, Empty, Problem, Value, useLoaded } from "./ui.js";
import { useOverview } from "./tables.js";
import { attributesOf } from "./values.js";

/** @typedef {import("./values.js").Item} Item */

const SAVED = "dynactor-statements";
const SAMPLED_ITEMS = 20;
const LIMIT = 50;

/** @param {{server: import("./main.js").Server, query: Record<string, string>}} properties */
export function PartiQL({ server, query }) {
  const given = query["statement"] ?? "";
  const { overview } = useOverview();
  const [text, setText] = useState(given);
  const [answer, setAnswer] = useState(
    /** @type {import("./api.js").Answer | null} */ (null),
  );
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [isRunning, setRunning] = useState(false);
  const [saved, setSaved] = useState(/** @type {() => string[]} */ (readSaved));
  const [showsCode, setShowsCode] = useState(false);
  useEffect(() => setText(given), [given]);
  const body = { Statement: text, Limit: LIMIT, ReturnConsumedCapacity: "INDEXES" };
  const run = async (/** @type {string | undefined} */ next) => {
    if (!text.trim()) return;
    if (text !== given) go(["partiql"], { statement: text });
    setRunning(true);
    setError(null);
    try {
      const page = next ? { ...body, NextToken: next } : body;
      setAnswer(await dynamodb("ExecuteStatement", page, { explain: true }));
    } catch (failure) {
      setAnswer(null);
      setError(failure);
    }
    setRunning(false);
  };
  const keep = (/** @type {string[]} */ statements) => {
    localStorage.setItem(SAVED, JSON.stringify(statements));
    setSaved(statements);
  };
  return html`<h1>PartiQL</h1>
    <form
      class="panel"
      aria-label="Statement"
      onSubmit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        run(undefined);
      }}
    >
      <${Editor} text=${text} tables=${overview?.tables ?? []} onInput=${setText} onRun=${() => run(undefined)} />
      <div class="row">
        <button class="main" disabled=${isRunning}>Run</button>
        <button type="button" onClick=${() => keep([text, ...saved.filter((each) => each !== text)])}>
          Save the statement
        </button>
        <button type="button" aria-expanded=${showsCode} onClick=${() => setShowsCode(!showsCode)}>
          Code
        </button>
      </div>
      ${showsCode &&
      html`<${Code} label="AWS CLI" text=${awsCli("ExecuteStatement", body, server.endpoint)} />`}
      ${saved.length > 0 &&
      html`<details>
        <summary>${plural(saved.length, "saved statement")}</summary>
        <ul class="plain-list saved">
          ${saved.map(
            (statement) =>
              html`<li key=${statement}>
                <button type="button" class="link" onClick=${() => setText(statement)}>
                  ${statement}
                </button>
                <button
                  type="button"
                  class="small"
                  aria-label=${`Forget ${statement}`}
                  onClick=${() => keep(saved.filter((each) => each !== statement))}
                >
                  Forget
                </button>
              </li>`,
          )}
        </ul>
      </details>`}
    </form>
    <${Problem} error=${error} />
    ${answer && html`<${Results} answer=${answer} onNext=${run} />`}`;
}

/** @returns {string[]} */
function readSaved() {
  try {
    return JSON.parse(localStorage.getItem(SAVED) ?? "[]");
  } catch {
    return [];
  }
}

/**
 * The names of the attributes in some items of a table. To read these items consumes no units.
 * @param {string} name empty without a table
 */
function useAttributes(name) {
  const { data } = useLoaded(
    async (signal) => {
      if (!name) return [];
      const query = new URLSearchParams({ table: name, count: String(SAMPLED_ITEMS) });
      const { items } = await admin(`/insights/sample?${query}`, { signal });
      return attributesOf(items, []);
    },
    [name],
  );
  return data ?? [];
}

/**
 * @param {{
 *   text: string, tables: import("./tables.js").TableOverview[],
 *   onInput: (text: string) => void, onRun: () => void,
 * }} properties
 */
function Editor({ text, tables, onInput, onRun }) {
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [place, setPlace] = useState(text.length);
  const table = tableIn(text, tables);
  const sampled = useAttributes(table);
  const declared = Object.keys(tables.find((each) => each.name === table)?.attributes ?? {});
  const attributes = [...new Set([...declared, ...sampled])];
  const { word, suggestions } = completion(text.slice(0, place), tables, attributes);
  const complete = (/** @type {string} */ name) => {
    const before = text.slice(0, place - word.length) + name;
    onInput(before + text.slice(place));
    setPlace(before.length);
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(before.length, before.length);
    });
  };
  const follow = () => setPlace(area.current?.selectionStart ?? 0);
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey && event.key === "Enter") {
      event.preventDefault();
      onRun();
    }
    if (event.ctrlKey && event.key === " " && suggestions[0]) {
      event.preventDefault();
      complete(suggestions[0]);
    }
  };
  return html`<label class="field">
      <span class="label">Statement</span>
      <textarea
        ref=${area}
        class="code-input wraps"
        rows="5"
        spellcheck=${false}
        placeholder=${'SELECT * FROM "table" WHERE key = \'value\''}
        value=${text}
        onKeyDown=${press}
        onKeyUp=${follow}
        onClick=${follow}
        onInput=${(/** @type {any} */ event) => {
          onInput(event.target.value);
          follow();
        }}
      ></textarea>
    </label>
    <div class="suggestions" aria-live="polite">
      ${suggestions.map(
        (name) =>
          html`<button type="button" class="small" key=${name} onClick=${() => complete(name)}>
            ${name}
          </button>`,
      )}
      <span class="hint">
        ${suggestions.length ? "Ctrl + Space takes the first name. " : ""}Ctrl + Enter runs.
      </span>
    </div>`;
}

/**
 * @param {{
 *   answer: import("./api.js").Answer, onNext: (token: string) => void,
 * }} properties
 */
function Results({ answer, onNext }) {
  const items = /** @type {Item[]} */ (answer.data["Items"] ?? []);
  const columns = attributesOf(items, []);
  const next = answer.data["NextToken"];
  return html`<section aria-label="Result">
    <p role="status">${plural(items.length, "item")}, ${Math.round(answer.milliseconds)} ms</p>
    <${Explanation} explanation=${answer.explanation} />
    ${items.length
      ? html`<${DataTable}
          label="Table of the items"
          kind="list items"
          columns=${columns}
        >
          ${items.map(
            (item, at) =>
              html`<tr key=${at}>
                ${columns.map(
                  (name) => html`<td key=${name}><${Value} value=${item[name]} /></td>`,
                )}
              </tr>`,
          )}
        <//>`
      : html`<${Empty} title="Done, without items" />`}
    ${next &&
    html`<div class="row pages">
      <button type="button" onClick=${() => onNext(next)}>Next page</button>
    </div>`}
  </section>`;
}
