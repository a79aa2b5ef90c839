/** Who we are on Discord: told at the begin of every session, and asked for by whoever cannot wait for one. */
import type { Api } from './api.js';
import { read } from './payload.js';

/** Our own bot. */
export interface Me {
  id: string;
  name: string;
}

export interface Identity {
  /** null before the first login. */
  known(): Me | null;
  note(user: unknown): Me | null;
  /** Asks where nobody has told us yet. Rejects when Discord cannot be asked. */
  ask(signal?: AbortSignal): Promise<Me>;
}

export function createIdentity(api: Api): Identity {
  let me: Me | null = null;

  function note(user: unknown): Me | null {
    const told = read.user(user);
    if (told === undefined) return null;
    me = { id: told.id, name: told.global_name || told.username || told.id };
    return me;
  }

  return {
    known: () => me,
    note,
    async ask(signal) {
      if (me !== null) return me;
      const user = await api.call(
        { method: 'GET', path: '/users/@me' },
        signal === undefined ? {} : { signal },
      );
      const found = note(user);
      if (found === null) throw new Error('Discord does not say which bot this is');
      return found;
    },
  };
}
