/**
 * Whether an earlier try of a message arrived, before it is sent again. Discord itself knows a message by its nonce, but
 * only for some minutes, and not the answers to native commands nor what goes through a webhook. Beyond that it is looked
 * for: among what the gateway told us of our own messages, and among the newest of the channel.
 */
import type { SendResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { bounded } from '../kit/bounded.js';
import type { Api } from './api.js';
import { failureOf, isRefusal, sendResult } from './failure.js';
import type { Identity } from './identity.js';
import { begins, mayBe, says, type Words } from './likeness.js';
import type { Outgoing } from './outbound.js';
import { read } from './payload.js';
import { isOurs } from './said.js';
import { byAge } from './snowflake.js';

/** How many are remembered; older ones go. */
const MOST_NOTED = 1_000;
/** Of what is tried again and again while it is still being written, the newest words. */
const MOST_VERSIONS = 10;

/** Discord's memory for nonces is of a few minutes. */
const NONCE_MS = 120_000;

interface Tried {
  /** When the first try was made. */
  since: number;
  /** What was to be said, the newest first. */
  versions: Words[];
}

export interface Found {
  result: SendResult;
  /** It stands there with other words, or perhaps does: those of an earlier try, or the beginning of these. */
  isOutdated: boolean;
}

export interface Earlier {
  /** Our own message, as the gateway brought it. */
  noteEcho(payload: unknown): void;
  noteTry(message: Outgoing): void;
  noteSent(message: Outgoing, id: string): void;
  /** null when there was none, or none can be found. */
  find(message: Outgoing, signal: AbortSignal): Promise<Found | null>;
  /** With these very words, asking the channel in any case. */
  findInChannel(message: Outgoing, signal: AbortSignal): Promise<SendResult | null>;
}

export function createEarlier(parts: {
  api: Api;
  identity: Identity;
  isOurWebhook(id: string): boolean;
  clock: Clock;
  token: string;
}): Earlier {
  const { api, identity, isOurWebhook, clock, token } = parts;
  /** By room and nonce: the ids of messages that arrived, and what was tried of a message. */
  const arrived = bounded<string, string>(MOST_NOTED);
  const tried = bounded<string, Tried>(MOST_NOTED);
  /** By id: which message it is. */
  const known = bounded<string, string>(MOST_NOTED);

  function note(key: string, id: string): void {
    arrived.set(key, id);
    known.set(id, key);
  }

  function othersTried(message: Outgoing): Words[] {
    const versions = tried.get(keyOf(message))?.versions ?? [];
    return versions.filter(({ content }) => content !== message.content);
  }

  async function search(message: Outgoing, signal: AbortSignal): Promise<Found | null> {
    try {
      const me = await identity.ask(signal);
      const path = `/channels/${message.room}/messages`;
      const page = await api.call({ method: 'GET', path, query: { limit: '100' } }, { signal });
      const newest = (Array.isArray(page) ? page : []).flatMap((each) => read.sent(each) ?? []);
      const ours = newest
        .filter((each) => isOurs(each, { me, isOurWebhook }) && mayBe(each, message))
        .filter(({ id }) => (known.get(id) ?? keyOf(message)) === keyOf(message))
        .sort(byAge);
      const same = ours.findLast((each) => says(each, message, me));
      const others = othersTried(message);
      const found =
        same ??
        ours.findLast((each) => others.some((words) => says(each, words, me))) ??
        ours.findLast((each) => begins(each, message, me));
      if (found === undefined) return null;
      note(keyOf(message), found.id);
      const result: SendResult = { kind: 'sent', platformMessageId: found.id };
      return { result, isOutdated: same === undefined };
    } catch (error) {
      const failure = failureOf(error, token);
      // Where we may not look, nothing can be found; what then is sent may be there twice.
      return isRefusal(failure) ? null : { result: sendResult(failure), isOutdated: false };
    }
  }

  return {
    noteEcho(payload) {
      const told = read.echo(payload);
      if (told?.nonce !== undefined) note(`${told.channel_id}/${told.nonce}`, told.id);
    },
    noteTry(message) {
      const { content, heading, authored } = message;
      const since = tried.get(keyOf(message))?.since ?? clock.now();
      const words = { content, heading, ...(authored === undefined ? {} : { authored }) };
      const versions = [words, ...othersTried(message)].slice(0, MOST_VERSIONS);
      tried.set(keyOf(message), { since, versions });
    },
    noteSent: (message, id) => note(keyOf(message), id),
    async find(message, signal) {
      if (message.earlierTries === 0) return null;
      const id = arrived.get(keyOf(message));
      if (id !== undefined) {
        const result: SendResult = { kind: 'sent', platformMessageId: id };
        return { result, isOutdated: othersTried(message).length > 0 };
      }
      const firstTry = tried.get(keyOf(message))?.since;
      const now = clock.now();
      const isFresh =
        message.authored === undefined &&
        now - message.createdAt <= NONCE_MS &&
        firstTry !== undefined &&
        now - firstTry <= NONCE_MS;
      return isFresh ? null : search(message, signal);
    },
    async findInChannel(message, signal) {
      const found = await search(message, signal);
      return found === null || found.isOutdated ? null : found.result;
    },
  };
}

function keyOf({ room, nonce }: Outgoing): string {
  return `${room}/${nonce}`;
}
