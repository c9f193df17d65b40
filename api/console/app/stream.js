// The stream of a table: its shards as a tree, and the changes as they arrive.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { RequestError, dynamodb } from "./api.js";
import { plural, time } from "./format.js";
import { Difference } from "./item_dialog.js";
import { link } from "./route.js";
import { Badge, Choice, Empty, Input, Problem, Recording, useLoaded, useRepeated } from "./ui.js";
import { shown } from "./values.js";

/** @typedef {import("./api.js").Json} Json */
/**
 * @typedef {{
 *   id: string, kind: string, at: number, key: import("./values.js").Item,
 *   before: import("./values.js").Item | null, after: import("./values.js").Item | null,
 *   hasImages: boolean, isExpiry: boolean, shard: string, number: string,
 * }} Change
 */
/** @typedef {{kind: string, origin: string, text: string}} Filter */

const KEPT_CHANGES = 500;
const SHOWN_CHANGES = 100;
const POLL_SECONDS = 1;
const SHARDS_SECONDS = 5;
const RECORDS = 1000;

/**
 * @param {Json} record
 * @param {string} shard
 * @returns {Change}
 */
function changeOf(record, shard) {
  const content = record["dynamodb"];
  const identity = record["userIdentity"];
  return {
    id: record["eventID"],
    kind: record["eventName"],
    at: content["ApproximateCreationDateTime"],
    key: content["Keys"],
    before: content["OldImage"] ?? null,
    after: content["NewImage"] ?? null,
    hasImages: "OldImage" in content || "NewImage" in content,
    isExpiry: identity?.["PrincipalId"] === "dynamodb.amazonaws.com",
    shard,
    number: content["SequenceNumber"],
  };
}

/** @param {string} arn */
async function shardsOf(arn) {
  /** @type {Json[]} */
  const shards = [];
  let start = "";
  do {
    const { data } = await dynamodb("DescribeStream", {
      StreamArn: arn,
      ...(start && { ExclusiveStartShardId: start }),
    });
    shards.push(...data["StreamDescription"]["Shards"]);
    start = data["StreamDescription"]["LastEvaluatedShardId"] ?? "";
  } while (start);
  return shards;
}

/** @param {Json} shard */
const isClosed = (shard) => "EndingSequenceNumber" in shard["SequenceNumberRange"];

/**
 * @param {Change} change
 * @param {Filter} filter
 */
function matches(change, { kind, origin, text }) {
  const content = () => JSON.stringify([change.key, change.before, change.after]).toLowerCase();
  return (
    (!kind || change.kind === kind) &&
    (!origin || change.isExpiry === (origin === "expiry")) &&
    (!text || content().includes(text.toLowerCase()))
  );
}

/**
 * Reads the changes of all shards, again and again, and keeps the latest of those that match. Another
 * filter starts with the oldest changes again, because the stream may still have changes that were
 * not kept.
 * @param {string} arn
 * @param {Json[] | null} shards
 * @param {string} start TRIM_HORIZON for the oldest changes, LATEST for those from now on
 * @param {Filter} filter
 * @param {boolean} isPaused
 */
