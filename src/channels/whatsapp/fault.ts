/** Whether an error that nobody caught was thrown inside the library of this channel, and what it says. */
import { statusOf } from './closing.js';

const MODULES = /[\\/]node_modules[\\/]/;
const LIBRARY = /[\\/]node_modules[\\/](@whiskeysockets[\\/]baileys|libsignal|whatsapp-rust-bridge)[\\/]/;

/** A question or a message that was under way when a connection ended: closed, lost, or without an answer in time. */
export function isEndOfConnection(error: unknown): boolean {
  return [408, 428].includes(statusOf(error) ?? 0);
}

/** Its frames stand before any of ours: what we throw while it calls us is our own fault. */
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
