/**
 * Failed calls: the reason in one form, its meaning for a message, and when to retry. Discord bans the
 * address after 10,000 refused calls in ten minutes. No reason contains the token.
 */
import { DiscordAPIError, HTTPError, RateLimitError } from '@discordjs/rest';
import { LRUCache } from 'lru-cache';
import type { SendResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { backoffMs } from '../kit/supervise.js';

export interface DiscordFailure {
  /** For a log or a report. Never contains the token. */
  reason: string;
  /** Discord's error code (such as 50013); null if it gave none. */
  code: number | null;
  /** HTTP status; null if nobody answered. */
  status: number | null;
  retryAfterMs: number | null;
}

const TOKEN_HINT = ' (is channels.discord.token the one that the developer portal gave?)';

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

/** A failed API call. Its reason contains none of the call's tokens. */
export class CallFailed extends Error {
  constructor(readonly failure: DiscordFailure) {
    super(failure.reason);
  }
}

export function failureOf(error: unknown): DiscordFailure {
  if (error instanceof CallFailed) return error.failure;
  const nothing = { code: null, status: null, retryAfterMs: null };
  if (error instanceof DiscordAPIError) {
    const { status, code, message } = error;
    // No number: not Discord answered, but something in front of it.
    const told = typeof code === 'number' ? ` (code ${code})` : '';
    const hint = status === 401 ? TOKEN_HINT : '';
    const reason = `Discord answers ${status}${told}: ${message.replaceAll('\n', '; ')}${hint}`;
    return { ...nothing, reason, status, code: typeof code === 'number' ? code : null };
  }
  if (error instanceof HTTPError) {
    return { ...nothing, reason: `Discord answers ${error.status} ${error.message}`, status: error.status };
  }
  if (error instanceof RateLimitError) {
    const retryAfterMs = error.retryAfter > 0 ? error.retryAfter : null;
    return { ...nothing, reason: 'Discord limits the rate', status: 429, retryAfterMs };
  }
  // The call timed out, or its caller stopped waiting.
  if (error instanceof Error && error.name === 'AbortError') {
    return { ...nothing, reason: 'Discord gave no answer in time' };
  }
  return { ...nothing, reason: `Discord cannot be reached: ${wordsFor(error)}` };
}

function wordsFor(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  return (error.message || (code === '' ? error.name : 'no words')) + code;
}

export function withoutTokens(text: string, tokens: readonly string[]): string {
  return tokens
    .flatMap((token) => [token, encodeURIComponent(token)])
    .filter((token) => token !== '')
    .reduce((rest, token) => rest.replaceAll(token, '[token]'), text);
}

export type NotSent =
  | (Extract<SendResult, { kind: 'refused' }> & { isTooLarge?: boolean })
  | Extract<SendResult, { kind: 'unreachable' }>;

/** A wrong token (401), limits, and errors not from Discord itself may pass; other refusals are final. */
export function sendResult(failure: DiscordFailure): NotSent {
  const { reason, retryAfterMs, status, code } = failure;
  const isTooLarge = status === 413 || code === CODE.tooLarge;
  if (isRefusal(failure)) return { kind: 'refused', reason, ...(isTooLarge ? { isTooLarge } : {}) };
  return { kind: 'unreachable', reason, taken: 'no', ...(retryAfterMs === null ? {} : { retryAfterMs }) };
}

/** Discord would refuse the same call again. */
export function isRefusal({ code, status }: DiscordFailure): boolean {
  if (status === 413) return true;
  if (code === null || code === 0 || code === CODE.overloaded || status === null) return false;
  return status >= 400 && status < 500 && status !== 401 && status !== 429;
}

/** The buttons below a message are wrong. */
export function areButtonsRefused({ code, reason }: DiscordFailure): boolean {
  return code === CODE.invalidForm && reason.includes('components');
}

/** Codes with which Discord closes the gateway's connection. */
const CLOSED: Record<number, string> = {
  4004: `Discord refuses the token${TOKEN_HINT}`,
  4008: 'Discord’s gateway says that we send too much',
  4009: 'the session timed out',
  4010: 'Discord’s gateway refuses our shard',
  4011: 'the bot is in more servers than so few connections may serve (channels.discord.shards: auto takes more)',
  4012: 'Discord’s gateway does not know our version any more',
  4013: 'Discord’s gateway does not know our intents',
  4014: 'Discord refuses the intent Message Content: tick it at discord.com/developers/applications, on the page Bot, under Privileged Gateway Intents',
};

export function closedWords(code: number): string {
  return `${CLOSED[code] ?? 'the connection to Discord’s gateway was closed'} (close code ${code})`;
}

/** Somebody has to act before Discord lets us in. */
export function isRefusedWith(code: number): boolean {
  return code === 4004 || (code >= 4010 && code <= 4014);
}

/** Size of the channel's caches. */
export const MOST_NOTED = 1_000;
/** A request for a longer wait is not credible. */
const LONGEST_LIMIT_MS = 7 * 24 * 3_600_000;
/** A wait that a person would ask about. */
export const LONG_WAIT_MS = 60_000;
const ALL_CALLS = '';

/** The waits that Discord asks for (429), by kind of call or for all. Refusals in a row make them longer. */
export function createLimits(clock: Clock) {
  const limits = new LRUCache<string, { refusals: number; until: number; reason: string }>({
    max: MOST_NOTED,
  });

  return {
    /** Why such a call may not be made now; null if it may. */
    reason(kind: string): DiscordFailure | null {
      const [limit] = [limits.get(kind), limits.get(ALL_CALLS)]
        .flatMap((each) => each ?? [])
        .sort((one, other) => other.until - one.until);
      const retryAfterMs = (limit?.until ?? 0) - clock.now();
      if (limit === undefined || retryAfterMs <= 0) return null;
      return { reason: limit.reason, code: null, status: 429, retryAfterMs };
    },

    refused(kind: string, isGlobal: boolean, failure: DiscordFailure): DiscordFailure {
      const key = isGlobal ? ALL_CALLS : kind;
      const refusals = (limits.get(key)?.refusals ?? 0) + 1;
      const wantedMs = Math.min(failure.retryAfterMs ?? 0, LONGEST_LIMIT_MS);
      const retryAfterMs = Math.max(wantedMs, backoffMs(refusals - 1));
      const until = clock.now() + retryAfterMs;
      // A long wait is read about long after it was logged: gives the time of its end.
      const when =
        retryAfterMs < LONG_WAIT_MS
          ? `for ${Math.ceil(retryAfterMs / 1000)} s`
          : `until ${new Date(until).toISOString().slice(0, 19)}Z`;
      const reason = `Discord limits the rate ${isGlobal ? 'of all calls' : 'of this kind of call'}, ${when}`;
      limits.set(key, { refusals, until, reason });
      return { ...failure, reason, retryAfterMs };
    },

    /** Such a call was answered. One made before the wait began does not end it. */
    served(kind: string): void {
      for (const key of [kind, ALL_CALLS]) {
        if ((limits.get(key)?.until ?? 0) <= clock.now()) limits.delete(key);
      }
    },
  };
}

const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 3_600_000;
const WINDOW_MS = 600_000;
/** Our share of Discord's 10,000. */
const MOST_IN_WINDOW = 2_000;
/** Codes after which every call of the same kind is refused. */
const LASTING = new Set<number | null>([
  CODE.missingAccess,
  CODE.missingPermissions,
  CODE.noDirectMessages,
  CODE.noHistoryToReplyTo,
  CODE.noVoiceHere,
]);

/**
 * Calls that the bot is not permitted to make are suspended, longer each time, until Discord reports a change
 * of roles or channels. If far too many calls are refused, all are suspended for some minutes.
 */
export function createForbidden(clock: Clock) {
  /** By kind of call. */
  const bars = new LRUCache<string, { until: number; pauseMs: number; failure: DiscordFailure }>({
    max: MOST_NOTED,
  });
  let lifts = 0;
  let refused: number[] = [];

  return {
    /** Why such a call may not be made now; null if it may. */
    reason(kind: string): DiscordFailure | null {
      const bar = bars.get(kind);
      const barredMs = (bar?.until ?? 0) - clock.now();
      if (bar !== undefined && barredMs > 0) {
        const { failure } = bar;
        return {
          ...failure,
          reason: `${failure.reason}; not asked again for ${Math.ceil(barredMs / 60_000)} min`,
        };
      }
      refused = refused.filter((at) => clock.now() - at < WINDOW_MS);
      if (refused.length < MOST_IN_WINDOW) return null;
      const retryAfterMs = (refused[0] ?? clock.now()) + WINDOW_MS - clock.now();
      const reason = `Discord refused ${MOST_IN_WINDOW} calls within ten minutes; pausing for ${Math.ceil(retryAfterMs / 1000)} s`;
      return { reason, code: null, status: 429, retryAfterMs };
    },
    /** The answer to any call. Discord does not count a limit shared with others. */
    count(status: number, scope: string | null): void {
      if (status === 401 || status === 403 || (status === 429 && scope !== 'shared'))
        refused.push(clock.now());
    },
    note(kind: string, failure: DiscordFailure): void {
      if (failure.status !== 403 || !LASTING.has(failure.code)) return;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * (bars.get(kind)?.pauseMs ?? FIRST_PAUSE_MS / 2));
      bars.set(kind, { until: clock.now() + pauseMs, pauseMs, failure });
    },
    clear: (kind: string) => void bars.delete(kind),
    /** Roles or channels have changed: each may be retried once. */
    lift(): void {
      lifts += 1;
      for (const bar of bars.values()) bar.until = 0;
    },
    /** Somebody wrote in a direct chat: they may accept messages again. */
    liftIn(room: string): void {
      for (const [kind, bar] of bars.entries()) if (kind.includes(room)) bar.until = 0;
    },
    /** Grows with every change of roles and channels. */
    lifts: () => lifts,
  };
}
