/**
 * Finds, reads, checks and resolves the configuration before anything else starts. All faults are reported together,
 * with file, line, key and expectation. `config-keys.ts` has the keys.
 */
import { readFile } from 'node:fs/promises';
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import type * as z from 'zod';
import type { Camel, Streaming } from './channels/kit/descriptor.js';
import { CHANNELS } from './channels/list.js';
import { ACCESS, configKeys } from './config-keys.js';
import type { AccessRules } from './core/access.js';
import { BOARD_OWNER } from './core/board.js';
import { describe, Fault } from './core/errors.js';
import { codeOf } from './core/file-access.js';
import type { ChatId } from './core/ids.js';
import { hintFor, knownPart, parseKnown } from './core/known-keys.js';
import type { ServerSettings } from './mcp/settings.js';
import { proxiesOf } from './network/rules.js';
import { readYaml, type YamlFile } from './operating/yaml.js';

type ConfigKeys = z.output<typeof configKeys>;

/** The keys of config.yaml in camel case, with absolute paths and defaults filled in. */
export interface Config extends ReturnType<typeof resolveConfig> {
  /** Platforms whose section lacks its token, with the other keys; null for all others. */
  unready: ReturnType<typeof resolvePlatforms>;
}

export interface From {
  argumentPath?: string | undefined;
  environment: Record<string, string | undefined>;
  workingDirectory: string;
  /** Whether a person reads the log; decides the default of `log.format`. */
  terminal?: boolean;
}

export interface LoadedConfig {
  config: Config;
  /** The same under the keys of config.yaml, including secrets. */
  keys: ConfigKeys;
  warnings: string[];
  /** The file's path; null if there is no file and all values are defaults. */
  file: string | null;
}

export async function loadConfig(from: From): Promise<LoadedConfig> {
  const { file, source } = await readConfigFile(from);
  return configIn(source, file, from);
}

