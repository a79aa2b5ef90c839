/**
 * A Bot API server on loopback: long polling with offsets, webhooks, sending texts and files with Telegram's
 * limits, and faults on command. It keeps a ledger of what it took, and whether the connection was cut between
 * taking a message and answering; so a test can tell which reply may stand twice.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { listenAt } from './http-server.js';
import { type Payload, readPayload } from './telegram-body.js';
import { ANNA, messageOf, type Said, type Saying } from './telegram-chats.js';
import { MalformedForm, type UploadedFile } from './telegram-form.js';
import { isUpload, refusalOf, uploadRefusalOf } from './telegram-limits.js';
import { createUpdateQueue } from './telegram-queue.js';
import { createFileStore } from './telegram-store.js';
import { createWatch } from './watch.js';

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
  /** With a document, what stands below it. */
  text: string;
  entities: Payload[];
  document: UploadedFile | null;
  replyTo: number | null;
  /** When it was taken, ms. */
  at: number;
  /** The answer was written to the connection. */
  answered: boolean;
  /** The connection ended between taking it and answering: the sender cannot know that it was taken. */
  cut: boolean;
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
  /** How many connections were made so far. */
  connections(): number;
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
  /** What was said before, by its chat and id. */
  said(chatId: number, messageId: number): Said;
  edit(said: Said, text: string): void;
  /** Both service messages of a group that becomes a supergroup. */
  migrate(from: number, to: number): void;
  /** Any update; gets its id here unless it has one. */
  push(update: Payload): number;
  /**
   * The next `times` calls of a method (that `when` is true for) fail. `file` is what serves the bytes of files: its
   * faults of the kind `after` come in the middle of them.
   */
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
  const updateIds = new Map<Payload, number>();
  const sockets = new Set<Socket>();
  const files = createFileStore();
  let faults: Scripted[] = [];
  const { look, until } = createWatch('the fake Telegram');
  let nextMessage = 1;
  let connections = 0;

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
  function take(payload: Payload, response: ServerResponse): SentMessage {
    const answered = payload.reply_parameters as { message_id?: number } | undefined;
    const message: SentMessage = {
      messageId: nextMessage++,
      chatId: Number(payload.chat_id),
      threadId: payload.message_thread_id === undefined ? null : Number(payload.message_thread_id),
      text: String(payload.text ?? payload.caption ?? ''),
      entities: ((payload.entities ?? payload.caption_entities) as Payload[] | undefined) ?? [],
      document: isUpload(payload.document) ? payload.document : null,
      replyTo: answered?.message_id ?? null,
      at: Date.now(),
      answered: false,
      cut: false,
    };
    sent.push(message);
    messages.set(`${message.chatId}/${message.messageId}`, shown(message));
    response.on('finish', () => {
      message.answered = true;
    });
    response.on('close', () => {
      message.cut = !message.answered;
      look();
    });
    return message;
  }

  function shown({ messageId, chatId, text, entities, document, at }: SentMessage): Payload {
    const type = chatId > 0 ? 'private' : 'supergroup';
    const { id, is_bot, first_name, username } = bot;
    const message = {
      message_id: messageId,
      from: { id, is_bot, first_name, username },
      chat: { id: chatId, type },
      date: Math.floor(at / 1000),
    };
    if (document === null) return { ...message, text, ...(entities.length > 0 ? { entities } : {}) };
    return {
      ...message,
      document: {
        file_id: `file-${messageId}`,
        file_unique_id: `unique-${messageId}`,
        file_name: document.name,
        mime_type: document.type,
        file_size: document.bytes.length,
      },
      ...(text === '' ? {} : { caption: text }),
      ...(entities.length > 0 ? { caption_entities: entities } : {}),
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
  function effect(method: string, payload: Payload, response: ServerResponse): Outcome {
    if (method === 'sendMessage' || method === 'editMessageText') {
      const refusal = refusalOf(payload);
      if (refusal !== null) return { status: 400, description: refusal };
    }
    if (method === 'sendDocument') {
      const refusal = uploadRefusalOf(payload);
      if (refusal !== null) return refusal;
    }
    switch (method) {
      case 'getMe':
        return { result: bot };
      case 'sendMessage':
      case 'sendDocument':
        return { result: shown(take(payload, response)) };
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
      case 'getFile':
        return files.getFile(String(payload.file_id));
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
      if (Object.values(fault).includes('after')) effect(method, payload, response);
      if ('drop' in fault) request.socket.destroy();
    } else if (method === 'getUpdates') {
      updates.getUpdates(payload, response);
    } else {
      const outcome = effect(method, payload, response);
      later(() => reply(response, outcome));
    }
  }

  function serveFile(givenToken: string, path: string, response: ServerResponse): void {
    const fault = faultFor('file', { path });
    if (givenToken !== token) write(response, 401, 'Unauthorized', 'text/plain');
    else if (fault !== null && 'status' in fault) write(response, fault.status, 'Scripted', 'text/plain');
    else if (fault !== null && 'html' in fault) write(response, fault.html, '<html></html>', 'text/html');
    else if (!files.serve(path, response, fault)) write(response, 404, 'Not Found', 'text/plain');
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, fileToken, path] = /^\/file\/bot([^/]+)\/(.+)$/.exec(request.url ?? '') ?? [];
    if (fileToken !== undefined && path !== undefined) {
      calls.push({ method: 'file', payload: { path: decodeURIComponent(path) }, at: Date.now() });
      serveFile(decodeURIComponent(fileToken), decodeURIComponent(path), response);
      look();
      return;
    }
    const [, givenToken, method] = /^\/bot([^/]+)\/(\w+)/.exec(request.url ?? '') ?? [];
    const payload = await readPayload(request).catch((error: unknown) => {
      if (error instanceof MalformedForm) return error;
      throw error;
    });
    if (payload instanceof MalformedForm) {
      reply(response, { status: 400, description: `Bad Request: ${payload.message}` });
      return;
    }
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
  const server = createServer((request, response) => {
    // A client that hangs up while it asks is no concern of the others.
    serve(request, response).catch(() => request.socket.destroy());
  });
  // Node's five seconds would cut connections that a quiet client keeps.
  server.keepAliveTimeout = 120_000;
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  });

  function hangUp(): void {
    for (const socket of sockets) socket.destroy();
  }

  function shut(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => resolve());
      hangUp();
    });
  }

  await listenAt(server, 0);
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    token,
    bot,
    calls,
    polls,
    sent,
    connections: () => connections,
    administrators,
    settings,
    webhook: updates.webhook,
    setWebhook: (url) => updates.setWebhook({ url, secret: null }),
    pending: updates.pending,
    push: updates.push,

    say(saying) {
      const messageId = saying.messageId ?? nextMessage++;
      const chatId = saying.chat?.id ?? saying.from?.id ?? ANNA.id;
      const said = messageOf(saying, messageId, messages.get(`${chatId}/${saying.replyTo}`));
      const message = { ...said, ...files.put(saying) };
      messages.set(`${chatId}/${messageId}`, message);
      const updateId = updates.push({ message });
      updateIds.set(message, updateId);
      return { updateId, messageId, chatId, message };
    },

    said(chatId, messageId) {
      const message = messages.get(`${chatId}/${messageId}`);
      const updateId = message === undefined ? undefined : updateIds.get(message);
      if (message === undefined || updateId === undefined) {
        throw new Error(`nobody said message ${messageId} in ${chatId} on the fake Telegram`);
      }
      return { updateId, messageId, chatId, message };
    },

    edit({ message }, text) {
      const edit_date = Math.floor(Date.now() / 1000);
      const { text: before, entities: _old, caption: _below, caption_entities: _marks, ...rest } = message;
      const words = before === undefined ? { caption: text } : { text };
      updates.push({ edited_message: { ...rest, ...words, edit_date } });
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

    until,
    hangUp,
    shut,
    open: () => listenAt(server, port),
    async close() {
      updates.close();
      await shut();
    },
  };
}
