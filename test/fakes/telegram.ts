/**
 * A Bot API server on loopback: long polling with offsets, webhooks, sending with Telegram's limits, and faults
 * on command. It keeps a ledger of what it took, and whether the connection was cut between taking a message
 * and answering; so a test can tell which reply may stand twice.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Payload, readPayload } from './telegram-body.js';
import { ANNA, messageOf, type Said, type Saying } from './telegram-chats.js';
import { refusalOf } from './telegram-limits.js';
import { createUpdateQueue } from './telegram-queue.js';

export interface FakeTelegramOptions {
  token?: string;
  /** Over what getMe says otherwise. */
  bot?: Payload;
  /** How long every answer but those of getUpdates takes. */
  answerDelayMs?: number;
  /** How soon a webhook that failed is called again. */
  webhookRetryMs?: number;
}

/** What happens to a call instead of its answer. */
export type Fault =
  /** Telegram's own refusal; the call has no effect. */
  | { status: number; description?: string; parameters?: Payload }
  /** A proxy's page; the call has no effect. */
  | { html: number }
  /** The connection breaks before or after the call has taken effect. */
  | { drop: 'before' | 'after' }
  /** No answer, before or after the call has taken effect. */
  | { stall: 'before' | 'after' };

interface Call {
  method: string;
  payload: Payload;
  at: number;
}

export interface SentMessage {
  messageId: number;
  chatId: number;
  threadId: number | null;
  text: string;
  entities: Payload[];
  replyTo: number | null;
  /** When it was taken, ms. */
  at: number;
  /** The answer was written to the connection. */
  answered: boolean;
  /** The connection ended between taking it and answering: the sender cannot know that it was taken. */
  cut: boolean;
  /** The connection ended this long after the answer, with no other call on it; null while it stands. */
  hungUpAfterMs: number | null;
}

export interface FakeTelegram {
  /** For `channels.telegram.api_root`. */
  url: string;
  token: string;
  bot: { id: number; username: string };
  /** Every call but getUpdates is kept; of those only the number. */
  calls: Call[];
  polls: { count: number; lastPayload: Payload };
  /** The ledger. */
  sent: SentMessage[];
  /** Ids of administrators by chat. */
  administrators: Map<number, number[]>;
  /** May be changed at any time. */
  settings: { answerDelayMs: number };
  webhook(): { url: string; secret: string | null } | null;
  /** Sets one as another program would have. */
  setWebhook(url: string): void;
  /** How many updates were not confirmed yet. */
  pending(): number;
  say(saying: Saying): Said;
  edit(said: Said, text: string): void;
  /** Both service messages of a group that becomes a supergroup. */
  migrate(from: number, to: number): void;
  /** Any update; gets its id here unless it has one. */
  push(update: Payload): number;
  /** The next `times` calls of a method (that `when` is true for) fail. */
  fail(method: string, fault: Fault, limits?: { times?: number; when?: (payload: Payload) => boolean }): void;
  /** Ends all faults. */
  heal(): void;
  callsOf(method: string): Payload[];
  /** Resolves as soon as the condition holds; it is looked at after every call. `what` is for the error. */
  until(condition: () => boolean, what?: string, timeoutMs?: number): Promise<void>;
  /** Breaks every connection. */
  hangUp(): void;
  /** Goes away: connections are refused until `open`. */
  shut(): Promise<void>;
  open(): Promise<void>;
  close(): Promise<void>;
}

interface Scripted {
  method: string;
  fault: Fault;
  times: number;
  when: (payload: Payload) => boolean;
}

type Outcome =
  | { result: unknown }
  | { status: number; description: string; parameters?: Payload | undefined };

