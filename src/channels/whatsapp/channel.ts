/** WhatsApp, as a linked device of a person's phone: connects the modules, without rules of its own. */
import type { proto, WASocket } from '@whiskeysockets/baileys';
import { LRUCache } from 'lru-cache';
import type { Channel } from '../../core/channel.js';
import { onAbort } from '../../core/clock.js';
import { locks } from '../../core/concurrency.js';
import { describe, Fault } from '../../core/errors.js';
import { withSpeakerName } from '../kit/outgoing.js';
import { createState, type State } from '../kit/supervise.js';
import { reactionTo } from './changes.js';
import { isEndOfConnection, isOfLibrary, silenceLibsignal } from './connection.js';
import { check, meIn } from './credentials.js';
import { createDirectory, createGroups, createSecrets } from './directory.js';
import { createIntake } from './intake.js';
import { fetchFile } from './media.js';
import type { WhatsAppHost } from './options.js';
import { compose } from './outbound.js';
import { createReconnecting } from './reconnect.js';
import { createRestrictions } from './restrictions.js';
import { edit, remove, type SendContext, send } from './send.js';

export type WhatsApp = ReturnType<typeof createWhatsApp>;

/** Size of the cache of sent messages, in addition to those in the store. */
const MOST_SENT = 500;
/** Every edit is a message, of which WhatsApp bears fewer than other platforms. */
const LIVE_EVERY_MS = 2_000;

export function createWhatsApp(host: WhatsAppHost) {
  const { options, outward, clock, log, state } = host;
  const status = createState(clock);
  const stopping = new AbortController();
  let takesIn = true;
  /** The account's own name, as of the last login. */
  let name: string | null = null;
  let running: Promise<unknown> = Promise.resolve();
  let unsilence = () => {};
  const parts = createParts(host, status, () => takesIn, stopping.signal);
  const { groups, secrets, intake, sender, connections } = parts;
  const { directory, restrictions } = sender;

  return {
    name: 'whatsapp',
    recognisesResends: true,
    liveEveryMs: LIVE_EVERY_MS,
    introduces: () => true,
    typedAtMost: [65_536],
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 1 },
    },
    voiceNotes: true,
    compose,
    status() {
      const now = status.status();
      if (!now.connected) return now;
      // Known at once when a connection ends, as an answer that it cut off may depend on it.
      if (connections.open() === null) return { ...now, connected: false };
      return { ...now, lastError: restrictions.reason() ?? now.lastError };
    },

    names() {
      const connection = connections.open();
      if (connection !== null) name = meIn(connection.credentials.auth.creds)?.name ?? null;
      return name === null ? [] : [name];
    },

    async start(receive, signal) {
      intake.start(receive);
      onAbort(signal, () => {
        takesIn = false;
      });
      await restrictions.load();
      unsilence = silenceLibsignal(log);
      running = Promise.all([connections.run(), secrets.prune(log, stopping.signal)]);
    },

    send: (to, part, options) =>
      send(sender, connections.open(), to, withSpeakerName(part, options), options),

    edit: (to, id, part, options) =>
      edit(sender, connections.open(), to, id, withSpeakerName(part, options), options),

    remove: (to, id, options) => remove(sender, connections.open(), to, id, options),

    async react(to, id, emoji, options) {
      const reaction = reactionTo(directory, to, id, emoji, clock.now());
      if (reaction === null)
        return { kind: 'refused', reason: `WhatsApp’s message ${id} is not known any more` };
      const none = { text: '', marks: [] };
      return send(sender, connections.open(), to, none, { ...options, replyTo: null }, reaction);
    },

    async stop() {
      takesIn = false;
      stopping.abort();
      await running;
      await intake.stop();
      await restrictions.settled();
      unsilence();
    },

    async setTyping(to) {
      const typing = connections.open()?.socket.sendPresenceUpdate('composing', to.address);
      await typing?.catch((error) =>
        log.debug({ channel: 'whatsapp', reason: describe(error) }, 'showing the typing indicator failed'),
      );
    },

    fetch: ({ source }, { maxBytes, signal }) =>
      fetchFile({ source, maxBytes, signal, outward, clock, socket: connections.open()?.socket ?? null }),

    async isAdministrator(chat, person) {
      return groups.isAdministrator(chat, person).catch((error) => {
        const what = `looking up the administrators of the WhatsApp group ${chat} failed`;
        throw new Fault('internal', `${what}: ${describe(error)}`);
      });
    },

    survives(error) {
      if (!isOfLibrary(error)) return false;
      // An error left over from an ended connection must not end the next one.
      if (!isEndOfConnection(error)) {
        connections.renew(new Error(`a fault inside the library: ${describe(error)}`));
      }
      return true;
    },
    check: () => check(state),
    linkCode: connections.linkCode,
  } satisfies Channel;
}

function createParts(host: WhatsAppHost, status: State, takesIn: () => boolean, signal: AbortSignal) {
  const { clock, log, state } = host;
  const opened = (): WASocket => {
    const connection = connections.open();
    if (connection === null) throw new Error('there is no connection to WhatsApp');
    return connection.socket;
  };
  const directory = createDirectory();
  const groups = createGroups(async (group) => opened().groupMetadata(group), directory, clock, log);
  const secrets = createSecrets(state, clock);
  const intake = createIntake({
    directory,
    groups,
    secrets,
    clock,
    log,
    markRead: async (keys) => opened().readMessages(keys),
  });
  const restrictions = createRestrictions(state, clock, log);
  const sent = new LRUCache<string, proto.IMessage>({ max: MOST_SENT });
  const sender: SendContext = { status, directory, sent, restrictions, inTurn: locks(), clock, log };
  const connections = createReconnecting({ host, intake, groups, sender, takesIn, signal });
  return { groups, secrets, intake, sender, connections };
}
