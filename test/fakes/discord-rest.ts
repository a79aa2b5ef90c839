/** What stands between a call of the fake Discord's API and its answer: the token, the rate limits, faults on command. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Faults, Limited } from './discord-faults.js';
import { type Body, isPayload, MalformedBody, readBody } from './discord-form.js';
import type { Ledger } from './discord-ledger.js';
import { NOT_FOUND, type Outcome, refused, UNAUTHORIZED } from './discord-outcome.js';
import type { Route } from './discord-routes.js';
import type { Call, RestFault, Settings } from './discord-words.js';

interface RestParts {
  token: string;
  isTokenReset(): boolean;
  routes: Route[];
  ledger: Ledger;
  faults: Faults;
  settings: Settings;
  now(): number;
  look(): void;
}

interface Rest {
  calls: Call[];
  /**
   * How many answers were of those that Discord counts as invalid requests: 401, 403, and 429 that is not of the scope
   * `shared` (reality.md 4.2; Discord's page "Rate Limits", "Invalid Request Limit"). Ten thousand in ten minutes ban.
   */
  invalid(): number;
  /** `path` is what follows `/api`. */
  serve(
    path: string,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void>;
}

const BROKEN_BODY = refused(400, 50109, 'The request body contains invalid JSON.');

export function createRest({
  token,
  isTokenReset,
  routes,
  ledger,
  faults,
  settings,
  now,
  look,
}: RestParts): Rest {
  const calls: Call[] = [];
  let invalid = 0;
  const table = routes.map((route) => ({
    route,
    pattern: new RegExp(`^${route.path.replace(/:\w+/g, '([^/]+)')}$`),
  }));

  function find(method: string, path: string): { route: Route; ids: string[] } | null {
    for (const { route, pattern } of table) {
      const match = route.method === method ? pattern.exec(path) : null;
      if (match !== null) return { route, ids: match.slice(1).map(decodeURIComponent) };
    }
    return null;
  }

  function write(
    response: ServerResponse,
    outcome: Outcome,
    delayMs: number,
    headers: Record<string, string> = {},
  ): void {
    const { status } = outcome;
    if (status === 401 || status === 403) invalid += 1;
    if (status === 429 && headers['x-ratelimit-scope'] !== 'shared') invalid += 1;
    writeTo(response, outcome, delayMs, headers);
  }

  function perform(act: () => Outcome, response: ServerResponse): Outcome {
    const outcome = act();
    if (outcome.taken !== undefined) ledger.track(outcome.taken, response);
    return outcome;
  }

  function fail(fault: RestFault | Limited, act: () => Outcome, response: ServerResponse): void {
    const answer = (status: number, body: unknown, headers?: Record<string, string>) =>
      write(response, { status, body }, settings.answerDelayMs, headers);
    if ('status' in fault) {
      const { status, body = { message: 'As the test wants it.', code: 0 }, headers } = fault;
      answer(status, body, headers);
    } else if ('body' in fault) {
      answer(429, fault.body, fault.headers);
    } else if ('html' in fault) {
      answer(fault.html, `<html>${fault.html}</html>`);
    } else {
      if (Object.values(fault).includes('after')) perform(act, response);
      if ('drop' in fault) response.socket?.destroy();
    }
  }

  return {
    calls,
    invalid: () => invalid,
    async serve(whole, query, request, response) {
      const path = whole.replace(/^\/v\d+(?=\/)/, '');
      const method = request.method ?? 'GET';
      const authorization = request.headers.authorization ?? null;
      let body: Body;
      try {
        body = await readBody(request);
      } catch (error) {
        if (!(error instanceof MalformedBody)) throw error;
        write(response, BROKEN_BODY, settings.answerDelayMs);
        return;
      }
      const { json: raw, files } = body;
      const json = isPayload(raw) ? raw : {};
      calls.push({ method, path, query: Object.fromEntries(query), body: raw, authorization, at: now() });

      const found = find(method, path);
      const act = () => found?.route.act({ ids: found.ids, query, json, raw, files }) ?? NOT_FOUND;
      const fault = faults.faultFor(method, path);
      if (fault !== null) {
        fail(fault, act, response);
      } else if (found?.route.open !== true && (isTokenReset() || authorization !== `Bot ${token}`)) {
        write(response, UNAUTHORIZED, settings.answerDelayMs);
      } else {
        const counted = faults.count(`${method} ${found?.route.path} ${found?.ids[0]}`);
        const isTooMuch = 'body' in counted;
        const outcome = isTooMuch ? { status: 429, body: counted.body } : perform(act, response);
        write(response, outcome, settings.answerDelayMs, counted.headers);
      }
      look();
    },
  };
}

function writeTo(
  response: ServerResponse,
  { status, body }: Outcome,
  delayMs: number,
  headers: Record<string, string>,
): void {
  const send = () => {
    if (response.destroyed || response.writableEnded) return;
    if (body === undefined) {
      // Without a type: an empty body that calls itself JSON breaks clients.
      response.writeHead(status, headers);
      response.end();
      return;
    }
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const type = typeof body === 'string' ? 'text/html' : 'application/json';
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(text),
      ...headers,
    });
    response.end(text);
  };
  if (delayMs > 0) setTimeout(send, delayMs);
  else send();
}