function useChanges(arn, shards, start, filter, isPaused) {
  const [changes, setChanges] = useState(/** @type {() => Change[]} */ (() => []));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  // By shard: the next iterator; null at the end of a closed shard.
  const iterators = useRef(/** @type {Map<string, string | null>} */ (new Map()));
  // By shard: the sequence number of the last change that was read.
  const numbers = useRef(/** @type {Map<string, string>} */ (new Map()));
  const isBusy = useRef(false);
  const started = useRef("");
  const wanted = JSON.stringify(start === "LATEST" ? [start] : [start, filter]);
  const read = async () => {
    if (isBusy.current || isPaused || !shards) return;
    isBusy.current = true;
    try {
      const isRestart = started.current !== wanted;
      if (isRestart) {
        iterators.current.clear();
        numbers.current.clear();
        // Later shards are read from their beginning, because they continue these.
        for (const shard of start === "LATEST" ? shards : []) {
          const id = shard["ShardId"];
          iterators.current.set(id, isClosed(shard) ? null : await iteratorOf(arn, id, start));
        }
      }
      const pages = await Promise.all(
        shards.map(async (shard) => {
          const id = shard["ShardId"];
          let iterator = iterators.current.get(id);
          if (iterator === null) return null;
          iterator ??= await iteratorOf(arn, id, "TRIM_HORIZON", numbers.current.get(id));
          const { data } = await dynamodb("GetRecords", {
            ShardIterator: iterator,
            Limit: RECORDS,
          });
          return { id, next: data["NextShardIterator"] ?? null, records: data["Records"] };
        }),
      );
      // If one of the requests has failed, all shards are read again from the same places.
      const found = pages.flatMap((page) => {
        if (!page) return [];
        iterators.current.set(page.id, page.next);
        const last = page.records.at(-1);
        if (last) numbers.current.set(page.id, last["dynamodb"]["SequenceNumber"]);
        return page.records
          .map((/** @type {Json} */ each) => changeOf(each, page.id))
          .filter((/** @type {Change} */ change) => matches(change, filter));
      });
      started.current = wanted;
      if (isRestart || found.length) {
        found.sort((a, b) => b.at - a.at || (BigInt(b.number) > BigInt(a.number) ? 1 : -1));
        setChanges((before) => [...found, ...(isRestart ? [] : before)].slice(0, KEPT_CHANGES));
      }
      setError(null);
    } catch (failure) {
      const code = failure instanceof RequestError ? failure.code : "";
      if (code === "ExpiredIteratorException") {
        // An iterator expires after 15 minutes in a hidden or paused page. Continue after the last
        // change that was read; a shard without one starts with its oldest change, so none is lost.
        for (const [id, iterator] of iterators.current) {
          if (iterator) iterators.current.delete(id);
        }
      } else if (code === "TrimmedDataAccessException") {
        started.current = "";
      } else setError(failure);
    }
    isBusy.current = false;
  };
  useEffect(() => {
    read();
  }, [shards, wanted]);
  useRepeated(read, POLL_SECONDS);
  return { changes, error, clear: () => setChanges([]) };
}

/**
 * @param {string} arn
 * @param {string} id
 * @param {string} start the type of the iterator, unless it starts after a sequence number
 * @param {string} [after]
 * @returns {Promise<string>}
 */
async function iteratorOf(arn, id, start, after) {
  const { data } = await dynamodb("GetShardIterator", {
    StreamArn: arn,
    ShardId: id,
    ...(after
      ? { ShardIteratorType: "AFTER_SEQUENCE_NUMBER", SequenceNumber: after }
      : { ShardIteratorType: start }),
  });
  return data["ShardIterator"];
}

/** @param {{table: import("./table_page.js").TableFacts}} properties */
export function Stream({ table }) {
  const arn = table.description["LatestStreamArn"];
  if (!arn) {
    return html`<${Empty} title="The table has no stream">
      <p>
        Switch one on in the <a href=${link(["table", table.name, "definition"])}>definition</a>.
        It shows each change of an item, with the item before and after it.
      </p>
    <//>`;
  }
  return html`<${Tail} arn=${arn} table=${table} />`;
}

