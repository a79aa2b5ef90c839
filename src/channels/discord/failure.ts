/** What went wrong with a call, in one form, and what it means for a message that was to be sent. */
import { DiscordAPIError, HTTPError, RateLimitError } from '@discordjs/rest';
import type { SendResult } from '../../core/channel.js';

export interface Failure {
  /** For a log or a report. Never holds the token. */
  reason: string;
  /** Discord's own code for what is wrong (50013); null where it told none. */
  code: number | null;
  /** Of HTTP; null where nobody answered. */
  status: number | null;
  retryAfterMs: number | null;
}

const HINTS: Record<number, string> = {
  401: ' (is channels.discord.token the one that the developer portal gave?)',
};

/** Discord's codes that are worth acting on. */
export const CODE = {
  unknownChannel: 10003,
  unknownMessage: 10008,
  unknownWebhook: 10015,
  unknownInteraction: 10062,
  alreadyAnswered: 40060,
  missingAccess: 50001,
  noDirectMessages: 50007,
  tooLarge: 40005,
  tokenExpired: 50027,
  invalidForm: 50035,
  noVoiceHere: 50173,
  missingPermissions: 50013,
  overloaded: 130000,
  tooManyWebhooks: 30007,
  noHistoryToReplyTo: 160002,
} as const;

/** A call of the API that failed. Its reason holds none of the tokens that the call was made with. */
export class CallFailed extends Error {
  constructor(readonly failure: Failure) {
    super(failure.reason);
  }
}

/** The call was not answered in time, or is not waited for any more. */
export class Aborted extends Error {
  override readonly name = 'Aborted';
}

export function failureOf(error: unknown): Failure {
  if (error instanceof CallFailed) return error.failure;
  const nothing = { code: null, status: null, retryAfterMs: null };
  if (error instanceof DiscordAPIError) {
    const { status, code, message } = error;
    // What is no number was not Discord's answer, but of something before it.
    const told = typeof code === 'number' ? ` (code ${code})` : '';
    const reason = `Discord answers ${status}${told}: ${message.replaceAll('\n', '; ')}${HINTS[status] ?? ''}`;
    return { ...nothing, reason, status, code: typeof code === 'number' ? code : null };
  }
  if (error instanceof HTTPError) {
    return { ...nothing, reason: `Discord answers ${error.status} ${error.message}`, status: error.status };
  }
  if (error instanceof RateLimitError) {
    const { global, retryAfter: wait } = error;
    const which = global ? 'of all calls' : 'of this kind of call';
    const told = wait > 0 ? `, for ${Math.ceil(wait / 1000)} s` : '';
    const retryAfterMs = wait > 0 ? wait : null;
    return { ...nothing, reason: `Discord limits the rate ${which}${told}`, status: 429, retryAfterMs };
  }
  if (error instanceof Aborted || (error instanceof Error && error.name === 'AbortError')) {
    return { ...nothing, reason: 'Discord gave no answer in time, or it was not waited for' };
  }
  return { ...nothing, reason: `Discord cannot be reached: ${wordsFor(error)}` };
}

function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && typeof error.code === 'string')
    return `${error.message || 'no words'} (${error.code})`;
  return error.message || error.name;
}

export function withoutTokens(text: string, tokens: readonly string[]): string {
  return tokens.reduce(
    (rest, token) =>
      token === ''
        ? rest
        : rest.replaceAll(token, '[token]').replaceAll(encodeURIComponent(token), '[token]'),
    text,
  );
}

/**
 * A wrong token (401), limits, and what was not answered by Discord itself pass; every other no it will say again. What
 * it took without our hearing of it is found again by its key.
 */
export function sendResult(failure: Failure): NotSent {
  const { reason, retryAfterMs } = failure;
  if (isRefusal(failure)) {
    return { kind: 'refused', reason, ...(isTooLarge(failure) ? { isTooLarge: true as const } : {}) };
  }
  return { kind: 'unreachable', reason, taken: 'no', ...(retryAfterMs === null ? {} : { retryAfterMs }) };
}

export type NotSent =
  | (Extract<SendResult, { kind: 'refused' }> & { isTooLarge?: true })
  | Extract<SendResult, { kind: 'unreachable' }>;

function isTooLarge({ code, status }: Failure): boolean {
  return status === 413 || code === CODE.tooLarge;
}

/** Discord said no, and will say it again. */
export function isRefusal({ code, status }: Failure): boolean {
  if (status === 413) return true;
  if (code === null || code === 0 || code === CODE.overloaded || status === null) return false;
  return status >= 400 && status < 500 && status !== 401 && status !== 429;
}

/** What is wrong with a message is the buttons below it. */
export function areButtonsRefused({ code, reason }: Failure): boolean {
  return code === CODE.invalidForm && reason.includes('components');
}

/** What Discord means by the code with which it closes the connection of the gateway. */
const CLOSED: Record<number, string> = {
  4004: 'Discord refuses the token (is channels.discord.token the one that the developer portal gave?)',
  4008: 'Discord’s gateway says that we send too much',
  4009: 'the session timed out',
  4010: 'Discord’s gateway refuses our shard',
  4011: 'the bot is in more servers than one connection may serve',
  4012: 'Discord’s gateway does not know our version any more',
  4013: 'Discord’s gateway does not know our intents',
  4014: 'Discord refuses the intent Message Content: tick it at discord.com/developers/applications, on the page Bot, under Privileged Gateway Intents',
};
const REFUSED = new Set([4004, 4010, 4011, 4012, 4013, 4014]);

export function closedWords(code: number): string {
  return `${CLOSED[code] ?? 'the connection to Discord’s gateway was closed'} (close code ${code})`;
}

/** Whether somebody has to do something about it. */
export function isRefusedWith(code: number): boolean {
  return REFUSED.has(code);
}
