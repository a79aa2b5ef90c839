/**
 * Every key of config.yaml: its type, default and the expectation that error messages name. Channels define their own
 * options; `config.example.yaml` explains each key to operators.
 */
import * as z from 'zod';
import { isLoopback } from './board/guard.js';
import {
  amount,
  choice,
  expected,
  type Streaming,
  streaming,
  text,
  truth,
  webAddress,
  whole,
} from './channels/kit/descriptor.js';
import { CHANNELS } from './channels/list.js';
import {
  allowance,
  bodyFields,
  headers,
  ids,
  list,
  mcpServer,
  NETWORKS,
  needed,
  network,
  ORIGINS,
  optional,
  pattern,
  redisAddress,
  seconds,
  section,
  storeAddress,
  toolGroups,
  webOrigin,
} from './config-values.js';
import { isZone } from './core/dates.js';
import { PROXY_FORM, proxyOf } from './network/rules.js';
import { allowedHost } from './tools/web/request.js';

/** For `tools.web.allow_hosts`. */
const HOST = 'a host, with or without a port, like nas.lan:8080';

/** No defaults: an absent key is looked up in the next section, finally in `ACCESS`. */
const access = {
  direct: choice('pairing', 'open', 'closed').optional(),
  groups: choice('listed', 'open', 'closed').optional(),
  chats: ids().optional(),
  owners: ids().optional(),
  control_chats: ids().optional(),
  require_mention: truth().optional(),
};

const ROLES = ['channels', 'turns', 'jobs', 'board'] as const;
const NODE_NAME = 'at most 64 letters, digits, dots, hyphens and underscores, not dots alone';
const LIKE_OPENAI = 'like https://api.openai.com/v1';
const MONEY = 'an amount of money in the unit of the prices, 0 or more';
const PRICE = 'a price per million tokens, 0 or more';
const QUIET_HOURS = /^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/;
const DAYS = 'a whole number of 1 or more, or never';

/** The defaults of `access`. */
export const ACCESS = {
  direct: 'pairing',
  groups: 'listed',
  chats: [],
  owners: [],
  control_chats: [],
  require_mention: true,
} as const;

/** Options of every channel: overrides of `access`, and how live replies are shown. */
const common = (ways: readonly [Streaming, ...Streaming[]]) => ({
  access: section(access),
  streaming: streaming(ways),
});

/** Options of every platform: whether its servers may fetch the links in a reply for a preview. */
const ofPlatforms = { link_previews: truth().default(false) };

type Descriptor = (typeof CHANNELS)[number];
type PlatformOptions = z.ZodObject<ReturnType<typeof common> & typeof ofPlatforms>;
const platforms = Object.fromEntries(
  CHANNELS.map(({ name, options, streaming: ways }) => [
    name,
    (options as z.ZodObject)
      .safeExtend({ ...common(ways), ...ofPlatforms })
      .strict()
      .optional(),
  ]),
) as unknown as {
  [D in Descriptor as D['name']]: z.ZodOptional<
    z.ZodType<z.output<D['options']> & z.output<PlatformOptions>>
  >;
};

const server = {
  base_url: optional(webAddress()),
  api_key: optional(text('a key')),
  model: optional(text('the name of a model')),
};

/** Request parameters of a model server. */
const serverWishes = {
  temperature: amount('a number from 0 to 2', 0, 2).optional(),
  extra: bodyFields().optional(),
  headers: headers().optional(),
};

/** Per million tokens. */
const prices = {
  input_price: amount(PRICE, 0).optional(),
  output_price: amount(PRICE, 0).optional(),
};

const modelServer = z.strictObject({
  base_url: webAddress(),
  api_key: server.api_key,
  name: text('the name of a model'),
  context_tokens: whole(1000).optional(),
  ...prices,
  ...serverWishes,
});

/** The name alone, or an object with the name and properties of the model. */
const modelChoice = z.preprocess(
  (value) => (typeof value === 'string' ? { name: value } : value),
  z.strictObject(
    {
      name: text('the name of a model'),
      context_tokens: whole(1000).optional(),
      ...prices,
    },
    expected('the name of a model, or name, context_tokens, input_price and output_price'),
  ),
);

