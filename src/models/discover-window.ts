/**
 * Asks a server for the context window that it gives a model. Every family of servers tells it elsewhere, and most do
 * not tell which family they are: they are asked one after the other until one answers.
 */
import { record } from './json.js';
import { knownWindow } from './known-windows.js';

/** Gets JSON from a URL, or posts it where there is a body; null for any other answer. Never throws. */
export type AskJson = (url: string, body?: object) => Promise<unknown>;

/** null: the server does not tell, or not now. */
export async function discoverWindow(baseUrl: string, model: string, ask: AskJson): Promise<number | null> {
  const base = new URL(baseUrl);
  const known = knownWindow(base.hostname, model);
  if (known !== null) return known;
  const v1 = base.pathname.replace(/(?<!\/)\/+$/, '');
  const at = (path: string) => {
    const url = new URL(base);
    url.pathname = path;
    return url.href;
  };
  const root = v1.replace(/\/v1$/, '');

  const listed = inList(await ask(at(`${v1}/models`)), model);
  if (listed !== null) return listed;
  // Servers that run their models themselves: what a model was loaded with counts, not what it could have.
  return (
    ofOllama(await ask(at(`${root}/api/ps`)), model) ??
    ofOllamaFile(await ask(at(`${root}/api/show`), { model })) ??
    ofLlamaCpp(await ask(at(`${root}/props`))) ??
    ofLmStudio(await ask(at(`${root}/api/v1/models`)), model) ??
    inList(await ask(at(`${root}/api/v0/models`)), model)
  );
}

/** vLLM and SGLang; Groq; Anthropic; LM Studio's older list (`max_context_length` is what its model could have). */
const LISTED = ['max_model_len', 'loaded_context_length', 'context_window', 'max_input_tokens'];
/** OpenRouter and Moonshot; Mistral. */
const LISTED_TOO = ['context_length', 'max_context_length'];

function inList(answer: unknown, model: string): number | null {
  const entry = entries(record(answer)?.data).find(({ id }) => id === model);
  if (entry === undefined) return null;
  const isLmStudio = entry.state !== undefined;
  return first([
    ...LISTED.map((name) => entry[name]),
    // Of several providers, the one that OpenRouter prefers may have less than the model could.
    record(entry.top_provider)?.context_length,
    ...(isLmStudio ? [] : LISTED_TOO.map((name) => entry[name])),
  ]);
}

/** Only models that are loaded are listed. A name without a tag means the tag `latest`. */
function ofOllama(answer: unknown, model: string): number | null {
  const named = (entry: Record<string, unknown>) =>
    [entry.name, entry.model].some((name) => name === model || name === `${model}:latest`);
  const entry = entries(record(answer)?.models).find(named);
  return entry === undefined ? null : first([entry.context_length]);
}

/** Its Modelfile's own `num_ctx`; the length that its weights allow says nothing of what it will be loaded with. */
function ofOllamaFile(answer: unknown): number | null {
  const parameters = record(answer)?.parameters;
  const found = typeof parameters === 'string' ? /^num_ctx\s+(\d+)/m.exec(parameters) : null;
  return first([Number(found?.[1])]);
}

function ofLlamaCpp(answer: unknown): number | null {
  return first([record(record(answer)?.default_generation_settings)?.n_ctx]);
}

function ofLmStudio(answer: unknown, model: string): number | null {
  const entry = entries(record(answer)?.models).find(({ key, id }) => key === model || id === model);
  const loaded = entries(entry?.loaded_instances).map((each) => record(each.config)?.context_length);
  const lengths = loaded.filter((length) => typeof length === 'number');
  return lengths.length === 0 ? null : Math.min(...lengths);
}

function entries(list: unknown): Record<string, unknown>[] {
  return (Array.isArray(list) ? list : []).map(record).filter((entry) => entry !== null);
}

/** Smaller numbers are no windows. */
function first(values: unknown[]): number | null {
  const found = values.find((value) => typeof value === 'number' && Number.isFinite(value) && value >= 256);
  return typeof found === 'number' ? found : null;
}
