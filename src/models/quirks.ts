/**
 * What a model server does not take, learnt from its refusals. Pure; `quirk-book.ts` remembers it.
 */
import { record } from './json.js';
import type { ServerErrorDetails } from './server-error.js';
import type { RequestBody } from './wire.js';

/** What to leave out; `max_tokens` is then called `max_completion_tokens`. */
export const QUIRKS = [
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'stream_options',
  'stream',
  'tools',
  /** Calls in the history while no tools are offered (proxies in front of Anthropic's models). */
  'calls_without_tools',
  'images',
] as const;

export type Quirk = (typeof QUIRKS)[number];

/** The parameters that are recognised by their name in the server's words. */
const NAMED = ['max_completion_tokens', 'max_tokens', 'stream_options', 'temperature'] as const;

const NO_TOOLS = [
  /(not|n't|no) support[^.]*\b(tool|function)/i,
  /\b(tool|function)(s|[_ -](us(e|age)|call(s|ing)?|choice))?\b[^.]*\b(un|not )(support|enabl|availab|allow|permit)/i,
  /\bsupports? (tool|function)[ -](use|call)/i,
  /\btool choice requires\b/i,
  /\btools param requires\b/i,
  /\b(parameter|argument|field|key|property|input)s?\b[^.]*\b(tools|functions)\b/i,
  /\btools\b[`'"=]*[^.]*\b(extra|unknown|unrecogni[sz]ed|passed in|must be specified)/i,
  /\btoolConfig\b/i,
];

/** Words that mean it whatever the status: other errors are also said to make something "unavailable". */
const NO_TOOLS_FOR_SURE =
  /\b(not|n't|no)\b.*\bsupports? tools?\b|\bthat support tool use\b|\btools param requires\b/i;

/** Which part of `sent` this refusal is about; null when it is about something else. */
export function refusedParameter(sent: RequestBody, refusal: ServerErrorDetails): Quirk | null {
  const { status, param, words } = refusal;
  // A model that thought until its limit: the parameter is fine, its value was too small.
  if (/\bhigher max_/i.test(words)) return null;
  const unprocessable = status === 400 || status === 422;
  const named = NAMED.find((name) => name === param && sent[name] !== undefined);
  if (unprocessable && named) return named;

  const offered = (sent.tools?.length ?? 0) > 0;
  if (offered || hasCalls(sent)) {
    // OpenRouter has no endpoint with tools (404); llama.cpp was started without templates for them (500).
    const elsewhere = (status === 404 || status === 500 || status === 501) && NO_TOOLS_FOR_SURE.test(words);
    if (elsewhere || (unprocessable && refusesTools(param, words))) {
      return offered ? 'tools' : 'calls_without_tools';
    }
  }
  if (!unprocessable) return null;
  const mentioned = NAMED.find((name) => sent[name] !== undefined && new RegExp(`\\b${name}\\b`).test(words));
  if (mentioned) return mentioned;
  const refusesStream = param === 'stream' || /\bstream(ing)?\b[^.]*\b(un|not )support/i.test(words);
  return sent.stream && refusesStream ? 'stream' : null;
}

function refusesTools(param: string | undefined, words: string): boolean {
  // Our own description of a tool is wrong: leaving all tools out would hide it.
  if (/invalid (schema|['"`]?tools\b)/i.test(words)) return false;
  if (param === 'tools' || param === 'functions' || param === 'tool_choice') return true;
  return NO_TOOLS.some((wording) => wording.test(words));
}

function hasCalls(sent: RequestBody): boolean {
  return sent.messages.some((message) => record(message)?.tool_calls !== undefined);
}
