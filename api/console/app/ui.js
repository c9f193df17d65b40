// The parts that several pages use.

import { html, useCallback, useEffect, useRef, useState } from "../vendor/preact.js";
import { RequestError } from "./api.js";
import { TYPES, cut, typeOf } from "./values.js";

/** @typedef {import("../vendor/preact.js").Child} Child */
/** @typedef {import("../vendor/preact.js").VNode} VNode */

/**
 * Load data when the inputs change. The data stays when the repetition of a load has failed.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {readonly unknown[]} inputs
 * @returns {{data: T | null, error: unknown, isLoading: boolean, reload: () => void}}
 */
export function useLoaded(load, inputs) {
  const [state, setState] = useState(
    /** @type {() => {data: T | null, error: unknown, isLoading: boolean}} */ (
      () => ({ data: null, error: null, isLoading: true })
    ),
  );
  const [turn, setTurn] = useState(0);
  // The inputs of the data.
  const loaded = useRef(/** @type {readonly unknown[] | null} */ (null));
  useEffect(() => {
    const abort = new AbortController();
    const succeed = (/** @type {T} */ data) => {
      loaded.current = inputs;
      setState({ data, error: null, isLoading: false });
    };
    const fail = (/** @type {unknown} */ error) => {
      const isRepeated = loaded.current?.every((input, at) => input === inputs[at]);
      setState(({ data }) => ({ data: isRepeated ? data : null, error, isLoading: false }));
    };
    setState((before) => ({ ...before, isLoading: true }));
    load(abort.signal).then(
      (data) => abort.signal.aborted || succeed(data),
      (error) => abort.signal.aborted || fail(error),
    );
    return () => abort.abort();
  }, [...inputs, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  return { ...state, reload };
}

/**
 * Repeat work while the page is visible.
 * @param {() => void} work
 * @param {number} seconds
 */
export function useRepeated(work, seconds) {
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || latest.current(), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
}

/**
 * Long work that a button starts. It ends soon after `signal` aborts: by `stop`, or because its view
 * is closed.
 * @param {(signal: AbortSignal) => Promise<void>} work
 */
export function useRun(work) {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const abort = useRef(/** @type {AbortController | null} */ (null));
  const stop = () => abort.current?.abort();
  useEffect(() => stop, []);
  const run = async () => {
    abort.current = new AbortController();
    setRunning(true);
    setError(null);
    try {
      await work(abort.current.signal);
    } catch (failure) {
      setError(failure);
    }
    setRunning(false);
  };
  return { run, stop, isRunning, error };
}

/**
 * Let the browser save a file.
 * @param {string} name
 * @param {string[]} parts
 */
export function saveFile(name, parts) {
  const address = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(address);
}

/** @param {{error: unknown}} properties */
export function Problem({ error }) {
  if (!error) return null;
  const code = error instanceof RequestError ? error.code : "";
  const message = error instanceof Error ? error.message : String(error);
  return html`<div class="problem" role="alert">
    ${code && html`<strong>${code}</strong>`} <span>${message}</span>
  </div>`;
}

/** @param {{title: string, children?: Child}} properties */
export function Empty({ title, children }) {
  return html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${children}
  </div>`;
}

const GOOD = ["ACTIVE", "OK", "ENABLED", "PUBLISHING", "AVAILABLE"];
const OFF = ["DISABLED", "off", "fact", "closed"];
const BAD = ["BROKEN", "ENABLE_FAILED", "DELETING", "problem"];

/** @param {{state: string, note?: string}} properties */
export function Badge({ state, note = "" }) {
  const kinds = { good: GOOD, bad: BAD, off: OFF };
  const kind = Object.entries(kinds).find(([, states]) => states.includes(state))?.[0] ?? "busy";
  return html`<span class="badge ${kind}">${state}${note && ` ${note}`}</span>`;
}

/** @param {{value: import("./values.js").AttributeValue | null | undefined}} properties */
export function Value({ value }) {
  if (!value) return html`<span class="none" aria-label="no value">–</span>`;
  const type = typeOf(value);
  return html`<span class="value type-${type}">
    <abbr class="type" title=${TYPES[type] ?? type}>${type}</abbr><span>${cut(value)}</span>
  </span>`;
}

/**
 * A dialog over the page. Escape closes it, and the focus stays in it.
 * @param {{title: string, onClose: () => void, wide?: boolean, children?: Child}} properties
 */
export function Dialog({ title, onClose, wide = false, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog
    ref=${element}
    class=${wide ? "wide" : ""}
    aria-labelledby="dialog-title"
    onCancel=${cancel}
  >
    <header>
      <h2 id="dialog-title">${title}</h2>
      <button type="button" class="plain" aria-label="Close" onClick=${onClose}>✕</button>
    </header>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/** @param {{text: string, label?: string}} properties */
export function Copy({ text, label = "Copy" }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<button type="button" class="small" onClick=${copy}>
    ${isCopied ? "Copied" : label}
  </button>`;
}

/** @param {{text: string, label: string}} properties */
export function Code({ text, label }) {
  return html`<figure class="code">
    <figcaption>${label} <${Copy} text=${text} /></figcaption>
    <pre tabindex="0" role="region" aria-label=${label}>${text}</pre>
  </figure>`;
}

/** @param {{label: string, hint?: string, children?: Child}} properties */
export function Field({ label, hint = "", children }) {
  return html`<label class="field">
    <span class="label">${label}</span>
    ${children} ${hint && html`<span class="hint">${hint}</span>`}
  </label>`;
}

/**
 * @param {{
 *   label: string, value: string, onChange: (value: string) => void,
 *   options: readonly (string | readonly [string, string])[], hidden?: boolean,
 * }} properties
 */
export function Choice({ label, value, options, onChange, hidden = false }) {
  const select = html`<select
    aria-label=${hidden ? label : undefined}
    value=${value}
    onChange=${(/** @type {any} */ event) => onChange(event.target.value)}
  >
    ${options.map((option) => {
      const [key, text] = typeof option === "string" ? [option, option] : option;
      return html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`;
    })}
  </select>`;
  return hidden ? select : html`<${Field} label=${label}>${select}<//>`;
}