export async function startFakeTelegram(options: FakeTelegramOptions = {}): Promise<FakeTelegram> {
  const { token = '424242:fake-token-of-the-fake-telegram-00', webhookRetryMs = 50 } = options;
  const bot = {
    id: 424242,
    is_bot: true,
    first_name: 'Coterie',
    username: 'coterie_bot',
    can_join_groups: true,
    can_read_all_group_messages: true,
    supports_inline_queries: false,
    ...options.bot,
  };
  const settings = { answerDelayMs: options.answerDelayMs ?? 0 };
  const calls: Call[] = [];
  const polls = { count: 0, lastPayload: {} as Payload };
  const sent: SentMessage[] = [];
  const administrators = new Map<number, number[]>();
  /** Every message by chat and id, for replies to it. */
  const messages = new Map<string, Payload>();
  const sockets = new Set<Socket>();
  const lastAnswer = new WeakMap<Socket, { message: SentMessage; at: number }>();
  let faults: Scripted[] = [];
  let watchers: { condition: () => boolean; met: () => void }[] = [];
  let nextMessage = 1;

  function write(response: ServerResponse, status: number, body: string, type = 'application/json'): void {
    if (response.destroyed || response.writableEnded) return;
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
    response.end(body);
  }

  function reply(response: ServerResponse, outcome: Outcome): void {
    if ('result' in outcome) {
      write(response, 200, JSON.stringify({ ok: true, result: outcome.result }));
    } else {
      const { status, description, parameters } = outcome;
      write(response, status, JSON.stringify({ ok: false, error_code: status, description, parameters }));
    }
  }

  const updates = createUpdateQueue(
    { ok: (response, result) => reply(response, { result }), refuse: reply },
    webhookRetryMs,
  );

  /** Into the ledger. From here on Telegram has it, whatever becomes of the answer. */
  function take(payload: Payload, request: IncomingMessage, response: ServerResponse): SentMessage {
    const answered = payload.reply_parameters as { message_id?: number } | undefined;
    const message: SentMessage = {
      messageId: nextMessage++,
      chatId: Number(payload.chat_id),
      threadId: payload.message_thread_id === undefined ? null : Number(payload.message_thread_id),
      text: String(payload.text),
      entities: (payload.entities as Payload[] | undefined) ?? [],
      replyTo: answered?.message_id ?? null,
      at: Date.now(),
      answered: false,
      cut: false,
      hungUpAfterMs: null,
    };
    sent.push(message);
    messages.set(`${message.chatId}/${message.messageId}`, shown(message));
    response.on('finish', () => {
      message.answered = true;
      lastAnswer.set(request.socket, { message, at: Date.now() });
    });
    response.on('close', () => {
      message.cut = !message.answered;
      look();
    });
    return message;
  }

  function shown({ messageId, chatId, text, entities, at }: SentMessage): Payload {
    const type = chatId > 0 ? 'private' : 'supergroup';
    const { id, is_bot, first_name, username } = bot;
    return {
      message_id: messageId,
      from: { id, is_bot, first_name, username },
      chat: { id: chatId, type },
      date: Math.floor(at / 1000),
      text,
      ...(entities.length > 0 ? { entities } : {}),
    };
  }

  function edited(payload: Payload): Outcome {
    const message = sent.find((one) => one.messageId === Number(payload.message_id));
    if (message === undefined) return { status: 400, description: 'Bad Request: message to edit not found' };
    message.text = String(payload.text);
    message.entities = (payload.entities as Payload[] | undefined) ?? [];
    return { result: shown(message) };
  }

  /** What a call does, and its answer. */
  function effect(
    method: string,
    payload: Payload,
    request: IncomingMessage,
    response: ServerResponse,
  ): Outcome {
    if (method === 'sendMessage' || method === 'editMessageText') {
      const refusal = refusalOf(payload);
      if (refusal !== null) return { status: 400, description: refusal };
    }
    switch (method) {
      case 'getMe':
        return { result: bot };
      case 'sendMessage':
        return { result: shown(take(payload, request, response)) };
      case 'editMessageText':
        return edited(payload);
      case 'setWebhook':
        updates.setWebhook({
          url: String(payload.url),
          secret: (payload.secret_token as string | undefined) ?? null,
        });
        return { result: true };
      case 'deleteWebhook':
        updates.setWebhook(null);
        if (payload.drop_pending_updates === true) updates.drop();
        return { result: true };
      case 'getWebhookInfo':
        return { result: { url: updates.webhook()?.url ?? '', pending_update_count: updates.pending() } };
      case 'getChatAdministrators':
        return {
          result: (administrators.get(Number(payload.chat_id)) ?? []).map((id) => ({
            status: 'administrator',
            user: { id, is_bot: false, first_name: `Administrator ${id}` },
            is_anonymous: false,
          })),
        };
      case 'getChat':
        return { result: { id: Number(payload.chat_id), type: 'supergroup', title: 'A group' } };
      case 'sendChatAction':
      case 'setMyCommands':
        return { result: true };
      default:
        return { status: 404, description: 'Not Found: method not found' };
    }
  }

  function faultFor(method: string, payload: Payload): Fault | null {
    const found = faults.find((each) => each.method === method && each.times > 0 && each.when(payload));
    if (found === undefined) return null;
    found.times -= 1;
    return found.fault;
  }

  function perform(
    method: string,
    payload: Payload,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const fault = faultFor(method, payload);
    const later = (answer: () => void) => {
      if (settings.answerDelayMs > 0) setTimeout(answer, settings.answerDelayMs);
      else answer();
    };
    if (fault !== null && 'status' in fault) {
      later(() => reply(response, { description: 'Scripted', ...fault }));
    } else if (fault !== null && 'html' in fault) {
      later(() => write(response, fault.html, `<html>${fault.html}</html>`, 'text/html'));
    } else if (fault !== null) {
      if (Object.values(fault).includes('after')) effect(method, payload, request, response);
      if ('drop' in fault) request.socket.destroy();
    } else if (method === 'getUpdates') {
      updates.getUpdates(payload, response);
    } else {
      const outcome = effect(method, payload, request, response);
      later(() => reply(response, outcome));
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    lastAnswer.delete(request.socket);
    const [, givenToken, method] = /^\/bot([^/]+)\/(\w+)/.exec(request.url ?? '') ?? [];
    const payload = await readPayload(request);
    if (method === undefined) {
      reply(response, { status: 404, description: 'Not Found' });
      return;
    }
    if (method === 'getUpdates') {
      polls.count += 1;
      polls.lastPayload = payload;
    } else {
      calls.push({ method, payload, at: Date.now() });
    }
    if (decodeURIComponent(givenToken ?? '') !== token) {
      reply(response, { status: 401, description: 'Unauthorized' });
    } else {
      perform(method, payload, request, response);
    }
    look();
  }

  /** Whoever waits for something may have it now. */
  function look(): void {
    watchers = watchers.filter(({ condition, met }) => {
      if (!condition()) return true;
      met();
      return false;
    });
  }

  const server = createServer((request, response) => {
    // A client that hangs up while it asks is no concern of the others.
    serve(request, response).catch(() => request.socket.destroy());
  });
  // Node's five seconds would cut connections that a quiet client keeps.
  server.keepAliveTimeout = 120_000;
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      sockets.delete(socket);
      const last = lastAnswer.get(socket);
      if (last !== undefined) last.message.hungUpAfterMs = Date.now() - last.at;
    });
  });

  function listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject);
        resolve();
      });
    });
  }

  function hangUp(): void {
    for (const socket of sockets) socket.destroy();
  }

  function shut(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => resolve());
      hangUp();
    });
  }

  await listen(0);
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    token,
    bot,
    calls,
    polls,
    sent,
    administrators,
    settings,
    webhook: updates.webhook,
    setWebhook: (url) => updates.setWebhook({ url, secret: null }),
    pending: updates.pending,
    push: updates.push,

    say(saying) {
      const messageId = saying.messageId ?? nextMessage++;
      const chatId = saying.chat?.id ?? saying.from?.id ?? ANNA.id;
      const message = messageOf(saying, messageId, messages.get(`${chatId}/${saying.replyTo}`));
      messages.set(`${chatId}/${messageId}`, message);
      return { updateId: updates.push({ message }), messageId, chatId, message };
    },

    edit({ message }, text) {
      const { text: _before, entities: _old, ...rest } = message;
      updates.push({ edited_message: { ...rest, text, edit_date: Math.floor(Date.now() / 1000) } });
    },

    migrate(from, to) {
      const date = Math.floor(Date.now() / 1000);
      const by = { id: 1087968824, is_bot: true, first_name: 'Group', username: 'GroupAnonymousBot' };
      const old = { id: from, type: 'group', title: 'A group' };
      const young = { id: to, type: 'supergroup', title: 'A group' };
      const common = { from: by, date };
      updates.push({
        message: {
          ...common,
          message_id: nextMessage++,
          chat: old,
          sender_chat: old,
          migrate_to_chat_id: to,
        },
      });
      updates.push({
        message: {
          ...common,
          message_id: nextMessage++,
          chat: young,
          sender_chat: young,
          migrate_from_chat_id: from,
        },
      });
    },

    fail(method, fault, { times = 1, when = () => true } = {}) {
      faults.push({ method, fault, times, when });
    },
    heal() {
      faults = [];
    },
    callsOf: (method) => calls.filter((call) => call.method === method).map((call) => call.payload),

    until(condition, what = String(condition), timeoutMs = 10_000) {
      if (condition()) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const asked = new Error(`not seen on the fake Telegram within ${timeoutMs} ms: ${what}`);
        const timer = setTimeout(() => {
          watchers = watchers.filter((watcher) => watcher.met !== met);
          reject(asked);
        }, timeoutMs);
        function met() {
          clearTimeout(timer);
          resolve();
        }
        watchers.push({ condition, met });
      });
    },

    hangUp,
    shut,
    open: () => listen(port),
    async close() {
      updates.close();
      await shut();
    },
  };
}
