// The address of a view: everything after # can be sent, reloaded and reached by the back button.

/** @typedef {{path: string[], query: Record<string, string>}} Route */

/** @returns {Route} */
export function currentRoute() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {
    path: (path ?? "").split("/").filter(Boolean).map(decodeURIComponent),
    query: Object.fromEntries(new URLSearchParams(query ?? "")),
  };
}

/**
 * @param {readonly string[]} path
 * @param {Record<string, string>} [query] empty values are left out
 */
export function link(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

/**
 * @param {readonly string[]} path
 * @param {Record<string, string>} [query]
 */
export function go(path, query = {}) {
  location.hash = link(path, query);
}
