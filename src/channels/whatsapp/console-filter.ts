/**
 * libsignal writes whole sessions, private keys among them, to the console. It takes no logger, so the console itself
 * is filtered: what libsignal writes is left out, what others write goes through. (To patch libsignal's functions, or
 * to load it through a wrapper, would depend on its code or touch every module.) A call costs one short stack trace.
 */
import type { Log } from '../../core/log.js';

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
