/** Begins and ends the session of a browser. Not described in OpenAPI: programs send the token. */
import { z } from '@hono/zod-openapi';
import { BOARD_OWNER } from '../core/board.js';
import { inOneLine } from '../core/cut.js';
import { type Audit, GATEWAY } from '../core/journal.js';
import type { Log } from '../core/log.js';
import { type BoardApi, reply, replyWith } from './api.js';
import { areEqual, type Door, MOST_SIGN_IN_BYTES, SESSION_PATH } from './guard.js';
import { type Asked, bodyIn } from './own.js';
import { type Patience, SESSION_MS, type Sessions } from './sessions.js';

/** Decides who is let in. The sessions and the patience outlast a change of the configuration. */
export interface Entrance {
  door: Door;
  sessions: Sessions;
  patience: Patience;
}

const SignIn = z.strictObject({ token: z.string() });

/** Of an address, which a proxy may pass on as it came. */
const MOST_FROM_CHARS = 60;

/** No entry holds a token. A full disk keeps nobody out: the entry is then missing, and the log says so. */
export function addSessions(
  api: BoardApi,
  token: string | null,
  { door, sessions, patience }: Entrance,
  log: Log,
  audit: Audit | undefined,
): void {
  const tell = (who: string, what: string, from: string) =>
    audit?.note({ kind: 'session', who, where: null, what, word: null, details: { from } });
  api.post(SESSION_PATH, async (context) => {
    // First, because a connection with an unread rest of a request is closed.
    const given = await bodyIn(context, SignIn, MOST_SIGN_IN_BYTES);
    if (token === null) return nothingToSignInTo();
    const { incoming } = context.env;
    const wait = door.isTrusted(incoming) ? 0 : patience.seconds();
    if (wait > 0) return tooEarly(wait);
    const from = inOneLine(door.sourceOf(incoming), MOST_FROM_CHARS);
    if (!areEqual(given.token, token)) {
      const seconds = patience.lose();
      if (seconds > 0) log.warn({ from, seconds }, 'board got wrong tokens; nobody can sign in for a while');
      const wrong = patience.toTell();
      if (wrong > 0)
        await tell(GATEWAY, `the board got ${wrong} wrong ${wrong === 1 ? 'token' : 'tokens'}`, from);
      return reply(401, { error: 'Wrong token.' }, { 'WWW-Authenticate': 'Bearer' });
    }
    const session = await sessions.begin(token);
    await tell(BOARD_OWNER, 'signed in to the board', from);
    log.info({ from }, 'somebody signed in to the board');
    return replyWith(204, null, { 'Set-Cookie': cookie(context, session, SESSION_MS / 1000) });
  });
  api.delete(SESSION_PATH, async (context) => {
    if (token === null) return nothingToSignInTo();
    const { incoming } = context.env;
    const session = door.sessionOf(incoming);
    if (session !== null) {
      await sessions.end(session, token);
      await tell(BOARD_OWNER, 'signed out of the board', inOneLine(door.sourceOf(incoming), MOST_FROM_CHARS));
    }
    return replyWith(204, null, { 'Set-Cookie': cookie(context, '', 0) });
  });
  api.all(SESSION_PATH, () => reply(405, { error: 'Here one may POST, DELETE.' }, { Allow: 'POST, DELETE' }));

  function cookie({ env: { incoming } }: Asked, session: string, seconds: number): string {
    const secure = door.isEncrypted(incoming) ? '; Secure' : '';
    const name = door.cookieOf(incoming);
    return `${name}=${session}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
  }
}

function nothingToSignInTo(): Response {
  return reply(404, { error: 'There is nothing to sign in to: board.token is not set.' });
}

function tooEarly(seconds: number): Response {
  const error = `There were too many wrong tokens; try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`;
  return reply(429, { error }, { 'Retry-After': String(seconds) });
}
