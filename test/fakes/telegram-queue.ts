/** The updates that wait for a bot on the fake Telegram: given to a poller, confirmed by its next offset, or sent to a webhook. */
import type { ServerResponse } from 'node:http';
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
  /** Gives it an id unless it has one. */
  push(update: Payload): number;
  getUpdates(payload: Payload, response: ServerResponse): void;
  setWebhook(to: { url: string; secret: string | null } | null): void;
  webhook(): { url: string; secret: string | null } | null;
  drop(): void;
  pending(): number;
  close(): void;
}

const ACTIVE =
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
const TERMINATED =
  'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running';

export function createUpdateQueue(answers: Answers, webhookRetryMs: number): UpdateQueue {
  let queue: Payload[] = [];
  let poller: { response: ServerResponse; limit: number; timer: NodeJS.Timeout } | null = null;
  let webhook: { url: string; secret: string | null } | null = null;
  let flushing = false;
  let calling = false;
  let nextId = 700_000_001;

  function answerPoller(): void {
    if (poller === null) return;
    const { response, timer, limit } = poller;
    poller = null;
    clearTimeout(timer);
    answers.ok(response, queue.slice(0, limit));
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
      const id = typeof update.update_id === 'number' ? update.update_id : nextId++;
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
        clearTimeout(poller.timer);
        answers.refuse(poller.response, { status: 409, description: TERMINATED });
      }
      const offset = Number(payload.offset ?? 0);
      if (offset > 0) queue = queue.filter((update) => Number(update.update_id) >= offset);
      const timer = setTimeout(answerPoller, Number(payload.timeout ?? 0) * 1000);
      const mine = { response, limit: Number(payload.limit ?? 100), timer };
      poller = mine;
      response.on('close', () => {
        clearTimeout(timer);
        if (poller === mine) poller = null;
      });
      if (queue.length > 0) answerPoller();
    },

    setWebhook(to) {
      webhook = to;
      void callWebhook();
    },
    webhook: () => webhook,
    drop() {
      queue = [];
    },
    pending: () => queue.length,
    close() {
      webhook = null;
      if (poller !== null) clearTimeout(poller.timer);
      poller = null;
    },
  };
}
