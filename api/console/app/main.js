// The frame of all pages: navigation, the view of the address, and the sign-in.

import { html, render, useEffect, useState } from "../vendor/preact.js";
import { admin, place, token } from "./api.js";
import { currentRoute, link } from "./route.js";
import { Choice, Input, Problem } from "./ui.js";
import { Nodes } from "./nodes.js";
import { PartiQL } from "./partiql.js";
import { Requests } from "./requests.js";
import { NewTable } from "./table_form.js";
import { Tables } from "./tables.js";
import { TablePage } from "./table_page.js";
import { TimePage } from "./time_page.js";

/**
 * @typedef {{
 *   version: string, endpoint: string, region: string, regions: string[],
 *   access_key_ids: string[], is_read_only: boolean, has_session: boolean,
 *   has_virtual_clock: boolean, allows_faults: boolean, allows_reset: boolean,
 *   has_nodes: boolean,
 * }} Server
 */

/** @param {{server: Server, route: import("./route.js").Route}} properties */
function View({ server, route }) {
  const [page = "tables", name = ""] = route.path;
  switch (page) {
    case "table":
      return html`<${TablePage} key=${name} server=${server} route=${route} />`;
    case "partiql":
      return html`<${PartiQL} server=${server} query=${route.query} />`;
    case "requests":
      return html`<${Requests} query=${route.query} />`;
    case "time":
      return html`<${TimePage} server=${server} />`;
    case "nodes":
      return html`<${Nodes} />`;
    case "new":
      return html`<${NewTable} server=${server} query=${route.query} />`;
    default:
      return html`<${Tables} server=${server} />`;
  }
}

const PAGES = /** @type {const} */ ([
  ["tables", "Tables"],
  ["partiql", "PartiQL"],
  ["requests", "Requests"],
  ["time", "Time and faults"],
  ["nodes", "Nodes"],
]);

const THEMES = /** @type {const} */ (["auto", "light", "dark"]);

function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem("dynactor-theme") ?? "auto");
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
    localStorage.setItem("dynactor-theme", theme);
  }, [theme]);
  return html`<${Choice}
    label="Colors"
    hidden=${true}
    value=${theme}
    onChange=${setTheme}
    options=${THEMES}
  />`;
}

/** @param {{server: Server, onPlace: () => void}} properties */
function Place({ server, onPlace }) {
  if (!server.regions.length) return html`<span class="place">${server.region}</span>`;
  const choose = (/** @type {string} */ region) => {
    place.region = region;
    place.keyId ||= server.access_key_ids[0] ?? "";
    onPlace();
  };
  const chooseKey = (/** @type {string} */ keyId) => {
    place.region ||= server.region;
    place.keyId = keyId;
    onPlace();
  };
  return html`<${Choice}
      label="Region"
      hidden=${true}
      value=${place.region || server.region}
      options=${server.regions}
      onChange=${choose}
    />
    ${server.access_key_ids.length > 0 &&
    html`<${Choice}
      label="Access key"
      hidden=${true}
      value=${place.keyId}
      options=${server.access_key_ids}
      onChange=${chooseKey}
    />`}`;
}

function Console() {
  const [route, setRoute] = useState(currentRoute);
  const [server, setServer] = useState(/** @type {Server | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const follow = () => setRoute(currentRoute());
    addEventListener("hashchange", follow);
    admin("/console/server").then((given) => {
      // Tables of a region and an access key can't be shared, so choose one of them.
      if (given.access_key_ids.length) {
        place.region = given.region;
        place.keyId = given.access_key_ids[0];
      }
      setServer(given);
    }, setError);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    document.title = [...route.path.slice(1).reverse(), "dynactor"].join(" · ");
  }, [route]);
  if (!server) return html`<main><${Problem} error=${error} /></main>`;
  const active = route.path[0] ?? "tables";
  const signOut = async () => {
    await admin("/console/sign-out", { method: "POST" });
    location.reload();
  };
  return html`<a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href=${link(["tables"])}>
        <img src="/console/app/icon.svg" alt="" width="24" height="24" /> dynactor
      </a>
      <nav aria-label="Pages">
        ${PAGES.filter(([page]) => page !== "nodes" || server.has_nodes).map(
          ([page, title]) =>
            html`<a
              key=${page}
              href=${link([page])}
              aria-current=${active === page || (page === "tables" && active === "table")
                ? "page"
                : undefined}
              >${title}</a
            >`,
        )}
      </nav>
      <div class="top-end">
        ${server.is_read_only && html`<span class="badge busy">read-only</span>`}
        <${Place} server=${server} onPlace=${() => setTurn(turn + 1)} />
        <${Theme} />
        ${server.has_session &&
        html`<button type="button" class="small" onClick=${signOut}>Sign out</button>`}
      </div>
    </header>
    <main id="content" tabindex="-1" key=${turn}>
      <${View} server=${server} route=${route} />
    </main>
    <footer>
      <span>dynactor ${server.version}</span> <span>API at ${server.endpoint}</span>
    </footer>`;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function SignIn() {
  const [secret, setSecret] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await admin("/console/sign-in", { method: "POST", body: { secret } });
      location.reload();
    } catch (failure) {
      setError(failure);
    }
  };
  return html`<main class="sign-in">
    <form onSubmit=${submit}>
      <h1><img src="/console/app/icon.svg" alt="" width="32" height="32" /> dynactor</h1>
      <${Input}
        label="Secret"
        hint="The content of the file of --admin-secret-file"
        type="password"
        value=${secret}
        onInput=${setSecret}
        required=${true}
      />
      <${Problem} error=${error} />
      <button class="main">Sign in</button>
    </form>
  </main>`;
}

document.documentElement.dataset["theme"] = localStorage.getItem("dynactor-theme") ?? "auto";
const root = document.getElementById("page");
if (root) {
  root.replaceChildren();
  render(token ? html`<${Console} />` : html`<${SignIn} />`, root);
}
