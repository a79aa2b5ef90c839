/** One JSON request to an embedding server over Node's own HTTP client, with a connection kept open. */
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface Posted {
  status: number;
  /** The header Retry-After, as it came. */
  retryAfter: string | null;
  text: string;
}

export interface Post {
  /** Rejects with Node's own errors, whose messages name neither headers nor key. */
  (path: string, body: object, signal: AbortSignal): Promise<Posted>;
  close(): void;
}

/** Shorter than the five seconds for which common servers keep an unused connection. */
const IDLE_MS = 4_000;
/** A batch of the largest vectors there are is a tenth of this. */
const MOST_BYTES = 128_000_000;

export function createPost(baseUrl: string, apiKey: string | null): Post {
  const base = baseUrl.replace(/\/+$/, '');
  const secure = base.startsWith('https:');
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, timeout: IDLE_MS });
  const request = secure ? httpsRequest : httpRequest;
  const authorization = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };

  const post = (path: string, body: object, signal: AbortSignal) =>
    new Promise<Posted>((resolve, reject) => {
      const payload = Buffer.from(JSON.stringify(body));
      const headers = {
        'content-type': 'application/json',
        'content-length': payload.length,
        accept: 'application/json',
        ...authorization,
      };
      const sent = request(`${base}${path}`, { method: 'POST', agent, headers, signal }, (response) => {
        const pieces: Buffer[] = [];
        let bytes = 0;
        response.on('data', (piece: Buffer) => {
          bytes += piece.length;
          if (bytes > MOST_BYTES) sent.destroy(new Error('the answer is too large'));
          else pieces.push(piece);
        });
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            retryAfter: response.headers['retry-after'] ?? null,
            text: Buffer.concat(pieces).toString('utf8'),
          }),
        );
      });
      sent.on('error', reject);
      sent.end(payload);
    });
  return Object.assign(post, { close: () => agent.destroy() });
}
