/** The operations of the page: joins its parts, and shows the configuration without its secrets. */
import type { OperationsParts } from './board/operations.js';
import type { ConfigKey, EmbeddingNow } from './board/protocol-operations.js';
import type { Config } from './config.js';
import { configKeys } from './config-keys.js';
import { WELCOME } from './conversation/commands/owners.js';
import type { Conversation } from './conversation/conversation.js';
import { orAfter } from './core/clock.js';
import { ONCE } from './core/known-keys.js';
import { isSecretName } from './models/redact.js';
import { newestEntries } from './operating/audit-read.js';
import { createRedactor } from './operating/redact.js';
import type { Parts } from './parts.js';
import { hiddenInLogs, isSecretOption } from './secrets.js';
import { isListed, listedOwners } from './settings.js';

export function operationsPartsOf(parts: Parts, conversation: Conversation): OperationsParts {
  const { config, options, store, serving, labelOf, jobs, personas, zone, clock, audit, redact } = parts;
  const { keys, warnings, configFile, tail } = options;
  const { model, limits, dataDir } = config;
  const plain = (text: string) => ({ text, marks: [] });
  const isPriced = [model, ...model.choices, ...model.fallbacks].some(
    (each) => each.inputPrice !== undefined,
  );
  return {
    ...{ channels: serving, labelOf, feed: store, access: store, jobs, job: store.jobs, personas, audit },
    heldBy: parts.heldBy,
    isListed: (request) => isListed(config, request),
    listedOwners: listedOwners(config),
    welcome: { member: plain(WELCOME.member), owner: plain(WELCOME.owner) },
    wake: (chat) => conversation.takeUp({ commands: [], rooms: [], chats: [chat], alarms: [] }),
    embedding: () => embeddingNow(parts),
    embeddingLevel: () => (parts.embedder?.state().kind === 'failing' ? 'warn' : 'good'),
    usage: { zone, limits: dailyLimitsIn(limits), hasMoney: isPriced },
    auditEntries: (before, most) => newestEntries(dataDir, () => true, most, undefined, before),
    log: { ...tail, level: config.log.level },
    configuration: () => ({
      file: configFile,
      warnings: warnings.map(redact),
      keys: shownKeys(keys, config),
    }),
    redact,
    now: () => clock.now(),
  };
}

/** By their keys in config.yaml; money in millionths, as it is counted. */
function dailyLimitsIn(limits: Config['limits']): Record<string, number> {
  const found = Object.entries(limits).flatMap(([name, most]): [string, number][] => {
    const [, unit, scope] = /^(tokens|money)Per(\w+)$/.exec(name) ?? [];
    if (unit === undefined || scope === undefined || typeof most !== 'number') return [];
    return [[`${unit}_per_${scope.toLowerCase()}`, unit === 'money' ? most * 1_000_000 : most]];
  });
  return Object.fromEntries(found);
}

// ── Embeddings ──────────────────────────────────────────────────────────────────────────────────────────────

/** A queue that does not answer must not hold up everything else. */
const QUEUE_WITHIN_MS = 1_000;

async function embeddingNow({ config, embedder, recall, clock }: Parts): Promise<EmbeddingNow> {
  const { backend, model, baseUrl, redisUrl, queue: list } = config.embeddings;
  const { indexed, waiting, vectorsWaiting } = recall.status();
  const state = embedder?.state() ?? null;
  let queue: EmbeddingNow['queue'] = null;
  const asked = embedder?.queue?.().then(
    (found) => {
      queue = found;
    },
    // The breaker tells why.
    () => {},
  );
  if (asked !== undefined) await orAfter(asked, QUEUE_WITHIN_MS, clock);
  // Loaded with the first page that asks.
  const { placeOf } = await import('./embedding/server.js');
  const places = { off: null, http: baseUrl && placeOf(baseUrl), redis: redisUrl && placeOf(redisUrl) };
  const place = places[backend];
  return {
    level: state?.kind === 'failing' ? 'warn' : 'good',
    ...{ backend, model, queue },
    place: backend === 'redis' ? `${list}, ${place}` : place,
    breaker:
      state &&
      (state.kind === 'ok' ? { kind: 'closed' } : { kind: 'open', since: state.since, reason: state.reason }),
    pieces: { indexed, waiting, withVector: Math.max(0, indexed - vectorsWaiting) },
  };
}

