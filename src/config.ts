/**
 * The configuration: found, read, checked as a whole and resolved, before anything else starts. Every fault is
 * told at once, with file, line, key and what was expected. Which keys there are stands in `config-keys.ts`.
 */
import { access, readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type * as z from 'zod';
import { configKeys, laterKeys } from './config-keys.js';
import type { AccessRules } from './conversation/access.js';
import { describe, Fault } from './core/errors.js';
import { sortOutUnknown, type UnknownKey } from './operating/keys.js';

type Keys = z.output<typeof configKeys>;
type TelegramKeys = NonNullable<Keys['channels']['telegram']>;
type DiscordKeys = NonNullable<Keys['channels']['discord']>;
type WhatsAppKeys = NonNullable<Keys['channels']['whatsapp']>;

/** Keys as in config.yaml, in camel case; paths are absolute, defaults filled in. */
export interface Config {
  dataDir: string;
  groupsDir: string;
  /** IANA name. */
  timezone: string;
  shutdownSeconds: number;
  log: { level: Keys['log']['level']; format: 'pretty' | 'json' };
  model: {
    /** null: no model is named, and the offline model answers. */
    server: ModelServer | null;
    fallbacks: ModelServer[];
    contextTokens: number;
    maxOutputTokens: number;
    timeoutSeconds: number;
    maxToolRounds: number;
    images: Keys['model']['images'];
  };
  /** null: voice notes are not written down. */
  transcription: { baseUrl: string; apiKey: string | null; model: string } | null;
  media: Camel<Keys['media']>;
  conversation: Camel<Keys['conversation']>;
  personas: Camel<Keys['personas']>;
  delivery: Camel<Keys['delivery']>;
  memory: Camel<Keys['memory']>;
  embeddings: Camel<Keys['embeddings']>;
  channels: {
    /** null: not configured. */
    telegram: (Camel<Omit<TelegramKeys, 'access'>> & { access: AccessRules }) | null;
    discord: (Camel<Omit<DiscordKeys, 'access'>> & { access: AccessRules }) | null;
    whatsapp: (Camel<Omit<WhatsAppKeys, 'access'>> & { access: AccessRules }) | null;
    terminal: { access: AccessRules; streaming: boolean };
  };
  board: { host: string; port: number; token: string | null };
}

interface ModelServer {
  baseUrl: string;
  apiKey: string | null;
  name: string;
}

/** `snake_case` keys of one level as `camelCase`. */
type Camel<Section> = { [Key in keyof Section as Key extends string ? CamelWord<Key> : Key]: Section[Key] };
type CamelWord<Word extends string> = Word extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelWord<Tail>>}`
  : Word;

export interface LoadedConfig {
  config: Config;
  warnings: string[];
  /** Where it was read from; null when there is no file and everything is default. */
  file: string | null;
}

/** `terminal` says whether logs are read by a person, for the default of `log.format`. */
export async function loadConfig(from: {
  argumentPath?: string | undefined;
  environment: Record<string, string | undefined>;
  workingDirectory: string;
  terminal?: boolean;
}): Promise<LoadedConfig> {
  const file = await findFile(from);
  if (file === null) {
    return { config: resolveConfig(configKeys.parse({}), from.workingDirectory, from), warnings: [], file };
  }
  const source = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new Fault(
      'configuration',
      `The configuration file ${file} cannot be read: ${describe(error)}`,
      error,
    );
  });
  // Only here, so that a start without a file does not pay for the parser.
  const { readYaml } = await import('./operating/yaml.js');
  const yaml = readYaml(source, from.environment);
  const told = (path: PropertyKey[], message: string) =>
    say(file, yaml.lineOf(path), path.join('.'), message);

  const { data, unknown } = sortOutUnknown(configKeys, yaml.data);
  const checked = configKeys.safeParse(data);
  const unread = new Set(yaml.faults.map((fault) => fault.path));
  const faults = [
    ...yaml.faults.map((fault) => say(file, fault.line, fault.path, fault.message)),
    ...unknown.filter(guardsAccess).map((key) => told(key.path, wordsFor(key))),
    ...(checked.error?.issues ?? [])
      .filter((issue) => !unread.has(issue.path.join('.')))
      .map((issue) => told(issue.path, issue.message)),
  ];
  if (!checked.success || faults.length > 0) {
    const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`;
    throw new Fault('configuration', [`The configuration has ${count}:`, ...faults].join('\n'));
  }

  const warnings = unknown.map((key) => told(key.path, wordsFor(key)));
  const { model } = checked.data;
  if (model.name === null && (model.base_url !== null || model.api_key !== null)) {
    warnings.push(told(['model'], 'there is no model.name, so the built-in offline model answers'));
  }
  return { config: resolveConfig(checked.data, dirname(file), from), warnings, file };
}

/** Everything that may never be seen in a log. */
export function secretsOf(config: Config): string[] {
  const { telegram, discord } = config.channels;
  const servers = [config.model.server, ...config.model.fallbacks].filter((server) => server !== null);
  const { apiKey, baseUrl, redisUrl } = config.embeddings;
  const secrets = [
    config.board.token,
    apiKey,
    ...(config.transcription
      ? [config.transcription.apiKey, ...passwordsIn(config.transcription.baseUrl)]
      : []),
    discord?.token ?? null,
    ...[baseUrl, redisUrl].flatMap((address) => (address === null ? [] : passwordsIn(address))),
    ...servers.flatMap((server) => [server.apiKey, ...passwordsIn(server.baseUrl)]),
    ...(telegram ? [telegram.token, telegram.webhookSecret, ...Object.values(telegram.personaTokens)] : []),
  ];
  return secrets.filter((secret) => secret !== null);
}

