/** One connection to WhatsApp, from its opening to the reason for its end; the next one is a new object. */
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { Agent as HttpsAgent } from 'node:https';
import {
  type AuthenticationCreds,
  makeWASocket,
  proto,
  type SocketConfig,
  type WASocket,
  type WAVersion,
} from '@whiskeysockets/baileys';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { backoffMs } from '../kit/supervise.js';
import type { Credentials } from './credentials.js';
import type { LinkHost } from './options.js';

const { INITIAL_BOOTSTRAP } = proto.Message.HistorySyncType;

/** How long the server may take to close its side. */
const CLOSE_WITHIN_MS = 1_000;

export type WhatsAppConnection = ReturnType<typeof connect>;

interface ConnectParts extends LinkHost {
  /** Version of WhatsApp Web to log in as. */
  version: WAVersion;
  credentials: Credentials;
  hooks: Partial<SocketConfig>;
  onQr(text: string): void;
  /** The phone has linked us; WhatsApp then ends the connection. */
  onPaired(): void;
  onOpen(): void;
  /** Until then (ms) WhatsApp forbids the account to begin chats; null: no restriction. */
  onRestriction?(until: number | null): void;
}

export function connect(parts: ConnectParts) {
  const { options, credentials, outward, log } = parts;
  const acks = new Acks();
  // For a server without TLS (a fake one) the library takes an agent of that kind, too.
  const agentFor = (secure: boolean) => outward.agent(secure) as HttpsAgent;
  // An option set to undefined would override its default.
  const socket = makeWASocket({
    auth: credentials.auth,
    logger: libraryLog(log),
    version: parts.version,
    ...(options.webSocketUrl === null ? {} : { waWebSocketUrl: options.webSocketUrl }),
    agent: agentFor(options.webSocketUrl?.startsWith('ws:') !== true),
    fetchAgent: agentFor(true),
    ...parts.hooks,
    syncFullHistory: false,
    // Earlier conversations are not wanted. But the first part of the history brings the tokens without which
    // WhatsApp refuses messages to old chats (463); the library keeps these and emits nothing else.
    shouldSyncHistoryMessage: ({ syncType }) => syncType === INITIAL_BOOTSTRAP,
    markOnlineOnConnect: false,
    emitOwnEvents: false,
    shouldIgnoreJid: (jid) => jid === 'status@broadcast' || /@(newsletter|bot)$/.test(jid),
  });

  let isOver = false;
  let resolveEnded: (reason: unknown) => void = () => {};
  const ended = new Promise<unknown>((resolve) => {
    resolveEnded = resolve;
  });
  function finish(reason: unknown): void {
    isOver = true;
    acks.cutOff();
    resolveEnded(reason);
  }

  stayUnseen(socket, log);
  const showQr = withCurrentSecret(socket, credentials.auth.creds, parts.onQr);
  socket.ev.on('creds.update', credentials.save);
  socket.ev.on('connection.update', (update) => {
    const { connection, lastDisconnect, qr, isNewLogin, reachoutTimeLock: lock } = update;
    if (qr !== undefined) showQr(qr);
    if (isNewLogin) parts.onPaired();
    if (connection === 'open') parts.onOpen();
    if (lock) parts.onRestriction?.(lock.isActive ? (lock.timeEnforcementEnds?.getTime() ?? 0) : null);
    if (connection === 'close') finish(lastDisconnect?.error);
  });
  socket.ws.on('CB:ack,class:message', ({ attrs }: { attrs: Record<string, string> }) => {
    const code = attrs.error === undefined ? null : Number(attrs.error) || 500;
    if (attrs.id) acks.came(attrs.id, code === null ? { kind: 'taken' } : { kind: 'refused', code });
  });

  function end(reason: Error): void {
    finish(reason);
    // The library hides its socket, and waits half a minute for the server to close its side.
    const { socket: open } = socket.ws as unknown as { socket: { terminate(): void } | null };
    const cancel = parts.clock.after(CLOSE_WITHIN_MS, () => open?.terminate());
    void socket
      .end(reason)
      .catch(() => {})
      .finally(cancel);
  }
  return { socket, credentials, acks, ended, isOver: () => isOver, end };
}

/**
 * While a linked device counts as online, the owner's phone does not ring. At login the library reports
 * itself offline, but only if it knows the account's name; it learns the name soon after linking, and then
 * reports it in a way that counts as online (WhiskeySockets/Baileys#299, #2553).
 */
function stayUnseen(socket: WASocket, log: Log): void {
  let isOpen = false;
  socket.ev.on('connection.update', ({ connection }) => {
    if (connection === 'open') isOpen = true;
  });
  socket.ev.on('creds.update', ({ me }) => {
    if (!isOpen || !me?.name) return;
    socket.sendPresenceUpdate('unavailable').catch((error) => {
      log.debug({ channel: 'whatsapp', reason: describe(error) }, 'hiding the online status failed');
    });
  });
}

