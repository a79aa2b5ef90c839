/** One connection to WhatsApp, from beginning to end; after it a new one is made. */
import type { Agent as HttpsAgent } from 'node:https';
import {
  makeWASocket,
  proto,
  type SocketConfig,
  type WASocket,
  type WAVersion,
} from '@whiskeysockets/baileys';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/outward.js';
import { type Acks, createAcks } from './acks.js';
import type { Credentials } from './credentials.js';
import { libraryLog } from './library-log.js';
import { withCurrentSecret } from './linking.js';
import type { WhatsAppOptions } from './options.js';

const { INITIAL_BOOTSTRAP } = proto.Message.HistorySyncType;

/** How long the server may take to close its side. */
const CLOSE_WITHIN_MS = 1_000;

export interface Connection {
  socket: WASocket;
  credentials: Credentials;
  acks: Acks;
  /** Resolves with the reason. */
  ended: Promise<unknown>;
  end(reason: Error): void;
}

export interface ConnectionParts {
  options: Pick<WhatsAppOptions, 'webSocketUrl'>;
  /** Of WhatsApp Web, as which it logs in. */
  version: WAVersion;
  credentials: Credentials;
  outward: Outward;
  clock: Clock;
  log: Log;
  /** What the library calls us for. */
  hooks: Pick<SocketConfig, 'makeSignalRepository'> &
    Partial<Pick<SocketConfig, 'getMessage' | 'cachedGroupMetadata'>>;
  onQr(text: string): void;
  /** The phone has linked us; WhatsApp ends the connection after that. */
  onPaired(): void;
  /** Logged in. */
  onOpen(): void;
  /** WhatsApp lets the account begin no chats until then (ms); null: it may again. */
  onRestriction?(until: number | null): void;
}

export function connect(parts: ConnectionParts): Connection {
  const { options, credentials, outward, log } = parts;
  const acks = createAcks();
  // For a server without TLS (a fake one) the library takes an agent of that kind, too.
  const agentFor = (secure: boolean) => outward.agent(secure) as HttpsAgent;
  const isPlain = options.webSocketUrl?.startsWith('ws:') === true;
  // An option that is set to undefined would override its default.
  const socket = makeWASocket({
    auth: credentials.auth,
    logger: libraryLog(log),
    version: parts.version,
    ...(options.webSocketUrl === null ? {} : { waWebSocketUrl: options.webSocketUrl }),
    ...{ agent: agentFor(!isPlain), fetchAgent: agentFor(true) },
    ...parts.hooks,
    syncFullHistory: false,
    // What was said before is nobody's business here. But with the first part of it come the tokens without which
    // WhatsApp refuses what is written into old chats (463); the library keeps these, and hands out the rest to nobody.
    shouldSyncHistoryMessage: ({ syncType }) => syncType === INITIAL_BOOTSTRAP,
    markOnlineOnConnect: false,
    emitOwnEvents: false,
    shouldIgnoreJid: (jid) => jid === 'status@broadcast' || /@(newsletter|bot)$/.test(jid),
  });

  let finish: (reason: unknown) => void = () => {};
  const ended = new Promise<unknown>((resolve) => {
    finish = (reason) => {
      acks.cutOff();
      resolve(reason);
    };
  });

  stayUnseen(socket, log);
  const showQr = withCurrentSecret(socket, credentials.auth.creds, parts.onQr);
  socket.ev.on('creds.update', credentials.save);
  socket.ev.on(
    'connection.update',
    ({ connection, lastDisconnect, qr, isNewLogin, reachoutTimeLock: lock }) => {
      if (qr !== undefined) showQr(qr);
      if (isNewLogin) parts.onPaired();
      if (connection === 'open') parts.onOpen();
      if (lock) parts.onRestriction?.(lock.isActive ? (lock.timeEnforcementEnds?.getTime() ?? 0) : null);
      if (connection === 'close') finish(lastDisconnect?.error);
    },
  );
  socket.ws.on('CB:ack,class:message', ({ attrs }: { attrs: Record<string, string> }) => {
    if (attrs.id) acks.came(attrs.id, attrs.error === undefined ? null : Number(attrs.error) || 500);
  });

  return {
    socket,
    credentials,
    acks,
    ended,
    end(reason) {
      finish(reason);
      // The library does not expose its socket, and waits half a minute for the server to close its side.
      const { socket: open } = socket.ws as unknown as { socket: { terminate(): void } | null };
      const cancel = parts.clock.after(CLOSE_WITHIN_MS, () => open?.terminate());
      void socket
        .end(reason)
        .catch(() => {})
        .finally(cancel);
    },
  };
}

/**
 * While a linked device counts as online, the owner's phone does not ring. At login the library says that it is not, but
 * only where it knows the account's name; it learns the name soon after linking, and tells it in a way that counts as
 * being online (WhiskeySockets/Baileys#299, #2553).
 */
function stayUnseen(socket: WASocket, log: Log): void {
  let isOpen = false;
  const hide = () =>
    void socket
      .sendPresenceUpdate('unavailable')
      .catch((error) =>
        log.debug({ channel: 'whatsapp', reason: describe(error) }, 'it may be seen as online'),
      );
  socket.ev.on('connection.update', ({ connection }) => {
    if (connection === 'open') isOpen = true;
  });
  socket.ev.on('creds.update', ({ me }) => {
    if (isOpen && me?.name) hide();
  });
}