/** @param {{arn: string, table: import("./table_page.js").TableFacts}} properties */
function Tail({ arn, table }) {
  const [isPaused, setPaused] = useState(false);
  const [kind, setKind] = useState("");
  const [origin, setOrigin] = useState("");
  const [text, setText] = useState("");
  const { data: shards, error: shardError, reload } = useLoaded(() => shardsOf(arn), [arn]);
  useRepeated(reload, SHARDS_SECONDS);
  const [start, setStart] = useState("TRIM_HORIZON");
  const filter = { kind, origin, text };
  const { changes, error, clear } = useChanges(arn, shards, start, filter, isPaused);
  const visible = changes.filter((change) => matches(change, filter));
  return html`<${Problem} error=${error ?? shardError} />
    <div class="panel">
      <div class="row">
        <${Input}
          label="Text in key or item"
          type="search"
          value=${text}
          onInput=${setText}
        />
        <${Choice}
          label="Start"
          value=${start}
          options=${[
            ["TRIM_HORIZON", "oldest change"],
            ["LATEST", "now"],
          ]}
          onChange=${setStart}
        />
        <${Choice}
          label="Change"
          value=${kind}
          options=${[["", "all"], "INSERT", "MODIFY", "REMOVE"]}
          onChange=${setKind}
        />
        <${Choice}
          label="Made by"
          value=${origin}
          options=${[
            ["", "all"],
            ["user", "a user"],
            ["expiry", "time to live"],
          ]}
          onChange=${setOrigin}
        />
        <${Recording} isPaused=${isPaused} onPause=${setPaused} onClear=${clear} />
      </div>
    </div>
    <p role="status" class="hint">
      ${plural(visible.length, "change")}, the latest first.
      ${visible.length > SHOWN_CHANGES ? ` The first ${SHOWN_CHANGES} are shown.` : ""}
    </p>
    ${visible.length
      ? html`<ol class="changes">
          ${visible
            .slice(0, SHOWN_CHANGES)
            .map((change) => html`<${ChangeLine} key=${change.id} table=${table.name} change=${change} />`)}
        </ol>`
      : html`<${Empty} title=${changes.length ? "No change matches" : "No changes yet"}>
          <p>Changes of ${table.name} appear here within a second.</p>
        <//>`}
    <details class="after">
      <summary>${plural(shards?.length ?? 0, "shard")}, as a tree</summary>
      <${Shards} shards=${shards ?? []} />
    </details>`;
}

const NAMES = /** @type {Record<string, string>} */ ({
  INSERT: "inserted",
  MODIFY: "modified",
  REMOVE: "removed",
});

/** @param {{table: string, change: Change}} properties */
function ChangeLine({ table, change }) {
  const key = Object.values(change.key).map(shown).join(" · ");
  return html`<li class=${`change ${change.kind.toLowerCase()}`}>
    <details>
      <summary>
        <span class="change-kind">${NAMES[change.kind] ?? change.kind}</span>
        <code>${key}</code>
        ${change.isExpiry
          ? html`<${Badge} state="time to live" />`
          : html`<span class="hint">by a user</span>`}
        <time class="hint">${time(change.at)}</time>
      </summary>
      ${change.hasImages
        ? html`<${Difference} before=${change.before} after=${change.after} />`
        : html`<p class="hint">The view type of this stream has no images.</p>`}
      <p class="hint">
        Sequence number ${change.number}, shard ${change.shard}.${" "}
        <a href=${link(["table", table, "recovery"], { at: String(Math.floor(change.at) - 1) })}
          >The table before this change</a
        >
      </p>
    </details>
  </li>`;
}

/** @param {{shards: Json[]}} properties */
function Shards({ shards }) {
  const ids = new Set(shards.map((shard) => shard["ShardId"]));
  const roots = shards.filter((shard) => !ids.has(shard["ParentShardId"]));
  return html`<${Branch} shards=${shards} roots=${roots} />`;
}

/**
 * @param {{shards: Json[], roots: Json[]}} properties
 * @returns {import("./ui.js").VNode}
 */
function Branch({ shards, roots }) {
  return html`<ul class="tree">
    ${roots.map((shard) => {
      const id = shard["ShardId"];
      const children = shards.filter((each) => each["ParentShardId"] === id);
      return html`<li key=${id}>
        <code>${id}</code> <${Badge} state=${isClosed(shard) ? "closed" : "open"} />
        ${children.length > 0 && html`<${Branch} shards=${shards} roots=${children} />`}
      </li>`;
    })}
  </ul>`;
}