/**
 * WhatsApp may retire the secret in QR codes; the library does not renew it (WhiskeySockets/Baileys#2765).
 */
function withCurrentSecret(socket: WASocket, creds: AuthenticationCreds, show: (qr: string) => void) {
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

export type Ack = { kind: 'taken' } | { kind: 'refused'; code: number } | { kind: 'cut off' };

/** WhatsApp's acks: the library calls a message sent once it is written, not once WhatsApp has it. */
export class Acks {
  /** By id of the message. Two tries of one message may wait for the same ack. */
  readonly #came = new EventEmitter<Record<string, [Ack]>>().setMaxListeners(0);

  /** Call before the message is written, since its ack may come at once. Await it, or `forget` it. */
  expect(id: string): { ack: Promise<Ack>; forget(): void } {
    let tell: (ack: Ack) => void = () => {};
    const ack = new Promise<Ack>((resolve) => {
      tell = resolve;
    });
    this.#came.once(`ack ${id}`, tell);
    return { ack, forget: () => void this.#came.off(`ack ${id}`, tell) };
  }

  came(id: string, ack: Ack): void {
    this.#came.emit(`ack ${id}`, ack);
  }

  /** The connection is gone: no more answers will come. */
  cutOff(): void {
    for (const awaited of this.#came.eventNames()) this.#came.emit(awaited, { kind: 'cut off' });
  }
}

const PASSKEY =
  'the account has to prove a passkey, which a gateway cannot: no code will link it, so take another number';
const DEVICES =
  'remove one of its linked devices (four at most), update WhatsApp on the phone, and try again after some hours';

/** Why codes were shown without a link. */
export const UNLINKED = {
  unscanned: `not linked: no phone was linked while the last QR codes were shown. If one was scanned, and the phone asked for a passkey or said "Continue on WhatsApp Web", ${PASSKEY}. If it said "Couldn't link device", ${DEVICES}, or link with a code: coterie pair whatsapp --phone NUMBER`,
  untyped: 'nobody typed the code in time',
  takenBack: `not linked: WhatsApp took the link back at once (401). On the phone, ${DEVICES}`,
  refused: `not linked: WhatsApp refuses to link this gateway just now (401). On the phone, ${DEVICES}`,
  passkey: `WhatsApp did not complete the link: ${PASSKEY}`,
  stalled: `the phone took the code, but WhatsApp did not complete the link. If the phone asked for a passkey or said "Continue on WhatsApp Web", ${PASSKEY}; otherwise ${DEVICES}, or scan the QR code that the gateway shows when it is started`,
} as const;

const MINUTE = 60_000;

type Kind = 'restart' | 'unlinked' | 'logged out' | 'replaced' | 'outdated' | 'refused' | 'interrupted';

interface ClosingRule {
  /** One after the other, of which the last repeats; without any, the usual back-off. */
  pauses?: number[];
  /** How long a connection must last to reset the pauses. */
  goodAfterMs?: number;
  log?: ['debug' | 'warn' | 'error', string];
}

const REFUSED: ClosingRule = { pauses: [MINUTE, 10 * MINUTE, 60 * MINUTE] };

const CLOSINGS: Record<Kind, ClosingRule> = {
  /** WhatsApp asks for a new connection, as after each linking. */
  restart: {
    pauses: [0, 0, 1_000, 10_000, MINUTE],
    log: ['debug', 'WhatsApp asked for a new connection; reconnecting'],
  },
  /** Nobody scanned the codes. A person who wants to scan one later restarts the gateway. */
  unlinked: {
    pauses: [MINUTE, 5 * MINUTE, 10 * MINUTE],
    goodAfterMs: Number.POSITIVE_INFINITY,
    log: [
      'warn',
      'WhatsApp is not linked; new QR codes follow after the pause, or at once when the gateway is restarted',
    ],
  },
  /** The owner removed the gateway from the linked devices: its credentials are worthless. */
  'logged out': {
    pauses: [0, 5_000, MINUTE],
    log: [
      'error',
      'this gateway was removed from the linked devices of WhatsApp; credentials deleted. To link it again, scan the QR code that follows',
    ],
  },
  /** Another program uses the same credentials, and reconnects as soon as we do. */
  replaced: { pauses: [MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE], goodAfterMs: 10 * MINUTE },
  /** WhatsApp has retired our version of WhatsApp Web. */
  outdated: REFUSED,
  /** WhatsApp refuses this account, or this client. */
  refused: REFUSED,
  interrupted: { log: ['warn', 'the connection to WhatsApp failed; reconnecting'] },
};

export interface Closing {
  kind: Kind;
  reason: string;
}

const CODES: Record<number, [Closing['kind'], string]> = {
  401: ['logged out', 'this gateway was removed from the linked devices of the phone'],
  402: ['refused', 'WhatsApp has banned this account for some time; the phone says until when (402)'],
  403: [
    'refused',
    'WhatsApp refuses this account: it may be banned, or the phone has left it. See what WhatsApp says on the phone; if it works there, remove the gateway under Linked devices, and it shows a new code to link it with (403)',
  ],
  405: ['outdated', 'WhatsApp refuses this version of its client as too old (405)'],
  408: ['interrupted', 'the connection to WhatsApp was lost (408)'],
  411: [
    'refused',
    'the phone does not take part in linked devices (multi-device mismatch): update WhatsApp on it, remove the gateway under Linked devices, and link it anew (411)',
  ],
  428: ['interrupted', 'the connection to WhatsApp was closed (428)'],
  440: [
    'replaced',
    'another client uses the same link; two gateways with the same data? This one stays away for some time (440)',
  ],
  500: ['interrupted', 'WhatsApp ended the connection with an error (500)'],
  503: ['interrupted', 'WhatsApp is not available (503)'],
  515: ['restart', 'WhatsApp asked for a new connection'],
};

/** The pause before the next connection, and the log line. */
export function afterClosing({ kind }: Closing, lastedMs: number) {
  const { pauses, goodAfterMs = MINUTE, log } = CLOSINGS[kind];
  return {
    wasGood: lastedMs >= goodAfterMs,
    pauseMs: (failures: number): number =>
      pauses?.[Math.min(failures, pauses.length - 1)] ?? backoffMs(failures),
    line: log ?? (['error', 'WhatsApp refused the connection; retrying later'] as const),
  };
}

export function closingOf(error: unknown): Closing {
  const words = error instanceof Error ? describe(error) : 'the connection ended';
  if (words.includes('QR refs attempts ended')) return { kind: 'unlinked', reason: UNLINKED.unscanned };
  const [kind, reason] = CODES[statusOf(error) ?? 0] ?? ['interrupted', null];
  if (reason === null) return { kind, reason: words };
  return { kind, reason: kind === 'interrupted' ? `${reason}: ${words}` : reason };
}

export function statusOf(error: unknown): number | null {
  const { output } = (error ?? {}) as { output?: { statusCode?: unknown } | null };
  return typeof output?.statusCode === 'number' ? output.statusCode : null;
}

/** The error of a request cut off by the connection's end: closed, lost, or timed out. */
export function isEndOfConnection(error: unknown): boolean {
  return [408, 428].includes(statusOf(error) ?? 0);
}

const MODULES = /[\\/]node_modules[\\/]/;
const LIBRARY = /[\\/]node_modules[\\/](@whiskeysockets[\\/]baileys|libsignal|whatsapp-rust-bridge)[\\/]/;
const LIBSIGNAL = /[\\/]node_modules[\\/](libsignal|@whiskeysockets[\\/]baileys)[\\/]/;

/** Whether an error was thrown inside the library: its stack frames come before any of ours. */
export function isOfLibrary(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const isForeign = (frame: string) =>
    MODULES.test(frame) || frame.includes('node:') || frame.includes('<anonymous>');
  return LIBRARY.test(frames.find((frame) => LIBRARY.test(frame) || !isForeign(frame)) ?? '');
}

/** The library's log at debug, without the objects it logs, which may contain keys and messages. */
export function libraryLog(log: Log): SocketConfig['logger'] {
  const say = (level: string) => (about: unknown, sentence?: string) => {
    const words = typeof about === 'string' ? about : (sentence ?? '');
    const { err, error = err } = (about ?? {}) as { err?: unknown; error?: unknown };
    const reason = error instanceof Error ? { reason: error.message } : {};
    log.debug({ channel: 'whatsapp', level, ...reason }, `baileys: ${words}`);
  };
  const silent = () => {};
  const adapter: SocketConfig['logger'] = {
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

/**
 * libsignal writes whole sessions, including private keys, to the console. It takes no logger, so the console
 * itself is filtered until the returned function is called: libsignal's output becomes a log line without its
 * contents; other output goes through. Costs a short stack trace per call.
 */
export function silenceLibsignal(log: Log): () => void {
  const shared = globalThis.console;
  let isFiltering = true;
  const undo = (['log', 'info', 'warn', 'error', 'debug', 'trace'] as const).map((method) => {
    const original = shared[method];
    function filtered(this: unknown, ...said: unknown[]): void {
      if (!isFiltering || !isFromLibsignal(filtered)) {
        original.apply(this, said);
        return;
      }
      // The beginning is fixed text; the rest may hold anything.
      const about =
        typeof said[0] === 'string' ? (/^[A-Za-z ]{1,60}/.exec(said[0])?.[0] ?? '') : typeof said[0];
      log.debug({ channel: 'whatsapp', method, about }, 'libsignal wrote to the console');
    }
    shared[method] = filtered;
    return () => {
      // A later wrapper may still call this function: then everything goes through.
      if (shared[method] === filtered) shared[method] = original;
    };
  });
  return () => {
    isFiltering = false;
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
