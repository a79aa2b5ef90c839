/**
 * The page of the board as a channel: what it shows is what the store holds, so that a message is sent when it is in the
 * outbox, and shown again when the page asks for it. Its chats are `board_main` and `board_<slug>`, all of one person.
 */
import { BOARD, BOARD_OWNER, type Desk, type UploadedFile } from '../../core/board.js';
import type { Channel, ChannelLimits, Receive, Recipient, SendResult } from '../../core/channel.js';
import { type Clock, onAbort } from '../../core/clock.js';
import { addressOf, type ChatId, platformId } from '../../core/ids.js';
import type { Attachment, InboundEvent } from '../../core/message.js';
import { boundedEvent } from '../kit/incoming.js';
import { findFile } from '../kit/outgoing.js';
import { createState } from '../kit/supervise.js';
import { createUploads, type Uploads } from './uploads.js';

export interface BoardChannelOptions {
  /** For files until they are fetched. */
  folder: string;
  /** How a persona calls whoever uses the page. */
  userName: string;
  clock: Clock;
  /** Unguessable. */
  newId(): string;
}

const UNLIMITED = 1000;
const LIMITS: ChannelLimits = {
  messagesPerSecond: UNLIMITED,
  perChatBurst: UNLIMITED,
  perChatPerSecond: { direct: UNLIMITED, group: UNLIMITED },
  // Only what was typed while the gateway was away comes in a burst.
  debounceMs: 100,
};
/** Text on the page grows as smoothly as the eye wants; each step is a small write of the store. */
const LIVE_EVERY_MS = 100;
const FRAME_MS = 50;

export function createBoardChannel({ folder, userName, clock, newId }: BoardChannelOptions): Channel & Desk {
  const state = createState(clock);
  const uploads = createUploads(folder, { now: clock.now, newId });
  const { note, watch } = createChanges(clock);
  const pending = new Set<Promise<unknown>>();
  let receive: Receive | null = null;

  async function hand(chatId: ChatId, event: InboundEvent): Promise<'taken' | 'closed'> {
    if (receive === null) return 'closed';
    const receiving = receive({ channel: BOARD, account: BOARD, events: [boundedEvent(event)] });
    pending.add(receiving);
    try {
      const { rejected } = await receiving;
      note(chatId);
      return rejected.length === 0 ? 'taken' : 'closed';
    } finally {
      pending.delete(receiving);
    }
  }

  /** The same for every attempt, so that what a crash cut off is simply sent again. */
  function shown(to: Recipient, key: string): SendResult {
    note(chatOf(to));
    return { kind: 'sent', platformMessageId: `sent-${key}` };
  }

  async function start(given: Receive, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    receive = given;
    onAbort(signal, () => {
      receive = null;
    });
    state.up();
    await uploads.tidy();
  }

  return {
    name: BOARD,
    limits: LIMITS,
    liveEveryMs: LIVE_EVERY_MS,
    facesAlone: true,
    recognisesResends: true,
    buttons: true,
    start,
    listen: start,
    async stop() {
      receive = null;
      state.down(null);
      await Promise.allSettled(pending);
    },
    status: state.status,
    compose: (markdown) => (markdown.trim() === '' ? [] : [{ text: markdown, marks: [] }]),
    async send(to, part, { key }) {
      const found = part.file === undefined ? null : await findFile(part.file);
      return found === null || found.kind === 'found' ? shown(to, key) : found;
    },
    async edit(to, platformMessageId) {
      note(chatOf(to));
      return { kind: 'sent', platformMessageId };
    },
    async remove(to) {
      note(chatOf(to));
      return true;
    },
    react: async (to, _platformMessageId, _emoji, { key }) => shown(to, key),
    fetch: ({ source }, { maxBytes }) => uploads.fetch(source, maxBytes),

    ...deskOf({ hand, uploads, userName, now: clock.now }),
    watch,
  };
}

interface DeskParts {
  hand(chatId: ChatId, event: InboundEvent): Promise<'taken' | 'closed'>;
  uploads: Uploads;
  userName: string;
  now(): number;
}

function deskOf({ hand, uploads, userName, now }: DeskParts): Omit<Desk, 'watch'> {
  const person = { address: addressOf(BOARD_OWNER), name: userName, administrator: true };
  return {
    async take({ chatId, id, text, files }) {
      for (const file of files) await uploads.named(file.id);
      return hand(chatId, {
        kind: 'message',
        // As on every platform, a direct chat has the other person's name.
        chat: { address: addressOf(chatId), kind: 'direct', title: userName },
        threadId: null,
        platformMessageId: id,
        sender: person,
        text,
        sentAt: now(),
        mentionsBot: false,
        replyTo: null,
        ...(files.length > 0 && { attachments: files.map(asAttachment) }),
      });
    },
    press: ({ chatId, id, value }) =>
      hand(chatId, {
        kind: 'choice',
        chat: { address: addressOf(chatId), kind: 'direct' },
        threadId: null,
        sender: person,
        platformMessageId: id,
        value,
        sentAt: now(),
      }),
    async keep({ name, type, bytes }) {
      const id = await uploads.keep(bytes);
      return id === null ? null : { id, name, type, bytes: bytes.length };
    },
  };
}

/** Tells watchers which chats changed, once a frame. */
function createChanges(clock: Clock) {
  const watchers = new Set<(chats: ReadonlySet<ChatId>) => void>();
  let changed = new Set<ChatId>();

  function tell(): void {
    const chats = changed;
    changed = new Set();
    for (const watcher of watchers) watcher(chats);
  }

  return {
    note(chatId: ChatId): void {
      if (watchers.size === 0) return;
      if (changed.size === 0) clock.after(FRAME_MS, tell);
      changed.add(chatId);
    },
    watch(watcher: (chats: ReadonlySet<ChatId>) => void): () => void {
      const own = (chats: ReadonlySet<ChatId>) => watcher(chats);
      watchers.add(own);
      return () => void watchers.delete(own);
    },
  };
}

function chatOf({ address }: Recipient): ChatId {
  return platformId(BOARD, address);
}

function asAttachment({ id, name, type, bytes }: UploadedFile): Attachment {
  const [family = ''] = type.toLowerCase().split('/', 1);
  const kind = family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
  return { kind, source: id, name, mimeType: type, bytes, seconds: null };
}
