/**
 * WhatsApp, as a linked device of somebody's phone: the first and the last step of the route. This file joins the
 * parts and holds no rule of its own.
 */
import type { proto } from '@whiskeysockets/baileys';
import type { Channel, Part, Receive } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe, Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { bounded } from '../kit/bounded.js';
import { named } from '../kit/named.js';
import { createState } from '../kit/state.js';
import { check } from './check.js';
import type { Connection } from './connection.js';
import { type ChannelState, openCredentials } from './credentials.js';
import { download } from './download.js';
import { isEndOfConnection, isOfLibrary } from './fault.js';
import { createGroups } from './groups.js';
import { hushLibsignal } from './hush.js';
import { createIntake } from './intake.js';
import { createKeeper } from './keep.js';
import { type LoginParts, logIn } from './login.js';
import { createMemory } from './memory.js';
import type { WhatsAppOptions } from './options.js';
import { compose } from './outbound.js';
import { markOf, messageId } from './own-ids.js';
import { createReadReceipts } from './receipts.js';
import { send } from './send.js';

export interface WhatsAppParts {
  options: WhatsAppOptions;
  clock: Clock;
  log: Log;
  state: ChannelState;
  /** The time of the newest message that was stored, ms; null before the first. */
  initialCursor(account: string): Promise<string | null>;
  /** What was sent with this key, for a peer that asks for it again. */
  sentPart(key: string): Promise<Part | null>;
  /** Shows a code that the phone can scan. */
  onQr(text: string): void;
}

type Members = 'setTyping' | 'fetch' | 'isAdministrator' | 'survives' | 'check';
export type WhatsApp = Channel & Required<Pick<Channel, Members>>;

/** How much of what was sent is remembered, beside what the store keeps. */
const MOST_SENT = 500;

export function createWhatsApp(parts: WhatsAppParts): WhatsApp {
  const { options, clock, log, state } = parts;
  const status = createState(clock);
  const stopping = new AbortController();
  const memory = createMemory();
  const sent = bounded<string, proto.IMessage>(MOST_SENT);
  const sender = { memory, sent, clock, log };
  let receive: Receive | null = null;
  let takesIn = true;
  let running = Promise.resolve();
  let unhush = () => {};

  const groups = createGroups({
    ask: async (group) => opened().socket.groupMetadata(group),
    met: (person) => memory.met(person, undefined),
    ...{ clock, log },
  });
  const receipts = createReadReceipts({
    tell: async (keys) => opened().socket.readMessages(keys),
    ...{ clock, log },
  });
  const intake = createIntake({
    ...{ memory, groups, receipts, clock, log },
    receive: (batch) =>
      receive === null ? Promise.reject(new Error('taking in has not begun')) : receive(batch),
  });
  const login: LoginParts = {
    ...{ options, clock, log, intake, groups },
    resends: { sent, sentPart: parts.sentPart, log, signal: stopping.signal },
    takesIn: () => takesIn,
    initialCursor: parts.initialCursor,
    onQr(text) {
      status.down('not linked yet: scan the QR code with the phone, under Linked devices');
      parts.onQr(text);
    },
  };
  const keeper = createKeeper({
    credentials: () => openCredentials(state),
    connect: (credentials, isOpen) => logIn(login, credentials, isOpen),
    forget: () => state.clear(),
    ...{ state: status, clock, log, signal: stopping.signal },
  });

  function opened(): Connection {
    const connection = keeper.open();
    if (connection === null) throw new Error('there is no connection to WhatsApp');
    return connection;
  }

  return {
    name: 'whatsapp',
    recognisesResends: true,
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 1 },
    },
    compose,
    status: status.status,

    async start(to, signal) {
      receive = to;
      const stopTakingIn = () => {
        takesIn = false;
      };
      signal.addEventListener('abort', stopTakingIn, { once: true });
      if (signal.aborted) stopTakingIn();
      unhush = hushLibsignal(log);
      running = keeper.run();
    },

    async send(to, part, options) {
      const { replyTo, key, signal } = options;
      const connection = keeper.open();
      if (connection === null) {
        const why = status.status().lastError ?? 'not connected yet';
        return { kind: 'unreachable', reason: `no connection to WhatsApp: ${why}`, taken: 'no' };
      }
      const mark = markOf(connection.credentials.auth.creds.signedIdentityKey.public);
      return send(sender, connection, to, named(part, options), {
        id: messageId(mark, key),
        replyTo,
        signal,
      });
    },

    async stop() {
      takesIn = false;
      stopping.abort();
      receipts.stop();
      await running;
      await intake.idle();
      unhush();
    },

    async setTyping(to) {
      try {
        await opened().socket.sendPresenceUpdate('composing', to.address);
      } catch (error) {
        log.debug({ channel: 'whatsapp', reason: describe(error) }, 'typing was not shown');
      }
    },

    fetch: ({ source }, { maxBytes, signal }) =>
      download({ source, maxBytes, signal, clock, socket: keeper.open()?.socket ?? null }),

    async isAdministrator(chat, person) {
      try {
        return await groups.isAdministrator(chat, person);
      } catch (error) {
        const reason = describe(error);
        throw new Fault('internal', `WhatsApp could not be asked who manages the group ${chat}: ${reason}`);
      }
    },

    survives(error) {
      if (!isOfLibrary(error)) return false;
      // An echo of a connection that is gone is no reason to end the one that came after it.
      if (!isEndOfConnection(error)) {
        keeper.renew(new Error(`a fault inside the library: ${describe(error)}`));
      }
      return true;
    },

    check: () => check(state),
  };
}
