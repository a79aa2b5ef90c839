/** What goes wrong with calls of the API on command, and its rate limits. */
import type { FakeDiscord, Match, Payload, RateLimit, RestFault, Settings } from './discord-words.js';

/** A 429 with all its headers. */
export interface Limited {
  headers: Record<string, string>;
  body: Payload;
}

export interface Faults extends Pick<FakeDiscord, 'fail' | 'rateLimit' | 'heal'> {
  /** The fault for this call, which is one time less from now on. */
  faultFor(method: string, path: string): RestFault | Limited | null;
  /** Counts the call in its bucket: the headers of its answer, or that it is too much. */
  count(bucket: string): { headers: Record<string, string> } | Limited;
}

export function createFaults(settings: Settings, now: () => number): Faults {
  let scripted: { match: Match; fault: RestFault | Limited; times: number }[] = [];
  const buckets = new Map<string, { left: number; resetAt: number }>();

  return {
    fail(match, fault, { times = 1 } = {}) {
      scripted.push({ match, fault, times });
    },
    rateLimit({ retryAfter, times = 1, global = false, ...match }: RateLimit) {
      const headers = {
        'x-ratelimit-scope': global ? 'global' : 'user',
        ...(global ? { 'x-ratelimit-global': 'true' } : { 'x-ratelimit-bucket': 'scripted' }),
      };
      scripted.push({ match: global ? {} : match, fault: limited(retryAfter, global, headers), times });
    },
    heal() {
      scripted = [];
    },

    faultFor(method, path) {
      const found = scripted.find(
        ({ match, times }) =>
          times > 0 &&
          (match.method === undefined || match.method === method) &&
          (match.path === undefined || match.path.test(path)),
      );
      if (found === undefined) return null;
      found.times -= 1;
      return found.fault;
    },

    count(name) {
      const { limit, windowMs } = settings.bucket;
      const at = now();
      const known = buckets.get(name);
      const bucket =
        known === undefined || at >= known.resetAt ? { left: limit, resetAt: at + windowMs } : known;
      buckets.set(name, bucket);
      const seconds = (bucket.resetAt - at) / 1000;
      const headers = {
        'x-ratelimit-bucket': Buffer.from(name).toString('base64url').slice(-32),
        'x-ratelimit-limit': String(limit),
        'x-ratelimit-remaining': String(Math.max(0, bucket.left - 1)),
        'x-ratelimit-reset': String(bucket.resetAt / 1000),
        'x-ratelimit-reset-after': seconds.toFixed(3),
      };
      if (bucket.left === 0) return limited(seconds, false, { ...headers, 'x-ratelimit-scope': 'user' });
      bucket.left -= 1;
      return { headers };
    },
  };
}

function limited(retryAfter: number, global: boolean, headers: Record<string, string>): Limited {
  return {
    headers: { 'retry-after': String(retryAfter), ...headers },
    body: { message: 'You are being rate limited.', retry_after: retryAfter, global },
  };
}
