/**
 * Every key of config.yaml: its type, its default, and what is said to be expected where a value is wrong.
 * A channel's own options live with the channel; `config.example.yaml` explains each key to operators.
 */
import * as z from 'zod';
import { isLoopback } from './board/loopback.js';
import { discordOptions } from './channels/discord/options.js';
import { expected, truth } from './channels/kit/options.js';
import { telegramOptions } from './channels/telegram/options.js';
import { whatsappOptions } from './channels/whatsapp/options.js';

const access = z.object({
  direct: choice('pairing', 'open', 'closed'),
  groups: choice('listed', 'open', 'closed'),
  chats: ids(),
  owners: ids(),
  control_chats: ids(),
  require_mention: z.boolean(expected('true or false')),
});

const modelServer = z.object({
  base_url: webAddress(),
  api_key: text('a key').nullable().default(null),
  name: text('the name of a model'),
});

/** Every channel may answer some of the questions of `access` for itself. */
const channelAccess = { access: access.partial().default({}) };

/** Where messages can be edited, replies may be shown while they are written. */
const growing = { ...channelAccess, streaming: truth().default(true) };

export const configKeys = z.object({
  data_dir: text('a folder').default('./data'),
  groups_dir: text('a folder').default('./groups'),
  timezone: text('a time zone').refine(isZone, expected('an IANA time zone, like Europe/Berlin')).optional(),
  shutdown_seconds: amount('a number of seconds', 0).default(20),
  log: section({
    level: choice('debug', 'info', 'warn', 'error', 'silent').default('info'),
    format: choice('pretty', 'json').optional(),
  }).prefault({}),
  model: section({
    base_url: webAddress().nullable().default(null),
    api_key: text('a key').nullable().default(null),
    name: text('the name of a model').nullable().default(null),
    context_tokens: whole(1000).default(128_000),
    max_output_tokens: whole(1).default(4096),
    timeout_seconds: amount('a number of seconds above 0', 0.001).default(120),
    max_tool_rounds: whole(1).default(25),
    images: choice('auto', 'yes', 'no').default('auto'),
    fallbacks: z.array(modelServer, expected('a list of servers, each with base_url and name')).default([]),
  })
    .refine((model) => model.name === null || model.base_url !== null, {
      path: ['base_url'],
      when: fits(z.object({ name: z.string(), base_url: z.string().nullable() })),
      ...expected('the address of the server that has model.name, like https://api.openai.com/v1'),
    })
    .refine((model) => model.max_output_tokens < model.context_tokens, {
      path: ['max_output_tokens'],
      when: fits(z.object({ max_output_tokens: z.number(), context_tokens: z.number() })),
      ...expected('fewer tokens than model.context_tokens'),
    })
    .prefault({}),
  transcription: section({
    base_url: webAddress().nullable().default(null),
    api_key: text('a key').nullable().default(null),
    model: text('the name of a model').nullable().default(null),
  })
    .refine((transcription) => transcription.base_url === null || transcription.model !== null, {
      path: ['model'],
      when: fits(z.object({ base_url: z.string().nullable(), model: z.string().nullable() })),
      ...expected('the name of the model that writes down what is spoken, like whisper-1'),
    })
    .refine((transcription) => transcription.model === null || transcription.base_url !== null, {
      path: ['base_url'],
      when: fits(z.object({ base_url: z.string().nullable(), model: z.string().nullable() })),
      ...expected('the address of the server that has transcription.model, like https://api.openai.com/v1'),
    })
    .prefault({}),
  media: section({ max_bytes: whole(0).default(20_000_000) }).prefault({}),
  conversation: section({
    compact_after_messages: whole(2).default(200),
    keep_recent_messages: whole(0).default(80),
    overheard_messages: whole(0).default(50),
    debounce_ms: whole(0).default(400),
  })
    .refine((conversation) => conversation.keep_recent_messages < conversation.compact_after_messages, {
      path: ['keep_recent_messages'],
      when: fits(z.object({ keep_recent_messages: z.number(), compact_after_messages: z.number() })),
      ...expected('fewer messages than conversation.compact_after_messages'),
    })
    .prefault({}),
  personas: section({
    natural: z.boolean(expected('true or false')).default(false),
    max_rounds: whole(1).default(3),
    max_replies: whole(1).default(8),
  }).prefault({}),
  delivery: section({ max_age_hours: amount('a number of hours above 0', 0.001).default(24) }).prefault({}),
  memory: section({
    long_term_max_chars: whole(1).default(12_000),
    daily_per_day_max_chars: whole(1).default(4000),
    daily_files: whole(0).default(2),
    daily_max_chars: whole(1).default(8000),
  }).prefault({}),
  embeddings: section({
    backend: choice('off', 'http', 'redis').default('off'),
    base_url: webAddress().nullable().default(null),
    api_key: text('a key').nullable().default(null),
    model: text('the name of a model').nullable().default(null),
    redis_url: redisAddress().nullable().default(null),
    queue: text('the name of a list in Redis').default('queue:gpu_heavy'),
    timeout_seconds: amount('a number of seconds above 0', 0.001).default(30),
    batch_size: whole(1).default(64),
    batch_window_ms: whole(0).default(5),
  })
    .refine((embeddings) => embeddings.backend === 'off' || embeddings.model !== null, {
      path: ['model'],
      when: fits(z.object({ backend: z.string(), model: z.string().nullable() })),
      ...expected('the name of the embedding model: vectors of different models are never compared'),
    })
    .refine((embeddings) => embeddings.backend !== 'http' || embeddings.base_url !== null, {
      path: ['base_url'],
      when: fits(z.object({ backend: z.string(), base_url: z.string().nullable() })),
      ...expected('the address of the embedding server, like http://gpu:8080/v1'),
    })
    .refine((embeddings) => embeddings.backend !== 'redis' || embeddings.redis_url !== null, {
      path: ['redis_url'],
      when: fits(z.object({ backend: z.string(), redis_url: z.string().nullable() })),
      ...expected('the address of Redis, like redis://gpu:6379'),
    })
    .prefault({}),
  channels: section({
    telegram: telegramOptions.safeExtend(growing).optional(),
    discord: discordOptions.safeExtend(growing).optional(),
    whatsapp: whatsappOptions.safeExtend({ ...channelAccess, streaming: truth().default(false) }).optional(),
    terminal: section(growing).prefault({}),
  }).prefault({}),
  board: section({
    host: text('a host name or an address').default('127.0.0.1'),
    port: whole(0, 65_535).default(8420),
    token: text('a token').nullable().default(null),
  })
    .refine((board) => isLoopback(board.host) || board.token !== null, {
      path: ['token'],
      when: fits(z.object({ host: z.string(), token: z.string().nullable() })),
      ...expected('a token, because board.host can be reached from other machines'),
    })
    .prefault({}),
  access: access
    .extend({
      direct: access.shape.direct.default('pairing'),
      groups: access.shape.groups.default('listed'),
      chats: access.shape.chats.default([]),
      owners: access.shape.owners.default([]),
      control_chats: access.shape.control_chats.default([]),
      require_mention: access.shape.require_mention.default(true),
    })
    .prefault({}),
});

