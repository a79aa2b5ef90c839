/** Why a call failed, in one form, and what that means for a message that was to be sent. */
import { GrammyError, HttpError } from 'grammy/web';
import type { SendResult } from '../../core/channel.js';

/** No usable answer. The message never holds the address, which holds the token. */
export class TransportError extends Error {
  override readonly name = 'TransportError';

  constructor(
    message: string,
    /** The request may have been taken: the connection stood, and all of it was on its way. */
    readonly reached: boolean,
    /** What the server, or a proxy before it, answered instead of the Bot API's JSON. */
    readonly status: number | null,
  ) {
    super(message);
  }
}

/** A call that was not made: Telegram wants to be left alone in that chat for so long. */
export class HeldBack extends Error {
  override readonly name = 'HeldBack';

  constructor(readonly ms: number) {
    super(`Telegram asked to wait, ${Math.ceil(ms / 1000)} s more`);
  }
}

export interface CallFailure {
  /** For a log or a report. Never holds the token. */
  reason: string;
  /** Telegram's error code; null where it was not Telegram that answered. */
  code: number | null;
  description: string;
  /** Whether Telegram may have done what was asked. */
  taken: 'no' | 'unknown';
  retryAfterMs: number | null;
  migratedTo: string | null;
  /** The request was larger than Telegram, or a proxy before it, takes. */
  tooLarge: boolean;
}

const TOO_LARGE = 413;
const TOO_MANY = 429;
/** Also where it says 0: a call at once would be refused at once. */
const LEAST_WAIT_MS = 1_000;

/** The bot that made the call. */
export interface BotCredentials {
  token: string;
  /** Where in config.yaml its token is. */
  setting: string;
}

export function failureOf(error: unknown, { token, setting }: BotCredentials): CallFailure {
  const failure = { code: null, description: '', retryAfterMs: null, migratedTo: null, tooLarge: false };
  if (error instanceof GrammyError) {
    const { error_code: code, description, parameters } = error;
    const { retry_after: seconds, migrate_to_chat_id: migratedTo } = parameters;
    return {
      reason: redacted(
        `Telegram answers ${code}: ${description}${hintFor(code, description, setting)}`,
        token,
      ),
      code,
      description,
      taken: 'no',
      retryAfterMs: seconds === undefined ? null : Math.max(LEAST_WAIT_MS, seconds * 1000),
      migratedTo: migratedTo === undefined ? null : String(migratedTo),
      tooLarge: code === TOO_LARGE,
    };
  }
  if (error instanceof HeldBack) {
    return { ...failure, reason: error.message, code: TOO_MANY, taken: 'no', retryAfterMs: error.ms };
  }
  const cause = error instanceof HttpError ? error.error : error;
  if (cause instanceof TransportError) {
    // An HTTP error is an answer, also where a proxy gave it: then the request did not reach Telegram.
    const answered = cause.status !== null && cause.status >= 400;
    const words = cause.reached ? 'the connection to Telegram broke' : 'Telegram cannot be reached';
    return {
      ...failure,
      reason: `${answered ? 'Telegram does not answer' : words}: ${cause.message}`,
      taken: cause.reached && !answered ? 'unknown' : 'no',
      tooLarge: cause.status === TOO_LARGE,
    };
  }
  const words = cause instanceof Error ? cause.message : String(cause);
  return { ...failure, reason: redacted(words, token), taken: 'unknown' };
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

/** A wrong token (401, 404), rate limits and errors of the server may pass; any other refusal is final. */
export function sendResult(failure: CallFailure): SendResult {
  const { reason, code, taken, retryAfterMs, migratedTo, tooLarge } = failure;
  if (migratedTo !== null) return { kind: 'moved', address: migratedTo };
  if (tooLarge) return { kind: 'refused', reason };
  if (code !== null && code >= 400 && code < 500 && ![401, 404, TOO_MANY].includes(code)) {
    return { kind: 'refused', reason };
  }
  return { kind: 'unreachable', reason, taken, ...(retryAfterMs === null ? {} : { retryAfterMs }) };
}

type Test = (failure: CallFailure) => boolean;

/** Of Telegram's own refusals, by code and description. */
function refusal(code: number, pattern: RegExp): Test {
  return (failure) => failure.code === code && pattern.test(failure.description);
}

export const isMethodUnknown = refusal(404, /method/i);
/** Polling is refused while a webhook is set. */
export const isWebhookInTheWay = refusal(409, /webhook/i);
/** An edit that would change nothing. */
export const isNotModified = refusal(400, /message is not modified/i);
/** There is no message of that number in the chat. */
export const isNobodys = refusal(400, /message to edit not found|message_id_invalid/i);
/** Somebody else wrote it. */
export const isForeign = refusal(400, /message can't be edited/i);
/** The receiver takes nothing of this kind (VOICE_MESSAGES_FORBIDDEN). */
export const isUnwanted = refusal(400, /voices?(_messages)?_forbidden/i);
const isOfAnotherKind = refusal(400, /photo|image|dimension|voice|wrong (file|type)|file/i);
const isOutside = refusal(400, /chat not found|no(t enough)? rights|write_forbidden/i);

/** It is not taken as this kind of file; as a document it may be. */
export const isKindRefused: Test = (failure) =>
  isMethodUnknown(failure) || failure.tooLarge || isOfAnotherKind(failure);

/** This bot is not in the chat, or may not write there: another one of ours may. */
export const isNotThere: Test = (failure) =>
  failure.migratedTo === null && (failure.code === 403 || isOutside(failure));

/** The token is refused for every call. */
export const isLockedOut: Test = (failure) =>
  failure.code === 401 || (failure.code === 404 && !isMethodUnknown(failure));