/**
 * @param {{
 *   label: string, value: string, onInput: (value: string) => void, hidden?: boolean,
 *   placeholder?: string, hint?: string, type?: string, list?: string, required?: boolean, size?: number,
 * }} properties
 */
export function Input(properties) {
  const { label, value, onInput, hidden = false, hint = "", ...others } = properties;
  const input = html`<input
    ...${others}
    aria-label=${hidden ? label : undefined}
    value=${value}
    autocomplete="off"
    spellcheck=${false}
    onInput=${(/** @type {any} */ event) => onInput(event.target.value)}
  />`;
  return hidden ? input : html`<${Field} label=${label} hint=${hint}>${input}<//>`;
}

/**
 * A table that scrolls sideways. Each column is a title, a title with a class ("number", or "hidden"
 * for a column without a visible title), or a whole cell of the head.
 * @param {{
 *   label: string, columns: readonly (string | readonly [string, string] | VNode)[],
 *   kind?: string, children?: Child,
 * }} properties
 */
export function DataTable({ label, columns, kind = "list", children }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table class=${kind}>
      <thead>
        <tr>
          ${columns.map((column) => {
            if (typeof column === "string") return html`<th scope="col" key=${column}>${column}</th>`;
            if (!(column instanceof Array)) return column;
            const [title, style] = column;
            return style === "hidden"
              ? html`<th scope="col" key=${title}><span class="hidden">${title}</span></th>`
              : html`<th scope="col" key=${title} class=${style}>${title}</th>`;
          })}
        </tr>
      </thead>
      <tbody>
        ${children}
      </tbody>
    </table>
  </div>`;
}

/**
 * The buttons of a view that records what happens.
 * @param {{isPaused: boolean, onPause: (isPaused: boolean) => void, onClear: () => void}} properties
 */
export function Recording({ isPaused, onPause, onClear }) {
  return html`<span class="spacer"></span>
    <button type="button" onClick=${onClear}>Clear</button>
    <button type="button" aria-pressed=${isPaused} onClick=${() => onPause(!isPaused)}>
      ${isPaused ? "Continue" : "Pause"}
    </button>`;
}

/**
 * The buttons of a dialog with long work.
 * @param {{
 *   work: ReturnType<typeof useRun>, action: string, kind: string, isComplete: boolean,
 *   isReady?: boolean, onClose: () => void,
 * }} properties
 */
export function RunButtons({ work, action, kind, isComplete, isReady = true, onClose }) {
  return html`<div class="row">
    <span class="spacer"></span>
    ${work.isRunning
      ? html`<button type="button" onClick=${work.stop}>Stop</button>`
      : html`<button type="button" onClick=${onClose}>${isComplete ? "Close" : "Cancel"}</button>
          ${!isComplete &&
          html`<button type="button" class=${kind} disabled=${!isReady} onClick=${work.run}>
            ${action}
          </button>`}`}
  </div>`;
}
