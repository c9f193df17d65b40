// The virtual clock, injected faults and snapshots of a server for tests.

import { html, useState } from "../vendor/preact.js";
import { admin } from "./api.js";
import { count, localTime, plural, size, time } from "./format.js";
import { Choice, Code, DataTable, Empty, Input, Problem, useLoaded, useRepeated } from "./ui.js";
import { pretty } from "./values.js";

/** @typedef {import("./api.js").Json} Json */
/** @typedef {import("./main.js").Server} Server */

const CLOCK_SECONDS = 1;

/** @param {{server: Server}} properties */
export function TimePage({ server }) {
  return html`<h1>Time and faults</h1>
    <div class="grid wide-grid">
      <${Clock} server=${server} />
      <${Snapshots} server=${server} />
    </div>
    <${Faults} server=${server} />`;
}

const STEPS = /** @type {const} */ ([
  [60, "1 minute"],
  [3600, "1 hour"],
  [86400, "1 day"],
  [604800, "1 week"],
]);

/** @param {{server: Server}} properties */
function Clock({ server }) {
  const clock = useLoaded(
    (signal) => (server.has_virtual_clock ? admin("/clock", { signal }) : Promise.resolve(null)),
    [],
  );
  useRepeated(() => server.has_virtual_clock && clock.reload(), CLOCK_SECONDS);
  const [target, setTarget] = useState("");
  const [speed, setSpeed] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  if (!server.has_virtual_clock) {
    return html`<section class="panel" aria-label="Clock">
      <h2>Clock</h2>
      <p>This server uses real time. Start it with <code>--virtual-clock now</code> to set its clock.</p>
    </section>`;
  }
  const change = async (/** @type {string} */ path, /** @type {string} */ method, /** @type {Json} */ body) => {
    setError(null);
    try {
      await admin(path, { method, body });
      clock.reload();
    } catch (failure) {
      setError(failure);
    }
  };
  const set = (/** @type {Event} */ event) => {
    event.preventDefault();
    change("/clock", "PUT", {
      ...(target && { now: target }),
      ...(speed && { speed: Number(speed) }),
    });
  };
  const { data } = clock;
  return html`<section class="panel" aria-label="Clock">
    <h2>Clock</h2>
    ${data &&
    html`<p class="clock">
      <strong>${time(data.now)}</strong>
      <span class="sub">${localTime(data.now)} local time</span>
      <span class="sub">${data.speed ? `runs at ${count(data.speed)} × real time` : "stands still"}</span>
    </p>`}
    <${Problem} error=${error ?? clock.error} />
    ${!server.is_read_only &&
    html`<div class="row" role="group" aria-label="Step forward">
        ${STEPS.map(
          ([seconds, text]) =>
            html`<button
              type="button"
              key=${text}
              onClick=${() => change("/clock/step", "POST", { seconds })}
            >
              + ${text}
            </button>`,
        )}
      </div>
      <form class="row" onSubmit=${set} aria-label="Set the clock">
        <${Input}
          label="Time"
          placeholder="2027-01-01T00:00:00Z"
          value=${target}
          onInput=${setTarget}
        />
        <${Input} label="Speed, 0 stops" type="number" value=${speed} onInput=${setSpeed} />
        <button>Set</button>
      </form>
      <p class="hint">
        The clock only goes forward. Time to live, streams and backups follow it.
      </p>`}
  </section>`;
}

/** @param {{server: Server}} properties */
function Snapshots({ server }) {
  const list = useLoaded(
    (signal) => (server.allows_reset ? admin("/snapshots", { signal }) : Promise.resolve(null)),
    [],
  );
  const [name, setName] = useState("");
  const [asked, setAsked] = useState("");
  const [note, setNote] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  if (!server.allows_reset) {
    return html`<section class="panel" aria-label="Snapshots">
      <h2>Snapshots</h2>
      <p>
        Snapshots keep and restore all data of a test. Start the server with
        <code>--in-memory</code> or <code>--allow-reset</code>.
      </p>
    </section>`;
  }
  const change = async (
    /** @type {string} */ path,
    /** @type {string} */ method,
    /** @type {Json | undefined} */ body,
    done = "",
  ) => {
    setError(null);
    setAsked("");
    setNote("");
    try {
      await admin(path, { method, ...(body && { body }) });
      setNote(done);
      list.reload();
    } catch (failure) {
      setError(failure);
    }
  };
  const make = (/** @type {Event} */ event) => {
    event.preventDefault();
    change("/snapshots", "POST", { name });
  };
  const snapshots = /** @type {Json[]} */ (list.data?.["snapshots"] ?? []);
  return html`<section class="panel" aria-label="Snapshots">
    <h2>Snapshots</h2>
    <form class="row" onSubmit=${make} aria-label="Make a snapshot">
      <${Input} label="Name" required=${true} value=${name} onInput=${setName} />
      <button>Make a snapshot</button>
    </form>
    <${Problem} error=${error ?? list.error} />
    <p role="status">${note}</p>
    ${snapshots.length
      ? html`<ul class="plain-list snapshot-list">
          ${snapshots.map(
            (each) =>
              html`<li class="row" key=${each["name"]}>
                <span>${each["name"]} <span class="sub">${size(each["size_bytes"])}</span></span>
                <span class="spacer"></span>
                ${asked === each["name"]
                  ? html`<button
                        type="button"
                        class="small danger"
                        onClick=${() =>
                          change(
                            `/snapshots/${each["name"]}/restore`,
                            "POST",
                            {},
                            `The data is that of ${each["name"]} again.`,
                          )}
                      >
                        Replace all data
                      </button>
                      <button type="button" class="small" onClick=${() => setAsked("")}>
                        Cancel
                      </button>`
                  : html`<button
                        type="button"
                        class="small"
                        aria-label=${`Restore ${each["name"]}`}
                        onClick=${() => setAsked(each["name"])}
                      >
                        Restore
                      </button>
                      <button
                        type="button"
                        class="small danger"
                        aria-label=${`Delete ${each["name"]}`}
                        onClick=${() => change(`/snapshots/${each["name"]}`, "DELETE", undefined)}
                      >
                        Delete
                      </button>`}
              </li>`,
          )}
        </ul>`
      : html`<p class="hint">There are no snapshots.</p>`}
  </section>`;
}

