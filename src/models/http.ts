/**
 * Step 5, to the server: a request goes out over Node's own HTTP client, with connections kept open; `chunks.ts` reads what
 * comes back. The global `fetch`, and so the `openai` package, costs more than everything else the gateway does for a message.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { pipeline, Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { NOT_PACKED, type Outward, TIMES_AN_ANSWER, unpacked } from '../core/network.js';
import { type Body, byteLengthOf, piecesOf } from './body.js';
import { connectionError, refusal } from './server-error.js';

/** Shorter than the five seconds for which common servers keep an unused connection. */
const IDLE_MS = 4_000;

/**
 * Sends the body, JSON, and resolves with the open response once its status says success. Never retries. Throws
 * ServerError, whose words name neither headers nor key. Of a refusal it reads eight times `mostBytes` at most.
 */
export type Post = (body: Body, signal: AbortSignal) => Promise<Readable>;

export function createPost(
  server: { baseUrl: string; apiKey: string | null; headers?: Record<string, string> | undefined },
  { now, outward, mostBytes }: { now: () => number; outward: Outward; mostBytes: number },
  path = '/chat/completions',
): Post {
  const url = new URL(server.baseUrl);
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}${path}`;
  const secure = url.protocol === 'https:';
  const agent = outward.agent(secure, { idleMs: IDLE_MS });
  const request = secure ? httpsRequest : httpRequest;
  const options = { ...urlToHttpOptions(url), method: 'POST', agent };
  const headers: Record<string, string> = {
    accept: 'application/json, text/event-stream',
    ...NOT_PACKED,
    'content-type': 'application/json',
    'user-agent': 'coterie',
  };
  if (server.apiKey) headers.authorization = `Bearer ${server.apiKey}`;
  for (const [name, value] of Object.entries(server.headers ?? {})) headers[name.toLowerCase()] = value;

  /** Resolves when the head of the response is there. Rejects with Node's own errors. */
  const send = (body: Body, signal: AbortSignal) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const hasPictures = body.pictures.length > 0;
      const length = hasPictures ? byteLengthOf(body) : Buffer.byteLength(body.text);
      const head = { ...options, headers: { ...headers, 'content-length': length } };
      const sent = request(head, (response) => {
        // Whoever reads gets the error too; without a listener, one that nobody reads would end the process.
        response.on('error', () => {});
        resolve(response);
      });
      sent.on('error', reject);
      const hangUp = () => sent.destroy();
      signal.addEventListener('abort', hangUp, { once: true });
      sent.once('close', () => signal.removeEventListener('abort', hangUp));
      if (signal.aborted) hangUp();
      // The request itself tells of what went wrong.
      if (hasPictures) pipeline(Readable.from(piecesOf(body)), sent, () => {});
      // As text: the bytes are freed when they are written, where a buffer would wait for the garbage collector.
      else sent.end(body.text);
    });

  return async (body, signal) => {
    const response = await send(body, signal).catch((error) => {
      throw connectionError(error);
    });
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return unpacked(response);
    throw await refusal(response, now(), mostBytes * TIMES_AN_ANSWER);
  };
}
