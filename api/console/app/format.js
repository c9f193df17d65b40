// Numbers, sizes and times as text.

const numbers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
const KIB = 1024;

/** @param {number} value */
export const count = (value) => numbers.format(value);

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= KIB && unit < units.length - 1) {
    value /= KIB;
    unit += 1;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** @param {number} units */
export function rate(units) {
  if (!units) return "0";
  return units < 10 ? units.toFixed(1) : numbers.format(Math.round(units));
}

/** @param {number | null | undefined} seconds */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return seconds < 0.001 ? "0 s" : `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** @param {number} epochSeconds */
export const time = (epochSeconds) =>
  new Date(epochSeconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";

/** @param {number} epochSeconds */
export const localTime = (epochSeconds) => new Date(epochSeconds * 1000).toLocaleString("en-US");

/**
 * @param {number} number
 * @param {string} noun
 * @param {string} [plural]
 */
export const plural = (number, noun, plural) =>
  `${count(number)} ${number === 1 ? noun : (plural ?? `${noun}s`)}`;
