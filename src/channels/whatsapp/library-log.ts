/**
 * The library's log in ours, at debug. It logs whole objects, keys and messages among them: only its sentences and the
 * messages of errors are passed on.
 */
import type { SocketConfig } from '@whiskeysockets/baileys';
import type { Log } from '../../core/log.js';

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
