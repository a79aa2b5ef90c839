/** Who we are on Discord: told at the begin of every session, and asked for by whoever cannot wait for one. */
import type { Base } from './api.js';
import { read } from './payload.js';

/** Our own bot. */
export interface Me {
  id: string;
  name: string;
  /** The name of the account, where it is another one. */
  username?: string;
  /** Whose the bot is: what it says through webhooks carries this. Mostly the same as its own id. */
  applicationId: string;
}

export type Identity = ReturnType<typeof createIdentity>;

export function createIdentity({ api }: Base) {
  let me: Me | null = null;

  function note(payload: unknown, applicationId?: string): Me | null {
    const user = read.user(payload);
    if (user === undefined) return null;
    const name = user.global_name || user.username || user.id;
    const { username } = user;
    me = {
      id: user.id,
      name,
      ...(username === undefined || username === name ? {} : { username }),
      applicationId: applicationId ?? user.id,
    };
    return me;
  }

  return {
    /** null before the first login. */
    known: () => me,
    note,
    /** As a process before was told. */
    restore(known: Me): void {
      me = known;
    },
    /** Asks where nobody has told us yet. Rejects when Discord cannot be asked. */
    async ask(signal?: AbortSignal): Promise<Me> {
      const found = me ?? note(await api.get('/users/@me', signal));
      if (found === null) throw new Error('Discord does not say which bot this is');
      return found;
    },
  };
}
