/** Who we are on Discord: told at the begin of every session, and asked for by whoever cannot wait for one. */
import type { Api } from './api.js';
import { read } from './payload.js';

/** Our own bot. */
export interface Me {
  id: string;
  name: string;
  /** Whose the bot is: what it says through webhooks carries this. Mostly the same as its own id. */
  applicationId: string;
}

export interface Identity {
  /** null before the first login. */
  known(): Me | null;
  note(user: unknown, applicationId?: string): Me | null;
  /** As a process before was told. */
  restore(me: Me): void;
  /** Asks where nobody has told us yet. Rejects when Discord cannot be asked. */
  ask(signal?: AbortSignal): Promise<Me>;
}

export function createIdentity(api: Api): Identity {
  let me: Me | null = null;

  function note(user: unknown, applicationId?: string): Me | null {
    const told = read.user(user);
    if (told === undefined) return null;
    const name = told.global_name || told.username || told.id;
    me = { id: told.id, name, applicationId: applicationId ?? told.id };
    return me;
  }

  return {
    known: () => me,
    note,
    restore(known) {
      me = known;
    },
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
