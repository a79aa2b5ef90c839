/**
 * WhatsApp, as a linked device of somebody's phone: the first and the last step of the route. This file joins the
 * parts, and holds no rule of its own.
 */
import type { proto } from '@whiskeysockets/baileys';
import type { Channel, ChannelHost, Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { describe, Fault } from '../../core/errors.js';
import { onAbort } from '../kit/abort.js';
import { bounded } from '../kit/bounded.js';
import { withSpeakerName } from '../kit/outgoing.js';
import { createState } from '../kit/supervise.js';
import { type Connection, isEndOfConnection, isOfLibrary, silenceLibsignal } from './connection.js';
import { check, forgetLink, meIn, openCredentials } from './credentials.js';
import { markOf, messageId } from './ids.js';
import { createHandIn, createIntake, createReadReceipts } from './intake.js';
import { createCache, createGroups, createSecrets } from './lookup.js';
import { fetchFile } from './media.js';
import type { WhatsAppOptions } from './options.js';
import { compose } from './outbound.js';
import { createReconnecting, type LoginParts, logIn } from './reconnect.js';
import { createHolds, createTrouble } from './restrictions.js';
import { reactionTo, send } from './send.js';
import { createVersions } from './versions.js';

type Lent = 'options' | 'state' | 'cursor' | 'sentPart' | 'noteLink' | 'outward' | 'clock' | 'log';
type Host = Pick<ChannelHost<WhatsAppOptions>, Lent> & {
  /** Shows a code that the phone can scan. */
  onQr(text: string): void;
};

type Members = 'react' | 'setTyping' | 'fetch' | 'isAdministrator' | 'survives' | 'check' | 'names';
export type WhatsApp = Channel & Required<Pick<Channel, Members>>;

/** How much of what was sent is remembered, beside what the store keeps. */
const MOST_SENT = 500;

export function createWhatsApp(host: Host): WhatsApp {
  const { options, outward, clock, log, state, cursor, sentPart } = host;
  const status = createState(clock);
  const stopping = new AbortController();
  const cache = createCache();
  const sent = bounded<string, proto.IMessage>(MOST_SENT);
  const holds = createHolds({ state, clock, log, trouble: createTrouble('restriction', state, log) });
  const sender = { cache, sent, holds, clock, log };
  const handIn = createHandIn('whatsapp');
  let takesIn = true;
  /** What the account calls itself, as far as it was known at the newest login. */
  let name: string | null = null;
  let running: Promise<unknown> = Promise.resolve();
  let unsilence = () => {};

  const groups = createGroups({
    ask: async (group) => opened().socket.groupMetadata(group),
    met: (person) => cache.notePerson(person, undefined),
    clock,
    log,
  });
  const receipts = createReadReceipts({
    tell: async (keys) => opened().socket.readMessages(keys),
    clock,
    log,
  });
  const secrets = createSecrets(state, clock);
  const intake = createIntake({ cache, groups, receipts, handIn, secrets, clock, log });
  const versions = createVersions({ options, state, outward, clock, log, signal: stopping.signal });
  const login: LoginParts = {
    options,
    version: versions.current,
    outward,
    clock,
    log,
    intake,
    groups,
    resends: { sent, sentPart, log, signal: stopping.signal },
    takesIn: () => takesIn,
    cursor,
    onLinked: host.noteLink,
    onRestriction: holds.restricted,
    onToken({ phone, lid }) {
      for (const chat of [phone, lid]) if (chat !== null) holds.opened(chat);
    },
    onQr(text) {
      status.down('not linked yet: scan the QR code with the phone, under Linked devices');
      host.onQr(text);
    },
  };
  const connections = createReconnecting({
    credentials: () => openCredentials(state),
    connect: (credentials, isOpen) => logIn(login, credentials, isOpen),
    forget: () => forgetLink(state),
    renewVersion: versions.refused,
    state: status,
    trouble: createTrouble('trouble', state, log),
    clock,
    log,
    signal: stopping.signal,
  });

  function opened(): Connection {
    const connection = connections.open();
    if (connection === null) throw new Error('there is no connection to WhatsApp');
    return connection;
  }

  async function sendNow(
    to: Recipient,
    part: Part,
    { replyTo, key, signal }: SendOptions,
    content?: proto.IMessage,
  ): Promise<SendResult> {
    const connection = connections.open();
    if (connection === null) {
      const why = status.status().lastError ?? 'not connected yet';
      return { kind: 'unreachable', reason: `no connection to WhatsApp: ${why}`, taken: 'no' };
    }
    const mark = markOf(connection.credentials.auth.creds.signedIdentityKey.public);
    const id = messageId(mark, key);
    return send(sender, connection, to, part, { id, replyTo, signal, ...(content && { content }) });
  }

  return {
    name: 'whatsapp',
    recognisesResends: true,
    typedAtMost: [65_536],
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 1 },
    },
    compose,
    status() {
      const now = status.status();
      return now.connected ? { ...now, lastError: holds.reason() ?? now.lastError } : now;
    },

    names() {
      const connection = connections.open();
      if (connection !== null) name = meIn(connection.credentials.auth.creds)?.name ?? null;
      return name === null ? [] : [name];
    },

    async start(receive, signal) {
      handIn.begin(receive);
      onAbort(signal, () => {
        takesIn = false;
      });
      await holds.load();
      unsilence = silenceLibsignal(log);
      running = Promise.all([connections.run(), secrets.forgetOld(log, stopping.signal)]);
    },

    voiceNotes: true,

    send: (to, part, options) => sendNow(to, withSpeakerName(part, options), options),

    async react(to, id, emoji, options) {
      const content = reactionTo(cache, to, id, emoji, clock.now());
      if (content === null)
        return { kind: 'refused', reason: `WhatsApp’s message ${id} is not known any more` };
      return sendNow(to, { text: '', marks: [] }, { ...options, replyTo: null }, content);
    },

    async stop() {
      takesIn = false;
      stopping.abort();
      receipts.stop();
      await running;
      await intake.idle();
      await holds.settled();
      unsilence();
    },

    async setTyping(to) {
      try {
        await opened().socket.sendPresenceUpdate('composing', to.address);
      } catch (error) {
        log.debug({ channel: 'whatsapp', reason: describe(error) }, 'typing was not shown');
      }
    },

    fetch: ({ source }, { maxBytes, signal }) =>
      fetchFile({ source, maxBytes, signal, outward, clock, socket: connections.open()?.socket ?? null }),

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
      // An error that is left over from a connection that ended is no reason to end the one after it.
      if (!isEndOfConnection(error)) {
        connections.renew(new Error(`a fault inside the library: ${describe(error)}`));
      }
      return true;
    },

    check: () => check(state),
  };
}