export const configKeys = z.strictObject({
  data_dir: text('a folder').default('./data'),
  groups_dir: text('a folder').default('./groups'),
  timezone: text('a time zone').refine(isZone, expected('an IANA time zone, like Europe/Berlin')).optional(),
  store: section({
    url: optional(storeAddress()),
    connections: whole(3).default(8),
    wait_seconds: amount('a number of seconds', 0).default(30),
  }),
  node: section({
    name: optional(pattern(NODE_NAME, /^(?!\.+$)[A-Za-z0-9._-]{1,64}$/)),
    lease_seconds: amount('a number of seconds from 2 to 300', 2, 300).default(15),
    roles: list(choice(...ROLES), `a list of ${ROLES.join(', ')}`)
      // The gateway that is connected to a platform answers there.
      .refine(
        (roles) => !roles.includes('channels') || roles.includes('turns'),
        expected('turns beside channels'),
      )
      .default([...ROLES]),
  }),
  shutdown_seconds: amount('a number of seconds', 0).default(20),
  log: section({
    level: choice('debug', 'info', 'warn', 'error', 'silent').default('info'),
    format: choice('pretty', 'json').optional(),
  }),
  model: section(
    {
      base_url: server.base_url,
      api_key: server.api_key,
      name: server.model,
      context_tokens: optional(whole(1000)),
      max_output_tokens: whole(1).optional(),
      timeout_seconds: seconds().default(120),
      max_tool_rounds: whole(1).default(25),
      images: choice('auto', 'yes', 'no').default('auto'),
      ...prices,
      ...serverWishes,
      choices: list(modelChoice, 'a list of models').default([]),
      fallbacks: list(modelServer, 'a list of servers, each with base_url and name').default([]),
    },
    needed('base_url', `the address of the server that has model.name, ${LIKE_OPENAI}`, 'name'),
    [
      ['max_output_tokens', 'context_tokens'],
      'fewer tokens than model.context_tokens',
      ({ max_output_tokens, context_tokens }) =>
        context_tokens === null || max_output_tokens === undefined || max_output_tokens < context_tokens,
    ],
  ),
  transcription: section(
    server,
    needed('model', 'the name of the model that writes down what is spoken, like whisper-1', 'base_url'),
    needed('base_url', `the address of the server that has transcription.model, ${LIKE_OPENAI}`, 'model'),
  ),
  speech: section(
    {
      ...server,
      voice: optional(text('the name of a voice')),
      timeout_seconds: seconds().default(20),
      when_spoken_to: truth().default(false),
      max_characters: whole(1, 4096).default(1500),
    },
    needed('model', 'the name of the model that speaks, like gpt-4o-mini-tts', 'base_url'),
    needed('voice', 'the name of one of its voices, like alloy', 'base_url'),
    needed('base_url', `the address of the server that has speech.model, ${LIKE_OPENAI}`, 'model', 'voice'),
  ),
  tools: section({
    allow: toolGroups().default(['memory', 'search', 'clipboard', 'schedules', 'reactions', 'send']),
    chats: z.record(z.string(), allowance(), expected('ids of chats, each with allow')).default({}),
    channels: z.record(z.string(), allowance(), expected('names of channels, each with allow')).default({}),
    max_offered: whole(1).default(128),
    reactions: choice('off', 'groups', 'everywhere').default('groups'),
    shell: section({
      sandbox: choice('bubblewrap', 'none').default('bubblewrap'),
      network: truth().default(false),
      env: list(text('the name of an environment variable'), 'names of environment variables').default([]),
      timeout_seconds: seconds().default(60),
      memory_mb: whole(16).default(512),
    }),
    web: section({
      timeout_seconds: seconds().default(20),
      max_bytes: whole(1000).default(2_000_000),
      allow_hosts: list(
        text(HOST).refine((host) => allowedHost(host) !== null, expected(HOST)),
        'a list of hosts',
      ).default([]),
    }),
  }),
  mcp: section({
    servers: z
      .record(z.string(), mcpServer(), expected('names of servers, each with command or url'))
      .default({}),
  }),
  agents: section({
    roots: list(text('the path of a folder'), 'a list of paths of folders').default([]),
  }),
  approvals: section({ minutes: amount('a number of minutes above 0', 0.001).default(30) }),
  schedules: section({
    missed: choice('once', 'skip').default('once'),
    quiet_hours: optional(pattern('two times of day like "22:00-08:00"', QUIET_HOURS)),
  }),
  digests: section({
    every: optional(pattern('a number of minutes, hours or days, like 30m, 6h or 1d', /^[1-9]\d*[mhd]$/)),
    chats: ids().default([]),
  }),
  network: section({
    proxy: optional(
      z
        .string(expected(PROXY_FORM))
        .refine((value) => value === 'off' || proxyOf(value, '') !== null, expected(PROXY_FORM)),
    ),
    no_proxy: optional(list(text('a host'), 'a list of hosts')),
    connect_attempt_seconds: amount('a number of seconds from 0.25 to 60', 0.25, 60).default(5),
  }),
  tracing: section({
    endpoint: optional(webAddress()),
    headers: headers().default({}),
    sample: amount('a share from 0 to 1', 0, 1).default(1),
  }),
  redis: section({
    url: optional(redisAddress()),
  }),
  media: section({ max_bytes: whole(0).default(20_000_000) }),
  conversation: section(
    {
      compact_after_messages: whole(2).optional(),
      keep_recent_messages: whole(0).optional(),
      overheard_messages: whole(0).default(50),
      debounce_ms: whole(0).default(400),
    },
    [
      ['keep_recent_messages', 'compact_after_messages'],
      'fewer messages than conversation.compact_after_messages',
      ({ keep_recent_messages: keep, compact_after_messages: most }) =>
        keep === undefined || most === undefined || keep < most,
    ],
  ),
  personas: section({
    natural: truth().default(false),
    buttons: choice('used', 'always', 'off').default('used'),
    max_rounds: whole(1).default(3),
    max_replies: whole(1).default(8),
    character_max_chars: whole(100).default(40_000),
  }),
  lore: section({
    scan_depth: whole(0).default(2),
    budget_tokens: optional(whole(0)),
  }),
  retention: section({
    days: z
      .union([amount(DAYS, 1).refine(Number.isInteger, expected(DAYS)), z.literal('never')], expected(DAYS))
      .default(30),
    media_bytes: whole(1).default(2_000_000_000),
    media_bytes_per_chat: whole(1).default(500_000_000),
    audit_bytes: whole(1).default(500_000_000),
    replay_bytes: whole(0).default(200_000_000),
  }),
  limits: section({
    messages_per_minute: optional(whole(1)),
    tokens_per_chat: optional(whole(1)),
    tokens_per_persona: optional(whole(1)),
    tokens_per_person: optional(whole(1)),
    tokens_per_day: optional(whole(1)),
    money_per_chat: optional(amount(MONEY, 0)),
    money_per_persona: optional(amount(MONEY, 0)),
    money_per_person: optional(amount(MONEY, 0)),
    money_per_day: optional(amount(MONEY, 0)),
    answer_bytes: whole(1000).default(2_000_000),
    calls_per_answer: whole(1).default(16),
    sends_per_turn: whole(0).default(5),
    same_calls_per_turn: whole(1).default(3),
    tier_bytes: whole(1000).default(64_000),
    personas_per_chat: whole(1).default(50),
    tasks_waiting: whole(1).default(5_000),
  }),
  delivery: section({ max_age_hours: amount('a number of hours above 0', 0.001).default(24) }),
  memory: section({
    long_term_max_chars: whole(1).default(12_000),
    daily_per_day_max_chars: whole(1).default(4000),
    daily_files: whole(0).default(2),
    daily_max_chars: whole(1).default(8000),
    announce: choice('off', 'quiet', 'full').optional(),
    tier1_by: choice('anyone', 'administrators', 'owners').optional(),
    consolidate: truth().default(false),
    consolidate_tokens: whole(1).default(200_000),
  }),
  embeddings: section(
    {
      backend: choice('off', 'http', 'redis').default('off'),
      ...server,
      query_prefix: optional(z.string()),
      document_prefix: optional(z.string()),
      dimensions: optional(whole(1)),
      redis_url: optional(redisAddress()),
      queue: text('the name of a list in Redis').default('queue:gpu_heavy'),
      timeout_seconds: seconds().default(30),
      batch_size: whole(1).default(64),
      batch_window_ms: whole(0).default(5),
    },
    [
      ['model', 'backend'],
      'the name of the embedding model: vectors of different models are never compared',
      ({ backend, model }) => backend === 'off' || model !== null,
    ],
    [
      ['base_url', 'backend'],
      'the address of the embedding server, like http://gpu:8080/v1',
      ({ backend, base_url }) => backend !== 'http' || base_url !== null,
    ],
    [
      ['redis_url', 'backend'],
      'the address of Redis, like redis://gpu:6379',
      ({ backend, redis_url }) => backend !== 'redis' || redis_url !== null,
    ],
  ),
  channels: section({ ...platforms, terminal: section(common(['edit', 'off'])) }),
  board: section(
    {
      host: text('a host name or an address').default('127.0.0.1'),
      port: whole(0, 65_535).default(8420),
      token: optional(text('a token')),
      trusted_proxies: list(network(), NETWORKS).default([]),
      origins: list(webOrigin(), ORIGINS).default([]),
    },
    [
      ['token', 'host'],
      'a token, because board.host can be reached from other machines',
      ({ host, token }) => isLoopback(host) || token !== null,
    ],
  ),
  access: section(access),
});