const FAULTS = /** @type {const} */ ([
  ["throttling", "throttling error"],
  ["internal-server-error", "InternalServerError"],
  ["service-unavailable", "status 503"],
  ["transaction-conflict", "transaction conflict"],
  ["unprocessed", "unprocessed items of a batch"],
  ["limit-exceeded", "LimitExceededException of GetRecords"],
  ["expired-iterator", "expired iterator"],
  ["delay", "delay"],
  ["cut-before", "connection closed before the request is done"],
  ["cut-after", "connection closed after the request is done"],
  ["cut-middle", "connection closed in the middle of the answer"],
  ["wrong-crc32", "wrong checksum"],
]);

/** @param {{server: Server}} properties */
function Faults({ server }) {
  const rules = useLoaded(
    (signal) => (server.allows_faults ? admin("/faults", { signal }) : Promise.resolve(null)),
    [],
  );
  useRepeated(() => server.allows_faults && rules.reload(), 2);
  const [form, setForm] = useState({
    fault: "throttling",
    operation: "",
    table: "",
    share: "1",
    next: "",
    seconds: "1",
  });
  const [error, setError] = useState(/** @type {unknown} */ (null));
  if (!server.allows_faults) {
    return html`<section class="panel" aria-label="Faults">
      <h2>Faults</h2>
      <p>Start the server with <code>--allow-faults</code> to make some requests of clients fail.</p>
    </section>`;
  }
  const edit = (/** @type {string} */ name) => (/** @type {string} */ value) =>
    setForm({ ...form, [name]: value });
  const rule = {
    fault: form.fault,
    ...(form.operation && { operation: form.operation }),
    ...(form.table && { table: form.table }),
    ...(form.share !== "1" && { share: Number(form.share) }),
    ...(form.next && { next: Number(form.next) }),
    ...(form.fault === "delay" && { seconds: Number(form.seconds) }),
  };
  const send = async (/** @type {string} */ path, /** @type {string} */ method, /** @type {Json | undefined} */ body) => {
    setError(null);
    try {
      await admin(path, { method, ...(body && { body }) });
      rules.reload();
    } catch (failure) {
      setError(failure);
    }
  };
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    send("/faults", "POST", rule);
  };
  const known = /** @type {Json[]} */ (rules.data?.["rules"] ?? []);
  return html`<section class="panel" aria-label="Faults">
    <h2>Faults</h2>
    <form class="row" onSubmit=${add} aria-label="Add a fault">
      <${Choice} label="Fault" value=${form.fault} options=${FAULTS} onChange=${edit("fault")} />
      <${Input}
        label="Operation"
        placeholder="all"
        value=${form.operation}
        onInput=${edit("operation")}
      />
      <${Input} label="Table" placeholder="all" value=${form.table} onInput=${edit("table")} />
      <${Input} label="Share of requests, 0 to 1" value=${form.share} onInput=${edit("share")} />
      <${Input} label="Ends after" placeholder="never" value=${form.next} onInput=${edit("next")} />
      ${form.fault === "delay" &&
      html`<${Input} label="Seconds" value=${form.seconds} onInput=${edit("seconds")} />`}
      <button>Add</button>
    </form>
    <${Problem} error=${error ?? rules.error} />
    ${known.length
      ? html`<${DataTable}
          label="Rules"
          columns=${["Rule", ["Requests", "number"], ["Faults", "number"], ["Changes", "hidden"]]}
        >
          ${known.map(
            (each) =>
              html`<tr key=${each["id"]}>
                <td>${ruleText(each["rule"])}</td>
                <td class="number">${count(each["matched"])}</td>
                <td class="number">${count(each["injected"])}</td>
                <td>
                  <button
                    type="button"
                    class="small"
                    aria-label=${`Remove ${ruleText(each["rule"])}`}
                    onClick=${() => send(`/faults/${each["id"]}`, "DELETE", undefined)}
                  >
                    Remove
                  </button>
                </td>
              </tr>`,
          )}
        <//>`
      : html`<${Empty} title="No faults are injected" />`}
    <details>
      <summary>The rule as JSON, for POST /faults</summary>
      <${Code} label="Rule" text=${pretty(rule)} />
    </details>
  </section>`;
}

/** @param {Json} rule */
function ruleText(rule) {
  const name = FAULTS.find(([fault]) => fault === rule["fault"])?.[1] ?? rule["fault"];
  const operation = rule["operation"] ?? "all operations";
  const share = rule["share"] < 1 ? `, ${Math.round(rule["share"] * 100)} % of requests` : "";
  const next = rule["next"] ? `, ${plural(rule["next"], "time")}` : "";
  return `${name}: ${operation}${rule["table"] ? ` of ${rule["table"]}` : ""}${share}${next}`;
}
