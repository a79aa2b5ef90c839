/**
 * The updates that wait for a bot on the fake Telegram: given to a poller, confirmed by its next offset, or sent to a
 * webhook. The rules are those of tdlib/telegram-bot-api (Client.cpp: process_get_updates_query, do_get_updates,
 * add_update, update_allowed_update_types) and of td's TQueue.cpp.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../src/core/clock.js';
import type { Payload } from './telegram-body.js';

interface Conflict {
  status: 409;
  description: string;
}

/** How a call is answered; the server knows how to write it. */
export interface Answers {
  ok(response: ServerResponse, result: unknown): void;
  refuse(response: ServerResponse, conflict: Conflict): void;
}

export interface UpdateQueue {
  /** Gives it an id unless it has one. What nobody asked for, or is older than a day, is never queued. */
  push(update: Payload): number;
  getUpdates(payload: Payload, response: ServerResponse): void;
  setWebhook(to: { url: string; secret: string | null; allowed?: unknown } | null): void;
  webhook(): { url: string; secret: string | null } | null;
  drop(): void;
  pending(): number;
  /** After a week without updates, or on another server: the next id is a lower one, and nothing waits. */
  jumpBack(to?: number): void;
  close(): void;
}

const ACTIVE =
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
const TERMINATED =
  'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running';

/** An offset further ahead is invalid. */
const MOST_AHEAD = 10;
const MOST_UPDATES = 100;
const MOST_SECONDS = 50;
/** The same offset again within this time gets one update; and within this time it waits at least as long. */
const HASTY_MS = 500;
const IMPATIENT_SECONDS = 3;
const KEPT_SECONDS = 86_400;

/** Kinds of updates that come only to those who list them. */
const UNASKED = new Set(['chat_member', 'message_reaction', 'message_reaction_count']);
const DATED = ['message', 'edited_message', 'channel_post', 'edited_channel_post'];

export function createUpdateQueue(answers: Answers, webhookRetryMs: number, clock: Clock): UpdateQueue {
  let queue: Payload[] = [];
  let poller: { response: ServerResponse; offset: number; limit: number; cancel(): void } | null = null;
  let webhook: { url: string; secret: string | null } | null = null;
  let flushing = false;
  let calling = false;
  let nextId = 700_000_001;
  let previous = { offset: Number.NaN, at: Number.NEGATIVE_INFINITY };
  /** Null: all kinds but the unasked. */
  let allowed: Set<string> | null = null;

  /** What an offset gives, and what it throws away. */
  function read(offset: number, limit: number): Payload[] {
    if (offset < 0) queue = queue.slice(offset);
    // One that is too far ahead counts as invalid: everything from the head, and nothing is confirmed.
    else if (offset <= nextId + MOST_AHEAD) {
      queue = queue.filter((update) => Number(update.update_id) >= offset);
    }
    return queue.slice(0, limit);
  }

  function answerPoller(): void {
    if (poller === null) return;
    const { response, offset, limit, cancel } = poller;
    poller = null;
    cancel();
    answers.ok(response, read(offset, limit));
  }

  function allow(kinds: unknown): void {
    if (!Array.isArray(kinds)) return;
    allowed = kinds.length === 0 ? null : new Set(kinds.map(String));
  }

  function isQueued(update: Payload): boolean {
    const kinds = Object.keys(update).filter((key) => key !== 'update_id');
    const isAsked = (kind: string) => (allowed === null ? !UNASKED.has(kind) : allowed.has(kind));
    const isOld = DATED.some((kind) => {
      const { date, edit_date: edited = date } = (update[kind] ?? {}) as Payload;
      return typeof edited === 'number' && edited < Date.now() / 1000 - KEPT_SECONDS;
    });
    return kinds.some(isAsked) && !isOld;
  }

  /** One update at a time, again and again until it is taken. */
  async function callWebhook(): Promise<void> {
    if (calling) return;
    calling = true;
    while (webhook !== null && queue.length > 0) {
      const { url, secret } = webhook;
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (secret !== null) headers['x-telegram-bot-api-secret-token'] = secret;
      const taken = await fetch(url, { method: 'POST', headers, body: JSON.stringify(queue[0]) }).then(
        async (response) => {
          await response.arrayBuffer();
          return response.ok;
        },
        () => false,
      );
      if (taken) queue.shift();
      else await new Promise((resolve) => setTimeout(resolve, webhookRetryMs));
    }
    calling = false;
  }

  return {
    push(update) {
      const id = typeof update.update_id === 'number' ? update.update_id : nextId;
      if (!isQueued(update)) return id;
      nextId = Math.max(nextId, id + 1);
      queue.push({ update_id: id, ...update });
      if (webhook !== null) void callWebhook();
      else if (!flushing) {
        flushing = true;
        // What is said at once is given in one batch.
        setImmediate(() => {
          flushing = false;
          if (queue.length > 0) answerPoller();
        });
      }
      return id;
    },

    getUpdates(payload, response) {
      if (webhook !== null) {
        answers.refuse(response, { status: 409, description: ACTIVE });
        return;
      }
      if (poller !== null) {
        poller.cancel();
        answers.refuse(poller.response, { status: 409, description: TERMINATED });
        poller = null;
      }
      const offset = Number(payload.offset ?? 0);
      allow(payload.allowed_updates);
      const since = offset === previous.offset ? clock.now() - previous.at : Number.POSITIVE_INFINITY;
      previous = { offset, at: clock.now() };
      const limit = since < HASTY_MS ? 1 : Math.min(Number(payload.limit ?? MOST_UPDATES), MOST_UPDATES);
      const least = since < IMPATIENT_SECONDS * 1000 ? IMPATIENT_SECONDS : 0;
      const seconds = Math.min(Math.max(Number(payload.timeout ?? 0), least), MOST_SECONDS);
      if (read(offset, limit).length > 0 || seconds === 0) {
        answers.ok(response, read(offset, limit));
        return;
      }
      const mine = { response, offset, limit, cancel: clock.after(seconds * 1000, answerPoller) };
      poller = mine;
      response.on('close', () => {
        mine.cancel();
        if (poller === mine) poller = null;
      });
    },

    setWebhook(to) {
      webhook = to === null ? null : { url: to.url, secret: to.secret };
      if (to !== null) allow(to.allowed);
      void callWebhook();
    },
    webhook: () => webhook,
    drop() {
      queue = [];
    },
    pending: () => queue.length,
    jumpBack(to = 500) {
      queue = [];
      nextId = to;
    },
    close() {
      webhook = null;
      poller?.cancel();
      poller = null;
    },
  };
}
