/** Why a connection ended, when there may be another, and whose error one is that nobody caught. Pure. */
import { describe } from '../../core/errors.js';
import { backoffMs } from '../kit/supervise.js';
import { UNLINKED } from './linking.js';

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