/** As `loadConfig`, for the process that runs. */
export function processConfig(argumentPath: string | undefined, terminal = false): Promise<LoadedConfig> {
  return loadConfig({ argumentPath, environment: process.env, workingDirectory: process.cwd(), terminal });
}

/** --config, else COTERIE_CONFIG, else ./config.yaml; a file that was named must be there. */
async function findFile(from: {
  argumentPath?: string | undefined;
  environment: Record<string, string | undefined>;
  workingDirectory: string;
}): Promise<string | null> {
  const { argumentPath, environment, workingDirectory } = from;
  const named = argumentPath ?? (environment.COTERIE_CONFIG || undefined);
  const file = resolve(workingDirectory, named ?? 'config.yaml');
  const there = await access(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT' && error.code !== 'ENOTDIR',
  );
  if (there) return file;
  if (named === undefined) return null;
  const source = argumentPath === undefined ? 'COTERIE_CONFIG' : '--config';
  throw new Fault('configuration', `There is no configuration file at ${file}, which ${source} names.`);
}

function resolveConfig(
  keys: Keys,
  base: string,
  from: { terminal?: boolean; workingDirectory: string },
): Config {
  const { model, channels, transcription } = keys;
  // zod leaves out what is not there, so that nothing is overridden by `undefined`.
  const accessFor = (overrides: Keys['channels']['terminal']['access']) =>
    ({ ...camel(keys.access), ...camel(overrides) }) as AccessRules;
  return {
    dataDir: resolve(from.workingDirectory, base, keys.data_dir),
    groupsDir: resolve(from.workingDirectory, base, keys.groups_dir),
    timezone: keys.timezone ?? systemZone(),
    shutdownSeconds: keys.shutdown_seconds,
    log: { level: keys.log.level, format: keys.log.format ?? (from.terminal ? 'pretty' : 'json') },
    model: {
      server:
        model.name !== null && model.base_url !== null
          ? { baseUrl: model.base_url, apiKey: model.api_key, name: model.name }
          : null,
      fallbacks: model.fallbacks.map(camel),
      contextTokens: model.context_tokens,
      maxOutputTokens: model.max_output_tokens,
      timeoutSeconds: model.timeout_seconds,
      maxToolRounds: model.max_tool_rounds,
      images: model.images,
    },
    transcription:
      transcription.base_url !== null && transcription.model !== null
        ? {
            baseUrl: transcription.base_url,
            apiKey: transcription.api_key,
            model: transcription.model,
          }
        : null,
    media: camel(keys.media),
    conversation: camel(keys.conversation),
    personas: camel(keys.personas),
    delivery: camel(keys.delivery),
    memory: camel(keys.memory),
    embeddings: camel(keys.embeddings),
    channels: {
      telegram: channels.telegram
        ? { ...camel(channels.telegram), access: accessFor(channels.telegram.access) }
        : null,
      discord: channels.discord
        ? { ...camel(channels.discord), access: accessFor(channels.discord.access) }
        : null,
      // Its number is mostly somebody's own: strangers are let in only where this channel's own rules say so.
      whatsapp: channels.whatsapp?.enabled
        ? {
            ...camel(channels.whatsapp),
            access: accessFor({ direct: 'closed', groups: 'listed', ...channels.whatsapp.access }),
          }
        : null,
      // Whoever sits at the terminal has the files as well: an owner, whom nobody need let in.
      terminal: {
        streaming: channels.terminal.streaming,
        access: accessFor({
          direct: 'open',
          owners: [...keys.access.owners, 'terminal_local'],
          ...channels.terminal.access,
        }),
      },
    },
    board: keys.board,
  };
}

function camel<Section extends object>(section: Section): Camel<Section> {
  const entries = Object.entries(section).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(entries) as Camel<Section>;
}

function systemZone(): string {
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return zone && zone !== 'Etc/Unknown' ? zone : 'UTC';
}

/** The password of `https://user:password@host`, as it stands there and as it is meant. */
function passwordsIn(address: string): string[] {
  const { password } = new URL(address);
  if (password === '') return [];
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    // A lone % in it: then it is meant as it stands.
    return [password];
  }
}

/** `access` and `channels.<name>.access`: a rule that is misspelt there must not be passed over. */
function guardsAccess(key: UnknownKey): boolean {
  const [first, , third] = key.path;
  return (
    key.path.length > 1 &&
    (first === 'access' || (first === 'channels' && third === 'access' && key.path.length > 3))
  );
}

function wordsFor(key: UnknownKey): string {
  if (laterKeys.includes(key.path.join('.'))) return 'is not supported by this version yet and has no effect';
  const hint = key.nearest ? `did you mean ${key.nearest}?` : `known here: ${key.known.join(', ')}`;
  return `unknown key; ${hint}`;
}

function say(file: string, line: number | null, path: string, message: string): string {
  const place = line === null ? file : `${file}, line ${line}`;
  return path === '' ? `${place}: ${message}` : `${place}: ${path}: ${message}`;
}
