/** A model's context window from the server's lists of models. */
import { type Clock, withDeadline } from '../core/clock.js';
import { addressOf, type Outward } from '../core/network.js';
import { wholeAnswer } from '../core/response-body.js';
import { parse, record } from './json.js';
import type { Endpoint } from './server-ways.js';

const PATIENCE_MS = 3_000;
/** OpenRouter's list of models takes about one million bytes. */
const MOST_LIST_BYTES = 8_000_000;

/** Asks the server; resolves with null if it does not tell. Never rejects. */
export function createWindowList(
  server: Endpoint,
  outward: Outward,
  clock: Clock,
): (model: string) => Promise<number | null> {
  const lists = [
    addressOf(server.baseUrl, '/models'),
    // LM Studio's own list.
    addressOf(server.baseUrl.replace(/\/v1\/?(?=$|\?)/, ''), '/api/v0/models'),
  ];

  return async (model) => {
    for (const { url, headers } of lists) {
      const all = { ...OURS, ...headers, ...keyHeaders(url, server.apiKey), ...server.headers };
      const ask = (signal: AbortSignal) =>
        wholeAnswer(outward, url, { headers: all, signal }, MOST_LIST_BYTES);
      // The chat's own request reports errors.
      const list = await withDeadline(clock, PATIENCE_MS, undefined, ask).catch(() => null);
      const told = list?.status === 200 ? windowIn(parse(list.bytes.toString('utf8')), model) : null;
      if (told !== null) return told;
    }
    return null;
  };
}

const OURS = { accept: 'application/json', 'user-agent': 'coterie' };

function keyHeaders({ hostname }: URL, apiKey: string | null): Record<string, string> {
  if (!apiKey) return {};
  // Apart from chat completions, Anthropic accepts the key only in its own header.
  return hostname === 'api.anthropic.com'
    ? { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }
    : { authorization: `Bearer ${apiKey}` };
}

/** vLLM and SGLang; LM Studio; Groq; Anthropic. */
const LISTED = ['max_model_len', 'loaded_context_length', 'context_window', 'max_input_tokens'];
/** OpenRouter and Moonshot; Mistral. In LM Studio, `max_context_length` is the model's maximum, not the loaded window. */
const LISTED_TOO = ['context_length', 'max_context_length'];

function windowIn(list: unknown, model: string): number | null {
  const data = record(list)?.data;
  const entry = (Array.isArray(data) ? data : []).map(record).find((each) => each?.id === model);
  if (!entry) return null;
  const told = [
    ...LISTED.map((name) => entry[name]),
    // OpenRouter's preferred provider may have a smaller window than the model.
    record(entry.top_provider)?.context_length,
    ...(entry.state === undefined ? LISTED_TOO.map((name) => entry[name]) : []),
  ];
  // Smaller numbers cannot be windows.
  return told.find((value): value is number => typeof value === 'number' && value >= 256) ?? null;
}
