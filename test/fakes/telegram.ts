/**
 * A Bot API server on loopback: long polling with offsets, webhooks, sending texts and files with Telegram's
 * limits, edits, drafts, several bots in the same chats, and faults on command. It keeps a ledger of what it took, and
 * whether the connection was cut between taking a message and answering; so a test can tell which reply may stand twice.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Clock, systemClock } from '../../src/core/clock.js';
import { breakOff, listenAt } from './http-server.js';
import { type Payload, readPayload } from './telegram-body.js';
import { type BotOptions, createFakeBots, type FakeBot } from './telegram-bots.js';
import { type Copy, chatOf, type Person, type Said, type Saying } from './telegram-chats.js';
import { createFloods } from './telegram-floods.js';
import { MalformedForm } from './telegram-form.js';
import { createLedger, type Draft, type Edit, type SentMessage } from './telegram-ledger.js';
import { draftRefusalOf, linkIn, refusalOf, UPLOADS, uploadRefusalOf } from './telegram-limits.js';
import { type BotPhotos, createPhotos } from './telegram-photos.js';
import { createPresses, markupRefusalOf, type Press } from './telegram-presses.js';
import { createReactions, type SetReaction } from './telegram-reactions.js';
import { createFileStore } from './telegram-store.js';
import { createTalk } from './telegram-talk.js';
import { createWatch } from './watch.js';

export interface FakeTelegramOptions {
  token?: string;
  /** Over what getMe says otherwise. */
  bot?: Payload;
  /** How long every answer but those of getUpdates takes. */
  answerDelayMs?: number;
  /** How soon a webhook that failed is called again. */
  webhookRetryMs?: number;
  /** For what the server counts in seconds: how long it lets a question wait. */
  clock?: Clock;
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
  /** The id of the bot whose token was given; null for a token of nobody. */
  bot: number | null;
}

export type { SentMessage } from './telegram-ledger.js';

export interface FakeTelegram {
  /** For `channels.telegram.api_root`. */
  url: string;
  token: string;
  bot: { id: number; username: string };
  /** The bot that all this is about where no other is named. */
  main: FakeBot;
  /** One more bot, in no chat yet: it joins, or is written to. */
  addBot(options: BotOptions): FakeBot;
  /** From now on it is in a chat, or is thrown out of it (blocked, in a private one). */
  join(bot: FakeBot, chatId: number): void;
  leave(bot: FakeBot, chatId: number): void;
  /** Every call but getUpdates is kept; of those only the number. */
  calls: Call[];
  polls: { count: number; lastPayload: Payload };
  /** The ledger: messages as they stand now. */
  sent: SentMessage[];
  /** Every edit that was taken. */
  edits: Edit[];
  drafts: Draft[];
  /** What Telegram's servers would have fetched to show a preview: a test that wants it takes it out. */
  fetched: string[];
  /** The profile photos that bots set. */
  photos: BotPhotos['all'];
  /** Reactions of bots, as they stand now. */
  reactions: SetReaction[];
  /** Which reactions a chat allows; all, where nothing stands here. */
  allowedReactions: Map<number, string[]>;
  /** Somebody puts a sign to a message of a bot's. In groups only bots that are administrators hear of it: all are here. */
  react(from: Person, to: SentMessage, emoji: string): void;
  /** Somebody presses a button below a message of a bot's: the one with this label, or the n-th from 0. */
  press(from: Person, on: SentMessage, which: string | number): Press;
  /** The same press comes once more, as after an answer to getUpdates that got lost. */
  pressAgain(press: Press): void;
  /** Every press so far, and whether it was answered. */
  presses: Press[];
  /** Somebody deletes a message of a bot's. */
  vanish(message: SentMessage): void;
  /** Somebody presses the button below the newest draft in a chat. */
  pressStop(chatId: number): Copy['updateId'];
  /** How many connections were made so far. */
  connections(): number;
  /** Ids of administrators by chat. */
  administrators: Map<number, number[]>;
  /** May be changed at any time. */
  settings: Settings;
  webhook(): { url: string; secret: string | null } | null;
  /** Sets one as another program would have. */
  setWebhook(url: string): void;
  /** How many updates were not confirmed yet. */
  pending(): number;
  /** As after a quiet week, or on another server: the ids of updates begin anew, far below. */
  jumpBack(to?: number, bot?: FakeBot): void;
  say(saying: Saying): Said;
  /** Several files at once: to Telegram as many messages, each in an update of its own, with nothing that ends them. */
  album(items: Saying[]): Said[];
  /** What was said before, by its chat and id. */
  said(chatId: number, messageId: number): Said;
  edit(said: Said, text: string): void;
  /** Both service messages of a group that becomes a supergroup. */
  migrate(from: number, to: number): void;
  /** Any update; gets its id here unless it has one. */
  push(update: Payload): number;
  /**
   * The next `times` calls of a method (that `when` is true for, of one bot) fail. `file` is what serves the bytes of files: its
   * faults of the kind `after` come in the middle of them.
   */
  fail(
    method: string,
    fault: Fault,
    limits?: { times?: number; when?: (payload: Payload) => boolean; bot?: number },
  ): void;
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
  /**
   * Rejects if it was not left alone when it asked for that, or had a link to fetch: no test may pass then that does
   * not want it so.
   */
  close(): Promise<void>;
}

