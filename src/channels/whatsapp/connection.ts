/** One connection to WhatsApp, from beginning to end; after it a new one is made. */

import { randomBytes } from 'node:crypto';
import type { Agent as HttpsAgent } from 'node:https';
import {
  type AuthenticationCreds,
  type BinaryNode,
  getBinaryNodeChild,
  makeWASocket,
  proto,
  type SocketConfig,
  type WASocket,
  type WAVersion,
} from '@whiskeysockets/baileys';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/network.js';
import { backoffMs } from '../kit/supervise.js';
import type { Credentials } from './credentials.js';
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

export type Ack = { kind: 'taken' } | { kind: 'refused'; code: number } | { kind: 'cut off' };

export interface Acks {
  /** To be called before the message is written, since its ack may come at once. Await it, or `forget` it. */
  expect(id: string): { ack: Promise<Ack>; forget(): void };
  /** WhatsApp answered. `code` is null for a message that it took. */
  came(id: string, code: number | null): void;
  /** The connection is gone: there will be no more answers. */
  cutOff(): void;
}

export function createAcks(): Acks {
  /** Two tries of one message may wait for the same ack. */
  const waiting = new Map<string, Set<(ack: Ack) => void>>();

  function settle(id: string, ack: Ack): void {
    const waiters = waiting.get(id);
    waiting.delete(id);
    for (const tell of waiters ?? []) tell(ack);
  }

  return {
    expect(id) {
      let tell: (ack: Ack) => void = () => {};
      const ack = new Promise<Ack>((resolve) => {
        tell = resolve;
      });
      const waiters = waiting.get(id) ?? new Set();
      waiting.set(id, waiters.add(tell));
      const forget = () => {
        waiters.delete(tell);
        if (waiters.size === 0 && waiting.get(id) === waiters) waiting.delete(id);
      };
      return { ack, forget };
    },
    came: (id, code) => settle(id, code === null ? { kind: 'taken' } : { kind: 'refused', code }),
    cutOff() {
      for (const id of [...waiting.keys()]) settle(id, { kind: 'cut off' });
    },
  };
}

type LibraryLog = SocketConfig['logger'];

export function libraryLog(log: Log): LibraryLog {
  const say = (level: string) => (about: unknown, sentence?: string) => {
    const words = typeof about === 'string' ? about : (sentence ?? '');
    log.debug({ channel: 'whatsapp', level, ...reasonOf(about) }, `baileys: ${words}`);
  };
  const silent = () => {};
  const adapter: LibraryLog = {
    // At `trace` the library would write out every stanza.
    level: 'info',
    child: () => adapter,
    trace: silent,
    debug: silent,
    info: say('info'),
    warn: say('warn'),
    error: say('error'),
  };
  return adapter;
}

function reasonOf(about: unknown): { reason?: string } {
  if (typeof about !== 'object' || about === null) return {};
  const { err, error } = about as { err?: unknown; error?: unknown };
  const cause = err ?? error;
  return cause instanceof Error ? { reason: cause.message } : {};
}

const METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const;
const LIBSIGNAL = /[\\/]node_modules[\\/](libsignal|@whiskeysockets[\\/]baileys)[\\/]/;

/** Until the returned function is called, the log has a line whenever libsignal writes, without what it writes. */
export function silenceLibsignal(log: Log): () => void {
  const shared = globalThis.console;
  let filtering = true;
  const undo = METHODS.map((method) => {
    const original = shared[method];
    function filtered(this: unknown, ...said: unknown[]): void {
      if (filtering && isFromLibsignal(filtered)) {
        log.debug(
          { channel: 'whatsapp', method, about: subjectOf(said[0]) },
          'libsignal wrote to the console',
        );
      } else {
        original.apply(this, said);
      }
    }
    shared[method] = filtered;
    return () => {
      // If somebody has replaced our function since, it may still call us: then everything goes through.
      if (shared[method] === filtered) shared[method] = original;
    };
  });
  return () => {
    filtering = false;
    for (const one of undo) one();
  };
}

function isFromLibsignal(below: () => void): boolean {
  const limit = Error.stackTraceLimit;
  const holder: { stack?: string } = {};
  Error.stackTraceLimit = 1;
  Error.captureStackTrace(holder, below);
  Error.stackTraceLimit = limit;
  return LIBSIGNAL.test(holder.stack ?? '');
}

/** The beginning of what it wrote, which is fixed text; the rest may hold anything. */
function subjectOf(first: unknown): string {
  return typeof first === 'string' ? (/^[A-Za-z ]{1,60}/.exec(first)?.[0] ?? '') : typeof first;
}