/** Documented for the product as a whole, but not built yet: said so, instead of being called unknown. */
export const laterKeys: readonly string[] = ['store', 'redis'];

function section<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object(shape, expected('keys and values'));
}

function text(what: string) {
  return z.string(expected(what)).trim().min(1, expected(what));
}

function choice<const Values extends readonly [string, ...string[]]>(...values: Values) {
  return z.enum(values, expected(`one of ${values.join(', ')}`));
}

/** A value from the environment is always text, so a number may stand there as text. */
function number(schema: z.ZodNumber) {
  return z.preprocess(
    (value) => (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value),
    schema,
  );
}

function whole(least: number, most = Number.MAX_SAFE_INTEGER) {
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`;
  const words = expected(`a whole number ${range}`);
  return number(z.int(words).min(least, words).max(most, words));
}

function amount(what: string, least: number) {
  const words = expected(what);
  return number(z.number(words).min(least, words));
}

function ids() {
  const words = expected('ids like telegram_-1001234567890');
  return z.array(z.string(words).regex(/^[a-z]+_[A-Za-z0-9._@%-]+$/, words), expected('a list of ids'));
}

function webAddress() {
  const words = expected('an address that begins with http:// or https://');
  return z.url({ protocol: /^https?$/, ...words });
}

function redisAddress() {
  const words = expected('an address that begins with redis:// or rediss://');
  return z.url({ protocol: /^rediss?$/, ...words });
}

function isZone(name: string): boolean {
  if (/^[+-]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Two keys are compared whenever both can be read, also where a third one is at fault. */
function fits(schema: z.ZodType) {
  return (payload: { value: unknown }) => schema.safeParse(payload.value).success;
}
