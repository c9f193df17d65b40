// Statements of PartiQL, with completion of names.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { dynamodb } from "./api.js";
import { awsCli } from "./command_lines.js";
import { Explanation } from "./explanation.js";
import { plural } from "./format.js";
import { columnsOf } from "./items.js";
import { go } from "./route.js";
import { Code, DataTable, Empty, Problem, Value } from "./ui.js";
import { useOverview } from "./tables.js";

/** @typedef {import("./values.js").Item} Item */

const WORDS = [
  ...["SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "BETWEEN", "IN", "ORDER BY", "DESC", "IS"],
  ...["MISSING", "NULL", "INSERT INTO", "VALUE", "UPDATE", "SET", "REMOVE", "DELETE FROM"],
  ...["RETURNING ALL OLD *", "begins_with", "contains", "attribute_type", "size"],
];
const SAVED = "dynactor-statements";
const MOST_SUGGESTIONS = 8;
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
  const names = useMemo(() => namesOf(overview), [overview?.tables.length]);
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
      <${Editor} text=${text} names=${names} onInput=${setText} onRun=${() => run(undefined)} />
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

/** @param {import("./tables.js").Overview | null} overview */
function namesOf(overview) {
  const tables = overview?.tables ?? [];
  return [
    ...tables.map((table) => `"${table.name}"`),
    ...tables.flatMap((table) => table.indexes.map((each) => `"${table.name}"."${each.name}"`)),
    ...new Set(tables.flatMap((table) => Object.keys(table.attributes))),
    ...WORDS,
  ];
}

/**
 * @param {{
 *   text: string, names: string[], onInput: (text: string) => void, onRun: () => void,
 * }} properties
 */
function Editor({ text, names, onInput, onRun }) {
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [place, setPlace] = useState(text.length);
  const word = /"?[\w.-]*$/.exec(text.slice(0, place))?.[0] ?? "";
  const plain = word.replaceAll('"', "").toLowerCase();
  const suggestions = plain
    ? names
        .filter((name) => {
          const known = name.replaceAll('"', "").toLowerCase();
          return known.startsWith(plain) && known !== plain;
        })
        .slice(0, MOST_SUGGESTIONS)
    : [];
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
  const columns = columnsOf(items, []);
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