const PASSKEY =
  'the account has to prove a passkey, which a gateway cannot: no code will link it, so take another number';
const DEVICES =
  'remove one of its linked devices (four at most), update WhatsApp on the phone, and try again after some hours';

/** What may be wrong when codes were shown and nothing came of them. */
export const UNLINKED = {
  unscanned: `not linked: no phone was linked while the last QR codes were shown. If one was scanned, and the phone asked for a passkey or said "Continue on WhatsApp Web", ${PASSKEY}. If it said "Couldn't link device", ${DEVICES}, or link with a code: coterie pair whatsapp --phone NUMBER`,
  untyped: 'nobody typed the code in time',
  takenBack: `not linked: WhatsApp took the link back at once (401). On the phone, ${DEVICES}`,
  refused: `not linked: WhatsApp refuses to link this gateway just now (401). On the phone, ${DEVICES}`,
  passkey: `WhatsApp did not complete the link: ${PASSKEY}`,
  stalled: `the phone took the code, but WhatsApp did not complete the link. If the phone asked for a passkey or said "Continue on WhatsApp Web", ${PASSKEY}; otherwise ${DEVICES}, or scan the QR code that the gateway shows when it is started`,
} as const;

/** Why there is no code; null for what a second try may mend. */
function refusalOf(code: number): string {
  const scan = 'scan the QR code that the gateway shows when it is started';
  return code === 429
    ? `WhatsApp was asked for too many codes for this number (429): wait some hours, or ${scan}`
    : `WhatsApp gives no code for this number (${code}): see that it is the account's whole number, with the country code; if it is, ${scan}`;
}

/** Why a phone cannot be linked, for good. */
export class Unlinkable extends Error {}

/**
 * Asks for a code to be typed on the phone. The library hands out its code before WhatsApp has answered; here it counts
 * only after that (WhiskeySockets/Baileys#2737). Throws `Unlinkable` when WhatsApp refuses.
 */
export async function askForCode(socket: WASocket, digits: string): Promise<string> {
  const answered = new Promise<void>((resolve, reject) => {
    socket.ws.on('CB:iq,type:result,link_code_companion_reg', () => resolve());
    socket.ws.on('CB:iq,type:error', (answer: BinaryNode) => {
      const code = Number(getBinaryNodeChild(answer, 'error')?.attrs.code);
      reject(new Unlinkable(refusalOf(code || 400)));
    });
  });
  const [code] = await Promise.all([socket.requestPairingCode(digits), answered]);
  return code;
}

/**
 * Calls `taken` when the code was typed on the phone, and `refused` when what comes then cannot be read: the account has
 * to prove a passkey (WhiskeySockets/Baileys#2694).
 */
export function onCodeTyped(
  socket: WASocket,
  { taken, refused }: { taken(): void; refused(why: Unlinkable): void },
) {
  const needed = [
    'link_code_pairing_ref',
    'primary_identity_pub',
    'link_code_pairing_wrapped_primary_ephemeral_pub',
  ];
  socket.ws.on('CB:notification,type:link_code_companion_reg', (notification: BinaryNode) => {
    const hello = getBinaryNodeChild(notification, 'link_code_companion_reg');
    if (needed.every((part) => getBinaryNodeChild(hello, part) !== undefined)) taken();
    else refused(new Unlinkable(UNLINKED.passkey));
  });
}

/**
 * WhatsApp may retire the secret that stands in the QR codes. Browsers then make a new one and draw the code on the
 * screen anew; the library does not (WhiskeySockets/Baileys#2765).
 */
export function withCurrentSecret(socket: WASocket, creds: AuthenticationCreds, show: (qr: string) => void) {
  let shown: string | null = null;
  function draw(qr: string): void {
    shown = qr;
    const [address = '', values = ''] = qr.split('#');
    const [ref, noiseKey, identityKey, , ...rest] = values.split(',');
    show(`${address}#${[ref, noiseKey, identityKey, creds.advSecretKey, ...rest].join(',')}`);
  }
  socket.ws.on('CB:notification,type:companion_reg_refresh', () => {
    if (creds.account !== undefined) return;
    socket.ev.emit('creds.update', { advSecretKey: randomBytes(32).toString('base64') });
    if (shown !== null) draw(shown);
  });
  return draw;
}

