/**
 * Node's own HTTP client under the `openai` package, with connections kept open: the global `fetch` costs more than
 * everything else the gateway does for a message.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';

/** Shorter than the five seconds for which common servers keep an unused connection. */
const IDLE_MS = 4_000;

/**
 * Posts a body, and resolves with the open answer when its head is there. Rejects with Node's own errors, whose
 * messages name neither headers nor key.
 */
export type Post = (body: string, signal: AbortSignal) => Promise<IncomingMessage>;

export function createPost(address: string, headers: Record<string, string>): Post {
  const secure = address.startsWith('https:');
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, timeout: IDLE_MS });
  const request = secure ? httpsRequest : httpRequest;
  const common = { ...urlToHttpOptions(new URL(address)), method: 'POST', agent };

  return (body, signal) =>
    new Promise((resolve, reject) => {
      const length = { 'content-length': Buffer.byteLength(body) };
      const sent = request({ ...common, headers: { ...headers, ...length } }, (response) => {
        // Whoever reads hears of it; a body that nobody reads any more must not end the process.
        response.on('error', () => {});
        resolve(response);
      });
      sent.on('error', reject);
      const hangUp = () => sent.destroy();
      signal.addEventListener('abort', hangUp, { once: true });
      sent.once('close', () => signal.removeEventListener('abort', hangUp));
      if (signal.aborted) hangUp();
      sent.end(body);
    });
}

export async function textOf(body: Readable): Promise<string> {
  body.setEncoding('utf8');
  let text = '';
  for await (const chunk of body) text += chunk;
  return text;
}
