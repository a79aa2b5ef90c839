/** Failures of calls in one form, their meaning for a message being sent, and a request without its refused part. */
import { GrammyError, HttpError } from 'grammy/web';
import type { SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { withAddresses } from '../markdown/inline.js';
import { MAX_TEXT, type SendRequest } from './outbound.js';

/** No usable answer. The message never contains the URL, which contains the token. */
export class TransportError extends Error {
  override readonly name = 'TransportError';

  constructor(
    message: string,
    /** The request may have been processed: the connection was up, and all of it was sent. */
    readonly reached: boolean,
    /** HTTP status where the server, or a proxy, answered with something else than the Bot API's JSON. */
    readonly status: number | null,
  ) {
    super(message);
  }
}

/** Carries the failure of a call. */
export class CallError extends Error {
  override readonly name = 'CallError';

  constructor(readonly failure: CallFailure) {
    super(failure.reason);
  }
}

export interface CallFailure {
  /** For a log or a report. Never contains the token. */
  reason: string;
  /** Telegram's error code; null if Telegram did not answer. */
  code: number | null;
  description: string;
  /** Whether Telegram may have processed the request. */
  taken: 'no' | 'unknown';
  retryAfterMs: number | null;
  migratedTo: string | null;
  /** The request was too large for Telegram, or for a proxy. */
  tooLarge: boolean;
}

const TOO_LARGE = 413;
const TOO_MANY = 429;
/** Applies even if it says 0: an immediate call would be refused. */
const LEAST_WAIT_MS = 1_000;

export interface BotCredentials {
  token: string;
  /** The setting in config.yaml that holds its token. */
  setting: string;
}

const NO_ANSWER = { code: null, description: '', retryAfterMs: null, migratedTo: null, tooLarge: false };

/** Of a call not made: back-off in that chat. */
export function heldBack(ms: number): CallFailure {
  const reason = `Telegram asked to wait, ${Math.ceil(ms / 1000)} s more`;
  return { ...NO_ANSWER, reason, code: TOO_MANY, taken: 'no', retryAfterMs: ms };
}

export function failureOf(error: unknown, { token, setting }: BotCredentials): CallFailure {
  if (error instanceof CallError) return error.failure;
  if (error instanceof GrammyError) {
    const { error_code: code, description, parameters } = error;
    const { retry_after: seconds, migrate_to_chat_id: migratedTo } = parameters;
    const reason = `Telegram answers ${code}: ${description}${hintFor(code, description, setting)}`;
    return {
      reason: redacted(reason, token),
      code,
      description,
      taken: 'no',
      retryAfterMs: seconds === undefined ? null : Math.max(LEAST_WAIT_MS, seconds * 1000),
      migratedTo: migratedTo === undefined ? null : String(migratedTo),
      tooLarge: code === TOO_LARGE,
    };
  }
  const cause = error instanceof HttpError ? error.error : error;
  if (!(cause instanceof TransportError)) {
    const words = cause instanceof Error ? cause.message : String(cause);
    return { ...NO_ANSWER, reason: redacted(words, token), taken: 'unknown' };
  }
  // An HTTP error is an answer, even from a proxy: then the request did not reach Telegram.
  const answered = cause.status !== null && cause.status >= 400;
  const words = cause.reached ? 'the connection to Telegram broke' : 'Telegram cannot be reached';
  return {
    ...NO_ANSWER,
    reason: `${answered ? 'Telegram does not answer' : words}: ${cause.message}`,
    taken: cause.reached && !answered ? 'unknown' : 'no',
    tooLarge: cause.status === TOO_LARGE,
  };
}

function hintFor(code: number, description: string, setting: string): string {
  if (code === 404 && /method/i.test(description)) {
    return ' (the Bot API server is older than this, and needs an update)';
  }
  if (code === 401 || code === 404) return ` (is ${setting} the one that @BotFather gave?)`;
  return code === 409 ? ' (only one program may receive what is sent to a bot)' : '';
}

function redacted(text: string, token: string): string {
  return text.replaceAll(token, '[token]').replaceAll(encodeURIComponent(token), '[token]');
}

/** A wrong token (401, 404), rate limits and server errors may pass; any other refusal is final. */
export function sendResult(failure: CallFailure): SendResult {
  const { reason, code, taken, retryAfterMs, migratedTo, tooLarge } = failure;
  if (migratedTo !== null) return { kind: 'moved', address: migratedTo };
  if (tooLarge) return { kind: 'refused', reason };
  if (code !== null && code >= 400 && code < 500 && ![401, 404, TOO_MANY].includes(code)) {
    return { kind: 'refused', reason };
  }
  return { kind: 'unreachable', reason, taken, retryAfterMs: retryAfterMs ?? undefined };
}

type Test = (failure: CallFailure) => boolean;

/** Matches Telegram's own refusals by code and description. */
function refusal(code: number, pattern: RegExp): Test {
  return (failure) => failure.code === code && pattern.test(failure.description);
}

export const isMethodUnknown = refusal(404, /method/i);
/** Polling is refused while a webhook is set. */
export const isWebhookInTheWay = refusal(409, /webhook/i);
export const isNotModified = refusal(400, /message is not modified/i);
/** The chat has no message of that number. */
export const isNobodys = refusal(400, /message to edit not found|message_id_invalid/i);
/** Somebody else wrote the message. */
export const isForeign = refusal(400, /message can't be edited/i);
/** The receiver refuses this kind of file (VOICE_MESSAGES_FORBIDDEN). */
export const isUnwanted = refusal(400, /voices?(_messages)?_forbidden/i);
const isOfAnotherKind = refusal(400, /photo|image|dimension|voice|wrong (file|type)|file/i);
const isOutside = refusal(400, /chat not found|no(t enough)? rights|write_forbidden/i);

/** Refused as this kind of file; may be accepted as a document. */
export const isKindRefused: Test = (failure) =>
  isMethodUnknown(failure) || failure.tooLarge || isOfAnotherKind(failure);

/** This bot is not in the chat, or may not write there; another of ours may. */
export const isNotThere: Test = (failure) =>
  failure.migratedTo === null && (failure.code === 403 || isOutside(failure));

/** The token is refused for every call. */
export const isLockedOut: Test = (failure) =>
  failure.code === 401 || (failure.code === 404 && !isMethodUnknown(failure));

/** The parts of a request that may be dropped. */
export type Refusable = Pick<
  SendRequest,
  'chat_id' | 'text' | 'entities' | 'message_thread_id' | 'reply_parameters' | 'reply_markup'
>;

/** In this order. Some servers refuse a reply, although the request allows sending without. */
const REFUSALS = [
  ['reply_markup', /button|reply.markup|keyboard/i, "a message's buttons were refused; sending it without"],
  ['entities', /entit|markup|parse|nested/i, "a message's markup was refused; sending it plain"],
  [
    'message_thread_id',
    /thread not found|topic_(closed|deleted|id_invalid)/i,
    'a topic is gone or closed; sending to the chat itself',
  ],
  ['reply_parameters', /repl(y|ied)/i, 'the answered message is gone; sending without naming it'],
] as const;

/** null if nothing was refused. */
export function withoutRefused<Request extends Refusable>(
  request: Request,
  { code, description, reason }: CallFailure,
  log: Log,
  mostText?: number,
): Request | null {
  if (code !== 400) return null;
  const refusal = REFUSALS.find(([part, about]) => request[part] !== undefined && about.test(description));
  if (refusal === undefined) return null;
  const [part, , words] = refusal;
  log[part === 'reply_parameters' ? 'info' : 'warn']({ channel: 'telegram', reason }, words);
  return part === 'entities' ? withoutMarkup(request, mostText) : without(request, part);
}

function without<Request extends object>(request: Request, field: keyof Request): Request {
  const rest = { ...request };
  delete rest[field];
  return rest;
}

/** Writes link addresses after their labels, as far as there is room. */
export function withoutMarkup<Request extends Pick<SendRequest, 'text' | 'entities'>>(
  request: Request,
  limit = MAX_TEXT,
): Request {
  const { entities = [], text } = request;
  const shown = withAddresses(text, entities);
  return { ...without(request, 'entities'), text: shown.length <= limit ? shown : text };
}
