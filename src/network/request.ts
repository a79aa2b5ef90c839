/** Plain requests over Node's own HTTP client: `fetch` of undici costs a quarter of a message's time and 16 MB at the start. */
import { type Agent, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { pipeline, Readable } from 'node:stream';
import type { Outward } from '../core/network.js';
import { unpacked } from '../core/response-body.js';

/** Shorter than the five seconds for which common servers keep an unused connection. */
const IDLE_MS = 4_000;

export function createRequest(agentFor: Outward['agent']): Outward['request'] {
  const agents: Record<string, Agent> = {
    'http:': agentFor(false, { idleMs: IDLE_MS }),
    'https:': agentFor(true, { idleMs: IDLE_MS }),
  };
  return (url, { method = 'GET', headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const send = url.protocol === 'https:' ? secureRequest : plainRequest;
      const asked = { method, headers, agent: agents[url.protocol] };
      const sent = send(url, asked, (response) => {
        // The reader gets the error too; without a listener, one that comes after it has stopped would end the process.
        response.on('error', () => {});
        const { statusCode: status = 0, headers: received } = response;
        resolve({ status, headers: received, body: unpacked(response) });
      });
      sent.on('error', reject);
      // Node's own `signal` destroys with an error, which nobody listens to on a socket that just became free.
      const hangUp = () => sent.destroy();
      signal.addEventListener('abort', hangUp, { once: true });
      sent.once('close', () => signal.removeEventListener('abort', hangUp));
      if (signal.aborted) hangUp();
      if (body instanceof Readable) pipeline(body, sent, () => {});
      else sent.end(body);
    });
}
