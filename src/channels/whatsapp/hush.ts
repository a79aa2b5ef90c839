/**
 * libsignal writes whole sessions, private keys among them, to the console. It calls the one console that all share,
 * and takes no logger, so there are three ways: patch its functions (a copy of its code, wrong with its next version),
 * load it through a wrapper of our own (Node's loader, for every module), or stand before the console and let through
 * what others write. The last leaves everybody else's code as it is; a call costs one short stack trace.
 */
import type { Log } from '../../core/log.js';

const METHODS = ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const;
const LIBSIGNAL = /[\\/]node_modules[\\/](libsignal|@whiskeysockets[\\/]baileys)[\\/]/;

/** Until the returned function is called, what libsignal says goes to the log: that it said something, not what. */
export function hushLibsignal(log: Log): () => void {
  const shared = globalThis.console;
  let hushing = true;
  const undo = METHODS.map((method) => {
    const original = shared[method];
    function standingBefore(this: unknown, ...said: unknown[]): void {
      if (hushing && isFromLibsignal(standingBefore)) {
        log.debug({ channel: 'whatsapp', method, about: subjectOf(said[0]) }, 'libsignal spoke');
      } else {
        original.apply(this, said);
      }
    }
    shared[method] = standingBefore;
    return () => {
      // Somebody who stood before us since then keeps calling us: then we only let through.
      if (shared[method] === standingBefore) shared[method] = original;
    };
  });
  return () => {
    hushing = false;
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

/** Its own words stand first and are fixed; errors in them may hold anything. */
function subjectOf(first: unknown): string {
  return typeof first === 'string' ? (/^[A-Za-z ]{1,60}/.exec(first)?.[0] ?? '') : typeof first;
}
