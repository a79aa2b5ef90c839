/** Small questions to a model server beside the chat: JSON there and back, within a few seconds, and never a fault. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Clock } from '../core/clock.js';
import { NOT_PACKED, type Outward, unpacked, wholeOf } from '../core/network.js';
import type { AskJson } from './discover-window.js';
import { parse } from './json.js';

const PATIENCE_MS = 3_000;
/** OpenRouter's list of models has about one. */
const MOST_BYTES = 8_000_000;

export function createAskJson(
  { apiKey, headers }: { apiKey: string | null; headers?: Record<string, string> | undefined },
  { clock, outward }: { clock: Clock; outward: Outward },
): AskJson {
  return (url, body) =>
    new Promise<unknown>((resolve) => {
      const sent = body === undefined ? null : JSON.stringify(body);
      const secure = url.startsWith('https:');
      const question = (secure ? httpsRequest : httpRequest)(url, {
        agent: outward.agent(secure),
        method: sent === null ? 'GET' : 'POST',
        headers: {
          accept: 'application/json',
          ...NOT_PACKED,
          'user-agent': 'coterie',
          ...(sent === null ? {} : { 'content-type': 'application/json' }),
          ...keyHeaders(url, apiKey),
          ...headers,
        },
      });
      const cancel = clock.after(PATIENCE_MS, () => question.destroy());
      const end = (answer: unknown) => {
        cancel();
        question.destroy();
        resolve(answer);
      };
      question.on('error', () => end(null));
      const closed = () => end(null);
      question.on('close', closed);
      question.on('response', (response) => {
        // What was packed may still be unpacked when the connection has closed.
        question.off('close', closed);
        if (response.statusCode !== 200) return end(null);
        wholeOf(unpacked(response), MOST_BYTES).then(
          (whole) => end(parse(whole.toString('utf8')) ?? null),
          closed,
        );
      });
      question.end(sent ?? undefined);
      // A key that no header can hold throws at once; the chat's own request says what is wrong with it.
    }).catch(() => null);
}

function keyHeaders(url: string, apiKey: string | null): Record<string, string> {
  if (!apiKey) return {};
  // Beside chat completions, Anthropic takes its key in a header of its own only.
  return new URL(url).hostname === 'api.anthropic.com'
    ? { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }
    : { authorization: `Bearer ${apiKey}` };
}