interface Settings {
  answerDelayMs: number;
  /** Whether the server knows drafts, and profile photos of bots. */
  drafts: boolean;
  profilePhotos: boolean;
  /** How long after a press its answer is taken. */
  pressAnswerMs: number;
  /** What is done in one chat in a second; more is held back, and then a flood. */
  perChatPerSecond: number;
  mostHeldMs: number;
  closedTopics: Set<number>;
  /** The folder of a Bot API server with `--local`: there it puts files, whatever their size, and serves none. */
  local: string | null;
  /** Chats that take no voice notes: a person may forbid them (RPC error VOICE_MESSAGES_FORBIDDEN). */
  noVoiceIn: number[];
  /** What Telegram makes of an edited text. */
  alter(text: string): string;
}

interface Scripted {
  method: string;
  fault: Fault;
  times: number;
  when: (payload: Payload) => boolean;
  bot: number | null;
}

type Outcome =
  | { result: unknown }
  | { status: number; description: string; parameters?: Payload | undefined };

export async function startFakeTelegram(options: FakeTelegramOptions = {}): Promise<FakeTelegram> {
  const {
    token = '424242:fake-token-of-the-fake-telegram-00',
    webhookRetryMs = 50,
    clock = systemClock,
  } = options;
  const settings: Settings = {
    answerDelayMs: options.answerDelayMs ?? 0,
    drafts: true,
    profilePhotos: true,
    pressAnswerMs: 15_000,
    noVoiceIn: [],
    perChatPerSecond: Number.POSITIVE_INFINITY,
    mostHeldMs: 8_000,
    closedTopics: new Set(),
    local: null,
    alter: (text) => text,
  };
  const calls: Call[] = [];
  const ledger = createLedger();
  const presses = createPresses(settings);
  const { sent } = ledger;
  const administrators = new Map<number, number[]>();
  /** What people said, by chat and the number of the bot that got it first. */
  const sayings = new Map<string, Said>();
  const fetched: string[] = [];
  const floods = createFloods(settings, clock);
  const sockets = new Set<Socket>();
  const files = createFileStore();
  const photos = createPhotos();
  const reactions = createReactions(
    (bot, chatId, id) =>
      sent.some((one) => one.chatId === chatId && one.messageId === id && !one.gone) ||
      [...sayings.values()].some(
        (said) =>
          said.chatId === chatId && said.copies.some((copy) => copy.bot.id === bot && copy.messageId === id),
      ),
  );
  let faults: Scripted[] = [];
  const { look, until } = createWatch('the fake Telegram');
  let connections = 0;
  let albums = 0;

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

  const bots = createFakeBots(
    { ok: (response, result) => reply(response, { result }), refuse: reply },
    webhookRetryMs,
    clock,
  );
  const names = { first_name: 'Coterie', supports_inline_queries: false };
  const main = bots.add({
    ...{ token, id: 424242, username: 'coterie_bot' },
    me: { ...names, ...options.bot },
  });
  const talk = createTalk(() => main);

  /** Into the ledger. From here on Telegram has it, whatever becomes of the answer. */
  function take(bot: FakeBot, payload: Payload, response: ServerResponse): SentMessage {
    let message: SentMessage | null = null;
    const messageId = talk.wrote(bot, Number(payload.chat_id), (number) =>
      message === null ? {} : { ...shown(message), message_id: number },
    );
    const taken = ledger.take(bot, messageId, payload);
    message = taken;
    if (response.destroyed) taken.cut = true;
    response.on('finish', () => {
      taken.answered = true;
    });
    response.on('close', () => {
      taken.cut = !taken.answered;
      look();
    });
    return taken;
  }

  function shown(sent: SentMessage): Payload {
    const { messageId, chatId, bot, text, entities, document, voice, markup, at } = sent;
    const { id, is_bot, first_name, username } = bots.all.find((one) => one.id === bot)?.me ?? main.me;
    const message = {
      message_id: messageId,
      from: { id, is_bot, first_name, username },
      chat: { id: chatId, type: talk.chat(chatId).type },
      date: Math.floor(at / 1000),
      ...(markup === null ? {} : { reply_markup: markup }),
    };
    if (voice !== null) {
      const { seconds: duration, bytes } = voice;
      const file = { file_id: `file-${messageId}`, file_unique_id: `unique-${messageId}` };
      return { ...message, voice: { ...file, duration, mime_type: 'audio/ogg', file_size: bytes.length } };
    }
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

  function authorOf(message: SentMessage): FakeBot {
    return bots.all.find(({ id }) => id === message.bot) ?? main;
  }

  function edited(bot: FakeBot, payload: Payload): Outcome {
    const message = ledger.edit(bot, { ...payload, text: settings.alter(String(payload.text)) });
    return 'status' in message ? message : { result: shown(message) };
  }

  function markupEdited(bot: FakeBot, payload: Payload): Outcome {
    const isThere = talk.has(bot, Number(payload.chat_id), Number(payload.message_id));
    const message = ledger.editMarkup(bot, payload, isThere);
    return 'status' in message ? message : { result: shown(message) };
  }

  /** What is wrong with a call, whoever makes it. */
  function refusalFor(bot: FakeBot, method: string, payload: Payload): Outcome | null {
    const refuse = (description: string | null) =>
      description === null ? null : { status: 400, description };
    if (method === 'sendMessageDraft' && !settings.drafts) return UNKNOWN_METHOD;
    if (TO_A_CHAT.has(method)) {
      const chat = talk.chat(Number(payload.chat_id));
      const outside = bots.refusalFor(bot, chat);
      if (outside !== null) return outside;
      // The general topic is none to be named.
      const topic = Number(payload.message_thread_id);
      if (chat.type === 'supergroup' && topic === 1) return refuse('Bad Request: message thread not found');
      if (method.startsWith('send') && settings.closedTopics.has(topic)) {
        return refuse('Bad Request: TOPIC_CLOSED');
      }
    }
    if (method === 'sendVoice' && settings.noVoiceIn.includes(Number(payload.chat_id))) {
      return refuse('Bad Request: VOICE_MESSAGES_FORBIDDEN');
    }
    const unfitMarkup = refuse(markupRefusalOf(payload));
    switch (method) {
      case 'sendMessage':
      case 'editMessageText':
        return refuse(refusalOf(payload)) ?? unfitMarkup;
      case 'sendDocument':
      case 'sendPhoto':
      case 'sendVoice':
        if (method === 'sendVoice' && settings.noVoiceIn.includes(Number(payload.chat_id))) {
          return refuse('Bad Request: VOICE_MESSAGES_FORBIDDEN');
        }
        return uploadRefusalOf(UPLOADS[method] ?? 'document', payload) ?? unfitMarkup;
      case 'editMessageReplyMarkup':
        return unfitMarkup;
      case 'sendMessageDraft':
        return refuse(draftRefusalOf(payload));
      default:
        return null;
    }
  }

  /** What a call does, and its answer. */
  function effect(bot: FakeBot, method: string, payload: Payload, response: ServerResponse): Outcome {
    const { updates } = bot;
    const refusal = refusalFor(bot, method, payload);
    if (refusal !== null) return refusal;
    const link = linkIn(payload);
    if (link !== null && WITH_TEXT.has(method)) fetched.push(link);
    switch (method) {
      case 'getMe':
        return { result: bot.me };
      case 'sendMessage':
      case 'sendDocument':
      case 'sendPhoto':
      case 'sendVoice':
        return { result: shown(take(bot, payload, response)) };
      case 'editMessageText':
        return edited(bot, payload);
      case 'editMessageReplyMarkup':
        return markupEdited(bot, payload);
      case 'answerCallbackQuery':
        return presses.answer(payload) ?? { result: true };
      case 'deleteMessage':
        return ledger.remove(bot, payload) ?? { result: true };
      case 'setMyProfilePhoto':
        return (settings.profilePhotos ? photos.set(bot.id, payload) : UNKNOWN_METHOD) ?? { result: true };
      case 'setMessageReaction':
        return reactions.set(bot.id, payload);
      case 'sendMessageDraft':
        ledger.draft(bot, payload);
        return { result: true };
      case 'setWebhook':
        updates.setWebhook({
          url: String(payload.url),
          secret: (payload.secret_token as string | undefined) ?? null,
          allowed: payload.allowed_updates,
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
        return files.getFile(String(payload.file_id), bot.id, settings.local);
      case 'sendChatAction':
      case 'setMyCommands':
        return { result: true };
      default:
        return UNKNOWN_METHOD;
    }
  }

  function faultFor(method: string, payload: Payload, bot: FakeBot | undefined): Fault | null {
    const found = faults.find(
      (each) =>
        each.method === method && each.times > 0 && (each.bot ?? bot?.id) === bot?.id && each.when(payload),
    );
    if (found === undefined) return null;
    found.times -= 1;
    return found.fault;
  }

  /** Flood control comes first, whatever is asked. */
  async function admitted(
    bot: FakeBot,
    method: string,
    { chat_id }: Payload,
    response: ServerResponse,
  ): Promise<boolean> {
    if (!TO_A_CHAT.has(method)) return true;
    const { heldMs, refusal } = floods.admit(bot.id, method, Number(chat_id));
    if (heldMs > 0) await clock.sleep(heldMs);
    if (refusal !== null) refuseFlood(bot, chat_id, response, refusal);
    return refusal === null;
  }

  function refuseFlood(bot: FakeBot, chatId: unknown, response: ServerResponse, outcome: Outcome): void {
    const seconds = 'parameters' in outcome ? outcome.parameters?.retry_after : undefined;
    if (typeof seconds === 'number') floods.refused(bot.id, Number(chatId), seconds);
    reply(response, outcome);
  }

  function perform(
    bot: FakeBot,
    method: string,
    payload: Payload,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const fault = faultFor(method, payload, bot);
    const later = (answer: () => void) => {
      if (settings.answerDelayMs > 0) setTimeout(answer, settings.answerDelayMs);
      else answer();
    };
    if (fault !== null && 'status' in fault) {
      later(() => refuseFlood(bot, payload.chat_id, response, { description: 'Scripted', ...fault }));
    } else if (fault !== null && 'html' in fault) {
      later(() => write(response, fault.html, `<html>${fault.html}</html>`, 'text/html'));
    } else if (fault !== null) {
      if (Object.values(fault).includes('after')) effect(bot, method, payload, response);
      if ('drop' in fault) request.socket.destroy();
    } else if (method === 'getUpdates') {
      bot.updates.getUpdates(payload, response);
    } else {
      const outcome = effect(bot, method, payload, response);
      later(() => reply(response, outcome));
    }
  }

  function serveFile(givenToken: string, path: string, response: ServerResponse): void {
    const fault = faultFor('file', { path }, bots.withToken(givenToken));
    if (bots.withToken(givenToken) === undefined) write(response, 401, 'Unauthorized', 'text/plain');
    else if (fault !== null && 'status' in fault) write(response, fault.status, 'Scripted', 'text/plain');
    else if (fault !== null && 'html' in fault) write(response, fault.html, '<html></html>', 'text/html');
    else if (settings.local !== null) write(response, 404, 'Not Found', 'text/plain');
    else if (!files.serve(path, response, fault)) write(response, 404, 'Not Found', 'text/plain');
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, fileToken, path] = /^\/file\/bot([^/]+)\/(.+)$/.exec(request.url ?? '') ?? [];
    if (fileToken !== undefined && path !== undefined) {
      const bot = bots.withToken(decodeURIComponent(fileToken))?.id ?? null;
      calls.push({ method: 'file', payload: { path: decodeURIComponent(path) }, at: Date.now(), bot });
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
    const bot = bots.withToken(decodeURIComponent(givenToken ?? ''));
    if (method === 'getUpdates') {
      const { polls } = bot ?? main;
      polls.count += 1;
      polls.lastPayload = payload;
    } else {
      calls.push({ method, payload, at: Date.now(), bot: bot?.id ?? null });
    }
    look();
    if (bot === undefined) reply(response, { status: 401, description: 'Unauthorized' });
    else if (await admitted(bot, method, payload, response)) perform(bot, method, payload, request, response);
    look();
  }

  /** Whoever waits for something may have it now. */
  const server = createServer((request, response) => {
    serve(request, response).catch(breakOff(request));
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
    bot: main.me,
    main,
    addBot: bots.add,
    join: bots.join,
    leave: bots.leave,
    calls,
    polls: main.polls,
    sent,
    edits: ledger.edits,
    drafts: ledger.drafts,
    fetched,
    photos: photos.all,
    reactions: reactions.all,
    allowedReactions: reactions.allowed,
    react(from, { chatId, messageId, bot: by }, emoji) {
      const chat = talk.chat(chatId);
      const reaction = {
        ...{ chat, message_id: messageId, date: Math.floor(Date.now() / 1000) },
        ...{ user: { ...from, is_bot: false }, old_reaction: [], new_reaction: [{ type: 'emoji', emoji }] },
      };
      // Only in supergroups do others call the message by this number.
      const all = chat.type === 'supergroup' ? bots.all : bots.all.filter(({ id }) => id === by);
      for (const bot of all) {
        if (bots.refusalFor(bot, chat) === null) bot.updates.push({ message_reaction: reaction });
      }
    },
    press: (from, on, which) => presses.press(authorOf(on), from, on, which, shown(on)),
    pressAgain: (press) => presses.repeat(authorOf(press.message), press),
    presses: presses.all,
    vanish(message) {
      message.gone = true;
    },
    pressStop(chatId) {
      const draft = ledger.drafts.findLast((one) => one.chatId === chatId && one.canStop);
      const bot = bots.all.find(({ id }) => id === draft?.bot);
      if (draft === undefined || bot === undefined) throw new Error(`no draft in ${chatId} can be stopped`);
      const { draftId: draft_id, threadId: thread } = draft;
      const chat = { first_name: 'Anna', ...talk.chat(chatId) };
      const topic = thread === null ? {} : { message_thread_id: thread };
      return bot.updates.push({ stopped_message_generation: { chat, ...topic, draft_id } });
    },
    connections: () => connections,
    administrators,
    settings,
    webhook: main.updates.webhook,
    setWebhook: (url) => main.updates.setWebhook({ url, secret: null }),
    pending: main.updates.pending,
    jumpBack: (to, bot = main) => bot.updates.jumpBack(to),
    push: main.updates.push,

    say(saying) {
      const chat = chatOf(saying);
      if (chat.type === 'private') {
        bots.join(saying.to ?? main, chat.id);
      }
      const listening =
        chat.type === 'private'
          ? [saying.to ?? main]
          : bots.all.filter((bot) => bots.refusalFor(bot, chat) === null);
      const told = talk.said(saying, listening, (bot) => files.put(saying, bot.id));
      const copies = [...told]
        .filter(([bot, message]) => !bot.privacy || concerns(bot, message))
        .map(([bot, message]): Copy => {
          const messageId = Number(message.message_id);
          return { bot, messageId, message, updateId: bot.updates.push({ message }) };
        });
      const [first] = copies;
      if (first === undefined) throw new Error(`no bot hears what is said in ${chat.id}`);
      const { updateId, messageId, message } = first;
      const said: Said = { updateId, messageId, message, chatId: chat.id, copies };
      sayings.set(`${chat.id}/${messageId}`, said);
      return said;
    },

    album(this: FakeTelegram, items) {
      albums += 1;
      const mediaGroup = `1337900${albums}`;
      return items.map((item) => this.say({ ...item, mediaGroup }));
    },

    said(chatId, messageId) {
      const said = sayings.get(`${chatId}/${messageId}`);
      if (said === undefined) {
        throw new Error(`nobody said message ${messageId} in ${chatId} on the fake Telegram`);
      }
      return said;
    },

    edit({ copies }, text) {
      const edit_date = Math.floor(Date.now() / 1000);
      for (const { bot, message } of copies) {
        const { text: before, entities: _old, caption: _below, caption_entities: _marks, ...rest } = message;
        const words = before === undefined ? { caption: text } : { text };
        bot.updates.push({ edited_message: { ...rest, ...words, edit_date } });
      }
    },

    migrate(from, to) {
      const date = Math.floor(Date.now() / 1000);
      const by = { id: 1087968824, is_bot: true, first_name: 'Group', username: 'GroupAnonymousBot' };
      const old = { id: from, type: 'group' as const, title: 'A group' };
      const young = { id: to, type: 'supergroup', title: 'A group' };
      for (const bot of bots.all.filter((one) => bots.refusalFor(one, old) === null)) {
        bots.join(bot, to);
        const common = { from: by, date };
        const moved = { ...common, chat: old, sender_chat: old, migrate_to_chat_id: to };
        const come = { ...common, chat: young, sender_chat: young, migrate_from_chat_id: from };
        bot.updates.push({ message: { ...moved, message_id: talk.next(bot, from) } });
        bot.updates.push({ message: { ...come, message_id: talk.next(bot, to) } });
      }
    },

    fail(method, fault, { times = 1, when = () => true, bot = null } = {}) {
      faults.push({ method, fault, times, when, bot });
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
      for (const bot of bots.all) bot.updates.close();
      await shut();
      if (fetched.length > 0) throw new Error(`Telegram would have fetched ${fetched.join(', ')}`);
      if (floods.hurried.length > 0) {
        throw new Error(`calls during a wait that Telegram asked for: ${floods.hurried.join(', ')}`);
      }
    },
  };
}

/** Methods whose texts have previews. */
const WITH_TEXT = new Set(['sendMessage', 'editMessageText', 'sendMessageDraft']);

const UNKNOWN_METHOD = { status: 404, description: 'Not Found: method not found' };

/** What only a bot that is in the chat may do. */
const TO_A_CHAT = new Set([
  ...[
    'sendMessage',
    'sendDocument',
    'sendPhoto',
    'sendVoice',
    'sendMessageDraft',
    'sendChatAction',
    'setMessageReaction',
  ],
  ...['editMessageText', 'editMessageReplyMarkup', 'deleteMessage', 'getChatAdministrators'],
]);

/** What a bot gets of a group although its privacy mode is on. */
function concerns({ id, username }: FakeBot, message: Payload): boolean {
  const { chat, reply_to_message: replied } = message as {
    chat: { type: string };
    reply_to_message?: { from?: { id?: number } };
  };
  const words = String(message.text ?? message.caption ?? '');
  const command = /^\/\w+(?:@(\w+))?/.exec(words);
  return (
    chat.type === 'private' ||
    words.includes(`@${username}`) ||
    replied?.from?.id === id ||
    (command !== null && (command[1] ?? username) === username)
  );
}
