/**
 * The `fetch` that the `openai` package gets: Node's own HTTP client with connections kept open. The global one
 * costs more than everything else the gateway does for a message. It does as much of `fetch` as the package needs.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';

/** Shorter than the five seconds for which common servers keep an unused connection. */
const IDLE_MS = 4_000;

/** An open answer: its head, and the body as it comes in. */
export interface OpenAnswer {
  ok: boolean;
  status: number;
  headers: Headers;
  body: Readable;
}

/** Rejects with Node's own errors, whose messages name neither headers nor key. */
export type Ask = (url: string, init: RequestInit) => Promise<OpenAnswer>;

export function createAsk(baseUrl: string): Ask {
  const secure = baseUrl.startsWith('https:');
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, timeout: IDLE_MS });
  const request = secure ? httpsRequest : httpRequest;

  return (url, { method = 'GET', headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const sent = request(
        url,
        {
          method,
          agent,
          headers: {
            ...Object.fromEntries(new Headers(headers)),
            'content-length': Buffer.byteLength(String(body ?? '')),
          },
        },
        (response) => {
          // Whoever reads hears of it; a body that nobody reads any more must not end the process.
          response.on('error', () => {});
          const status = response.statusCode ?? 0;
          resolve({
            ok: status >= 200 && status < 300,
            status,
            headers: headersOf(response),
            body: response,
          });
        },
      );
      sent.on('error', reject);
      const hangUp = () => sent.destroy();
      signal?.addEventListener('abort', hangUp, { once: true });
      sent.once('close', () => signal?.removeEventListener('abort', hangUp));
      if (signal?.aborted) hangUp();
      sent.end(body === undefined || body === null ? undefined : String(body));
    });
}

export async function textOf(body: Readable): Promise<string> {
  body.setEncoding('utf8');
  let text = '';
  for await (const chunk of body) text += chunk;
  return text;
}

function headersOf(response: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers)) {
    for (const each of [value].flat()) if (each !== undefined) headers.append(name, each);
  }
  return headers;
}