export type Closing =
  /** WhatsApp asks for a new connection, as it does after each linking. */
  | { kind: 'restart'; reason: string }
  /** Codes were shown, and no link came of them. */
  | { kind: 'unlinked'; reason: string }
  /** The owner took the gateway out of the linked devices: its credentials are worth nothing any more. */
  | { kind: 'logged out'; reason: string }
  /** Another program is logged in with the same credentials. */
  | { kind: 'replaced'; reason: string }
  /** WhatsApp has retired the version of WhatsApp Web that we say we are. */
  | { kind: 'outdated'; reason: string }
  /** WhatsApp does not let this account, or this client, in. */
  | { kind: 'refused'; reason: string }
  | { kind: 'interrupted'; reason: string };

const REFUSALS: Record<number, string> = {
  402: 'WhatsApp has banned this account for some time; the phone says until when',
  403: 'WhatsApp refuses this account: it may be banned, or the phone has left it. See what WhatsApp says on the phone; if it works there, remove the gateway under Linked devices, and it shows a new code to link it with',
  409: 'WhatsApp refuses this version of its client; a newer version of the gateway is needed',
  411: 'the phone does not take part in linked devices (multi-device mismatch): update WhatsApp on it, remove the gateway under Linked devices, and link it anew',
};

const INTERRUPTIONS: Record<number, string> = {
  408: 'the connection to WhatsApp was lost',
  428: 'the connection to WhatsApp was closed',
  500: 'WhatsApp ended the connection with an error',
  503: 'WhatsApp is not available',
};

const MINUTE = 60_000;
const PAUSES: Record<Exclude<Closing['kind'], 'interrupted'>, number[]> = {
  restart: [0, 0, 1_000, 10_000, MINUTE],
  // Who comes later to scan one starts the gateway again.
  unlinked: [MINUTE, 5 * MINUTE, 10 * MINUTE],
  'logged out': [0, 5_000, MINUTE],
  replaced: [MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE],
  outdated: [MINUTE, 10 * MINUTE, 60 * MINUTE],
  refused: [MINUTE, 10 * MINUTE, 60 * MINUTE],
};

/** `before` says how many connections in a row ended badly before this one. */
export function pauseAfter(closing: Closing, before: number): number {
  if (closing.kind === 'interrupted') return backoffMs(before);
  const pauses = PAUSES[closing.kind];
  return pauses[Math.min(before, pauses.length - 1)] ?? 0;
}

export function closingOf(error: unknown): Closing {
  const code = statusOf(error);
  const words = error instanceof Error ? describe(error) : 'the connection ended';
  if (words.includes('QR refs attempts ended')) {
    return { kind: 'unlinked', reason: UNLINKED.unscanned };
  }
  const said = (sentence: string) => `${sentence} (${code ?? words})`;
  switch (code) {
    case 515:
      return { kind: 'restart', reason: 'WhatsApp asked for a new connection' };
    case 401:
      return { kind: 'logged out', reason: 'this gateway was removed from the linked devices of the phone' };
    case 405:
      return { kind: 'outdated', reason: 'WhatsApp refuses this version of its client as too old (405)' };
    case 440:
      return {
        kind: 'replaced',
        reason:
          'another client uses the same link; two gateways with the same data? This one stays away for some time (440)',
      };
    default: {
      const refusal = code === null ? undefined : REFUSALS[code];
      if (refusal !== undefined) return { kind: 'refused', reason: said(refusal) };
      const known = code === null ? undefined : INTERRUPTIONS[code];
      return { kind: 'interrupted', reason: known ? `${said(known)}: ${words}` : words };
    }
  }
}

/** The code in an error of the library. */
export function statusOf(error: unknown): number | null {
  if (typeof error !== 'object' || error === null || !('output' in error)) return null;
  const { output } = error;
  if (typeof output !== 'object' || output === null || !('statusCode' in output)) return null;
  return typeof output.statusCode === 'number' ? output.statusCode : null;
}

const MODULES = /[\\/]node_modules[\\/]/;
const LIBRARY = /[\\/]node_modules[\\/](@whiskeysockets[\\/]baileys|libsignal|whatsapp-rust-bridge)[\\/]/;

/** The error of a request that was under way when a connection ended: closed, lost, or without an answer in time. */
export function isEndOfConnection(error: unknown): boolean {
  return [408, 428].includes(statusOf(error) ?? 0);
}

/**
 * Whether an error was thrown inside the library: its stack frames stand before any of ours. What we throw while the
 * library calls us is our own fault.
 */
export function isOfLibrary(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  for (const frame of frames) {
    if (LIBRARY.test(frame)) return true;
    const isForeign = MODULES.test(frame) || frame.includes('node:') || frame.includes('<anonymous>');
    if (!isForeign) return false;
  }
  return false;
}