/** The same from a text, as if it were in that file. */
export function configIn(source: string, file: string | null, from: From): LoadedConfig {
  const folder = file === null ? from.workingDirectory : dirname(file);
  const yaml = readYaml(source, folder, from.environment);
  const lacking = standInForTokens(yaml.data);
  const { parsed, unknown } = parseKnown(configKeys, yaml.data);
  const say = (path: PropertyKey[], message: string, line = yaml.positionOf(path)?.line ?? null) =>
    [
      line === null ? file : `${file}, line ${line}`,
      ...(path.length > 0 ? [path.join('.')] : []),
      message,
    ].join(': ');
  const sayUnknown = (path: string[]) => say(path, `unknown key; ${hintFor(configKeys, path)}`);

  unknown.sort((a, b) => (yaml.positionOf(a)?.offset ?? 0) - (yaml.positionOf(b)?.offset ?? 0));
  const unread = new Set(yaml.faults.map(({ path }) => path.join('.')));
  const faults = [
    ...yaml.faults.map(({ path, message, line, guessed }) =>
      // In a malformed file anything may be in the place of a key, even a secret.
      say(guessed ? knownPart(configKeys, path) : path, message, line),
    ),
    ...unknown.filter(isUnderAccess).map(sayUnknown),
    ...(parsed.error?.issues ?? [])
      .filter(({ path }) => !unread.has(path.join('.')))
      .map(({ path, message }) => say(path, message)),
  ];
  if (!parsed.success || faults.length > 0) {
    const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`;
    throw new Fault('configuration', [`The configuration has ${count}:`, ...faults].join('\n'));
  }
  const { channels: sections, ...others } = parsed.data;
  const isLacking = ([name]: [string, unknown]) => lacking.some((each) => each === name);
  const only = (which: (entry: [string, unknown]) => boolean) =>
    Object.fromEntries(Object.entries(sections).filter(which)) as ConfigKeys['channels'];
  const keys = { ...others, channels: only((entry) => !isLacking(entry)) };
  const warnings = [
    ...unknown.map(sayUnknown),
    ...lacking.map((name) => say(['channels', name], NOT_SET_UP)),
    ...withoutEffect(keys).map(([path, message]) => say(path, message)),
  ];
  const unready = resolvePlatforms({ ...keys, channels: only(isLacking) });
  return { config: { ...resolveConfig(keys, folder, from, yaml), unready }, keys, warnings, file };
}

const NOT_SET_UP =
  'has no token, so this channel is not set up yet; put the token there, or set it up on the page of the board';

/** Lets the other keys of a section without its token be checked all the same. */
const NO_TOKEN = '0:0';

/** The platforms whose section lacks only the token, which `NO_TOKEN` stands for from now on. */
function standInForTokens({ channels }: Record<string, unknown>): string[] {
  const sections = Object(channels) as Record<string, Record<string, unknown> | null>;
  return CHANNELS.filter(({ name, options }) => {
    const section = sections[name];
    if (!('token' in options.shape) || typeof section !== 'object' || Array.isArray(section)) return false;
    if (section === null || (section.token ?? null) !== null) return false;
    section.token = NO_TOKEN;
    return true;
  }).map(({ name }) => name);
}

/** Settings that mean nothing without others. */
function withoutEffect({ model, limits }: ConfigKeys): [path: string[], message: string][] {
  const found: [string[], string][] = [];
  if (model.name === null && (model.base_url !== null || model.api_key !== null)) {
    found.push([['model'], 'there is no model.name, so the built-in offline model answers']);
  }
  const money = Object.entries(limits).find(([key, most]) => key.startsWith('money_') && Number(most) > 0);
  const isPriced = [model, ...model.choices, ...model.fallbacks].some(
    ({ input_price, output_price }) => input_price !== undefined || output_price !== undefined,
  );
  if (money && !isPriced) {
    found.push([['limits', money[0]], 'has no effect without model.input_price and model.output_price']);
  }
  return found;
}

/** Where this process reads it from. */
export function processFrom(argumentPath: string | undefined, terminal = false): From {
  return { argumentPath, environment: process.env, workingDirectory: process.cwd(), terminal };
}

/** Like `loadConfig`, but also applies process-wide settings. */
export async function processConfig(
  argumentPath: string | undefined,
  terminal = false,
): Promise<LoadedConfig> {
  const from = processFrom(argumentPath, terminal);
  const loaded = await loadConfig(from);
  // Process-wide. By default Node gives each address of a host, even the last, only 250 ms.
  setDefaultAutoSelectFamilyAttemptTimeout(loaded.config.network.attemptMs);
  return loaded;
}

/** --config, else COTERIE_CONFIG, else ./config.yaml. */
export function configPlace({ argumentPath, environment, workingDirectory }: From): string {
  return resolve(workingDirectory, argumentPath ?? (environment.COTERIE_CONFIG || 'config.yaml'));
}

/** A file named explicitly must exist. */
async function readConfigFile(from: From) {
  const { argumentPath, environment } = from;
  const named = argumentPath ?? (environment.COTERIE_CONFIG || undefined);
  const file = configPlace(from);
  try {
    return { file, source: await readFile(file, 'utf8') };
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error))) {
      const message = `The configuration file ${file} cannot be read: ${describe(error)}`;
      throw new Fault('configuration', message, error);
    }
    if (named === undefined) return { file: null, source: '' };
    const source = argumentPath === undefined ? 'COTERIE_CONFIG' : '--config';
    throw new Fault('configuration', `There is no configuration file at ${file}, which ${source} names.`);
  }
}

/** `url` null: SQLite. */
function databaseOf({ url, connections, wait_seconds: seconds }: ConfigKeys['store']) {
  return { url, connections, waitMs: Math.round(seconds * 1000) };
}

function nodeOf({ name, lease_seconds: seconds, roles }: ConfigKeys['node']) {
  // A host's name may have any characters.
  const host =
    hostname()
      .replace(/[^A-Za-z0-9._-]/g, '-')
      .slice(0, 64) || 'coterie';
  return { name: name ?? host, leaseMs: Math.round(seconds * 1000), roles };
}

/** Relative paths start at `folder`. */
function resolveConfig(
  keys: ConfigKeys,
  folder: string,
  { terminal, environment }: From,
  { secretFiles, variables }: YamlFile,
) {
  const { transcription, channels, access } = keys;
  const { base_url, api_key, name, temperature, extra, headers, fallbacks, choices, ...model } = keys.model;
  const wishes = { temperature, extra, headers };
  return {
    dataDir: resolve(folder, keys.data_dir),
    groupsDir: resolve(folder, keys.groups_dir),
    /** IANA name; null: the system's time zone. */
    timezone: keys.timezone ?? null,
    store: databaseOf(keys.store),
    node: nodeOf(keys.node),
    shutdownSeconds: keys.shutdown_seconds,
    log: { level: keys.log.level, format: keys.log.format ?? (terminal ? 'pretty' : 'json') },
    model: {
      ...camel(model),
      // With a small window, an answer is limited to its share of it anyway.
      maxOutputTokens: model.max_output_tokens ?? MOST_OUTPUT_TOKENS,
      /** null: no model is configured, and the offline model answers. */
      server:
        name !== null && base_url !== null ? { baseUrl: base_url, apiKey: api_key, name, ...wishes } : null,
      fallbacks: fallbacks.map(camel),
      choices: choices.map(camel),
    },
    /** null: voice notes are not transcribed. */
    transcription:
      transcription.base_url !== null && transcription.model !== null
        ? { baseUrl: transcription.base_url, apiKey: transcription.api_key, model: transcription.model }
        : null,
    speech: speechOf(keys.speech),
    tools: {
      ...camel(keys.tools),
      shell: camel(keys.tools.shell),
      web: camel(keys.tools.web),
    },
    mcp: { servers: toolServers(keys.mcp.servers, folder) },
    agents: { roots: keys.agents.roots.map((root) => resolve(folder, root)) },
    approvals: keys.approvals,
    schedules: camel(keys.schedules),
    digests: keys.digests,
    network: {
      proxies: proxiesOf(keys.network, environment, (message) => new Fault('configuration', message)),
      attemptMs: Math.round(keys.network.connect_attempt_seconds * 1000),
    },
    tracing: keys.tracing,
    /** null: the journal is not streamed. */
    redisUrl: keys.redis.url,
    media: camel(keys.media),
    retention: camel(keys.retention),
    limits: camel(keys.limits),
    conversation: { ...camel(keys.conversation), ...windowOf(keys.conversation) },
    personas: camel(keys.personas),
    lore: camel(keys.lore),
    delivery: camel(keys.delivery),
    memory: camel(keys.memory),
    embeddings: camel(keys.embeddings),
    channels: {
      ...resolvePlatforms(keys),
      // A terminal user can read the files anyway: always an owner, never paired.
      terminal: {
        streaming: channels.terminal.streaming,
        access: rules(access, openTo('terminal_local', access), channels.terminal.access),
      },
      // The listener lets only operators in.
      board: { streaming: 'edit' as const, access: rules(access, openTo(BOARD_OWNER, access)) },
    },
    board: camel(keys.board),
    /** Values from outside the file. */
    secretFiles,
    variables,
  };
}

/** null: replies are not spoken. */
function speechOf({ base_url, api_key, model, voice, ...options }: ConfigKeys['speech']) {
  if (base_url === null || model === null || voice === null) return null;
  return { server: { baseUrl: base_url, apiKey: api_key, model }, options: { voice, ...camel(options) } };
}

const MOST_OUTPUT_TOKENS = 4096;
const COMPACT_AFTER = 200;
const KEEP_RECENT = 80;

/** If only one is set, the other's default adapts: at most two fifths of a window are kept. */
function windowOf({ compact_after_messages, keep_recent_messages }: ConfigKeys['conversation']) {
  const compactAfterMessages =
    compact_after_messages ??
    Math.max(COMPACT_AFTER, Math.ceil(((keep_recent_messages ?? 0) * COMPACT_AFTER) / KEEP_RECENT));
  const keepRecentMessages =
    keep_recent_messages ??
    Math.min(KEEP_RECENT, Math.floor((compactAfterMessages * KEEP_RECENT) / COMPACT_AFTER));
  return { compactAfterMessages, keepRecentMessages };
}

/** In config order. Relative paths in a command start at the configuration file. */
function toolServers(servers: ConfigKeys['mcp']['servers'], folder: string): ServerSettings[] {
  return Object.entries(servers).map(([name, { tools, safe, timeout_seconds, ...server }]) => {
    const common = { name, tools, safe, timeoutMs: timeout_seconds * 1000 };
    const { command, args = [], env = {}, cwd = '.', url = '', headers = {}, oauth } = server;
    if (command === undefined) return { ...common, url, headers, oauth: oauth && camel(oauth) };
    const program = command.includes('/') ? resolve(folder, command) : command;
    return { ...common, command: program, args, env, cwd: resolve(folder, cwd) };
  });
}

/** null: not configured. */
function resolvePlatforms({ channels, access }: ConfigKeys) {
  const resolved = CHANNELS.map((descriptor) => {
    const section = channels[descriptor.name];
    const isOn = section !== undefined && (!('enabled' in section) || section.enabled);
    const ofChannel = isOn && rules(access, descriptor.access ?? {}, section.access);
    return [descriptor.name, ofChannel ? { ...camel(section), access: ofChannel } : null];
  });
  return Object.fromEntries(resolved) as {
    [D in (typeof CHANNELS)[number] as D['name']]:
      | (Camel<z.output<D['options']>> & { access: AccessRules; streaming: Streaming; linkPreviews: boolean })
      | null;
  };
}

function openTo(owner: ChatId, { owners = [] }: ConfigKeys['access']) {
  return { direct: 'open' as const, owners: [...owners, owner] };
}

/** Later rules override earlier ones. zod omits absent keys, so no rule becomes undefined. */
function rules(...sections: ConfigKeys['access'][]): AccessRules {
  return camel({ ...ACCESS, ...Object.assign({}, ...sections) }) as AccessRules;
}

export function camel<Section extends object>(section: Section): Camel<Section> {
  const entries = Object.entries(section).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(entries) as Camel<Section>;
}

/** A misspelt rule in `access` or `channels.<name>.access` must not be ignored. */
function isUnderAccess([first, second, third, fourth]: string[]): boolean {
  return first === 'access' ? second !== undefined : third === 'access' && fourth !== undefined;
}

/** The models that a persona's file for another program may name; null (any) without a model server. */
export function modelsOf({ model }: Config): string[] | null {
  return model.server && [model.server.name, ...model.choices.map(({ name }) => name)];
}