// ── Configuration ───────────────────────────────────────────────────────────────────────────────────────────

const HIDDEN = '••••';
/** User and password in an address: a user alone may be a key. */
const LOGIN = /(:\/\/)[^\s/@?#]*@/g;
const IN_QUERY = /([?&]([^=&#?\s]+)=)[^&#\s"']*/g;

interface OutsideValues {
  variables: Config['variables'];
  secretFiles: Config['secretFiles'];
}

/** All keys with their values. A value from outside the file is hidden, as any of them may be secret. */
export function shownKeys(
  keys: object,
  config: OutsideValues,
  clean = createRedactor(hiddenInLogs(config as Config)),
): ConfigKey[] {
  const defaults = configKeys.parse({}, ONCE);
  const outside = [
    ...config.variables.map(({ name, path }) => ({ key: path.join('.'), source: `\${${name}}` })),
    ...config.secretFiles.map(({ path, key }) => ({ key: key.join('.'), source: `\${file:${path}}` })),
  ];
  return innerKeys(keys, defaults, [], false);

  function innerKeys(value: object, standard: unknown, path: string[], isSecret: boolean): ConfigKey[] {
    return Object.entries(value).map(([name, inner]) => {
      const normal =
        typeof standard === 'object' && standard !== null ? Reflect.get(standard, name) : undefined;
      return keyOf(name, inner, normal, path, isSecret || isSecretOption(name, path));
    });
  }

  function keyOf(
    name: string,
    value: unknown,
    standard: unknown,
    above: string[],
    isSecret: boolean,
  ): ConfigKey {
    const path = [...above, name];
    const key = Array.isArray(value) || !/^\d+$/.test(name) ? name : `${Number(name) + 1}`;
    const isSet = JSON.stringify(value) !== JSON.stringify(standard);
    const holdsMore = typeof value === 'object' && value !== null && !isListOfPlain(value);
    if (holdsMore && Object.keys(value).length > 0) {
      return { key, isSet, inner: innerKeys(value, standard, path, isSecret) };
    }
    const at = path.join('.');
    const sources = outside
      .filter((each) => each.key === at || each.key.startsWith(`${at}.`))
      .map(({ source }) => source);
    const isEmpty = typeof value === 'object' && Object.keys(value ?? {}).length === 0;
    const isHidden = !isEmpty && (isSecret || sources.length > 0);
    const shown = isHidden ? HIDDEN : wordsOf(value, name === 'args');
    return { key, isSet, value: shown, ...(sources.length > 0 && { sources: [...new Set(sources)] }) };
  }

  function wordsOf(value: unknown, areArguments: boolean): string | null {
    if (value === null || value === undefined) return null;
    if (Array.isArray(value)) {
      const words = value.map((each) => withoutLogins(String(each)));
      return (areArguments ? withoutSecretArguments(words) : words).join(areArguments ? ' ' : ', ');
    }
    return typeof value === 'object' ? '' : withoutLogins(String(value));
  }

  function withoutLogins(text: string): string {
    return clean(text)
      .replaceAll('[redacted]', HIDDEN)
      .replace(LOGIN, `$1${HIDDEN}@`)
      .replace(IN_QUERY, (whole, start: string, name: string) =>
        isSecretName(name) ? start + HIDDEN : whole,
      );
  }
}

function isListOfPlain(value: object): boolean {
  return Array.isArray(value) && value.every((each) => typeof each !== 'object' || each === null);
}

/** `--token abc` and `--token=abc`. */
function withoutSecretArguments(words: string[]): string[] {
  return words.map((word, n) => {
    const [, option, given] = /^(-{1,2}[\w-]+)(=.*)?$/s.exec(word) ?? [];
    if (option !== undefined)
      return given !== undefined && isSecretName(option) ? `${option}=${HIDDEN}` : word;
    const before = words[n - 1] ?? '';
    return /^-{1,2}[\w-]+$/.test(before) && isSecretName(before) ? HIDDEN : word;
  });
}
