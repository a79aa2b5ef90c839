/** Begins and ends the session of a browser. Not described in OpenAPI: programs send the token. */
import { z } from '@hono/zod-openapi';
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

export function addSessions(
  api: BoardApi,
  token: string | null,
  { door, sessions, patience }: Entrance,
  log: Log,
): void {
  api.post(SESSION_PATH, async (context) => {
    // First, because a connection with an unread rest of a request is closed.
    const given = await bodyIn(context, SignIn, MOST_SIGN_IN_BYTES);
    if (token === null) return nothingToSignInTo();
    const { incoming } = context.env;
    const wait = door.isTrusted(incoming) ? 0 : patience.seconds();
    if (wait > 0) return tooEarly(wait);
    const from = door.sourceOf(incoming);
    if (!areEqual(given.token, token)) {
      const seconds = patience.lose();
      if (seconds > 0) log.warn({ from, seconds }, 'board got wrong tokens; nobody can sign in for a while');
      return reply(401, { error: 'Wrong token.' }, { 'WWW-Authenticate': 'Bearer' });
    }
    const session = await sessions.begin(token);
    log.info({ from }, 'somebody signed in to the board');
    return replyWith(204, null, { 'Set-Cookie': cookie(context, session, SESSION_MS / 1000) });
  });
  api.delete(SESSION_PATH, async (context) => {
    if (token === null) return nothingToSignInTo();
    const session = door.sessionOf(context.env.incoming);
    if (session !== null) await sessions.end(session, token);
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
