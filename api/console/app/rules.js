// The rules of DynamoDB that advice and explanations name, each with its page of AWS's documentation.

import { html, useState } from "../vendor/preact.js";
import { admin } from "./api.js";
import { Problem, useLoaded } from "./ui.js";

/** @typedef {Record<string, {text: string, title: string, url: string}>} RuleTexts */

/** @param {{rules: readonly string[]}} properties */
export function Rules({ rules }) {
  const [isOpen, setOpen] = useState(false);
  if (!rules.length) return null;
  const follow = (/** @type {any} */ event) => setOpen(event.currentTarget.open);
  return html`<details class="rules" onToggle=${follow}>
    <summary>${rules.length === 1 ? "Rule" : "Rules"} ${rules.join(", ")}</summary>
    ${isOpen && html`<${Texts} rules=${rules} />`}
  </details>`;
}

/** @param {{rules: readonly string[]}} properties */
function Texts({ rules }) {
  const { data, error } = useLoaded(
    /** @type {(signal: AbortSignal) => Promise<RuleTexts>} */ (
      (signal) => admin("/console/app/rules.json", { signal })
    ),
    [],
  );
  return html`<${Problem} error=${error} />
    <ul>
      ${data &&
      rules.map((rule) => {
        const known = data[rule];
        return html`<li key=${rule}>
          <strong>${rule}</strong> ${known?.text}${" "}
          ${known && html`<a href=${known.url} rel="noreferrer">${known.title}</a>`}
        </li>`;
      })}
    </ul>`;
}
