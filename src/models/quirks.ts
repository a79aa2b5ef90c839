/**
 * What a model server does not take, recognised by the words of its refusal. Pure; `quirk-store.ts` remembers it.
 */

import { callsUnechoed, echoedNames, echoFor } from './echo.js';
import type { Quirk } from './quirk-store.js';
import type { ChatRequest } from './request.js';
import { isOutOfOrder } from './retold.js';
import type { ServerErrorDetails } from './server-error.js';

/** The parameters that are recognised by their name in the server's words. */
const NAMED = [
  'max_completion_tokens',
  'max_tokens',
  'stream_options',
  'temperature',
  'prompt_cache_key',
] as const;

const CACHE_MARK = /\bprompt_cache_breakpoint\b|\bcache_control\b/;

/** A server that takes only what it knows, and does not say what it does not know. */
const UNKNOWN_FIELD =
  /\b(unknown|unrecogni[sz]ed|unexpected|unsupported|extra|additional)\b[^.]*\b(field|parameter|argument|propert(y|ies)|input|key|name)s?\b/i;

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
export function refusedParameter(sent: ChatRequest, refusal: ServerErrorDetails): Quirk | null {
  const { status, param, words } = refusal;
  if (sent.api === 'responses') return refusedByResponses(sent, refusal);
  // A model that thought until its limit: the parameter is fine, its value was too small.
  if (/\bhigher max_/i.test(words)) return null;
  const unprocessable = status === 400 || status === 422;
  const known = unprocessable
    ? (refusedReasoning(sent, refusal) ?? refusedEcho(sent, `${words} ${param ?? ''}`))
    : null;
  if (known !== null) return known;
  if (unprocessable && refusesChoice(sent, refusal)) return 'tool_choice';
  const isMark = sent.marks !== undefined && CACHE_MARK.test(`${param} ${words}`);
  if (unprocessable && isMark) return 'cache_marks';
  const named = NAMED.find((name) => name === param && sent.parameters[name] !== undefined);
  if (unprocessable && named) return named;

  const offered = sent.tools.length > 0;
  if (offered || hasCalls(sent)) {
    // OpenRouter has no endpoint with tools (404); llama.cpp was started without templates for them (500).
    const elsewhere = (status === 404 || status === 500 || status === 501) && NO_TOOLS_FOR_SURE.test(words);
    if (elsewhere || (unprocessable && refusesTools(param, words))) {
      return offered ? 'tools' : 'calls_without_tools';
    }
  }
  if (!unprocessable) return null;
  const mentioned = NAMED.find(
    (name) => sent.parameters[name] !== undefined && new RegExp(`\\b${name}\\b`).test(words),
  );
  if (mentioned) return mentioned;
  const refusesStream = param === 'stream' || /\bstream(ing)?\b[^.]*\b(un|not )support/i.test(words);
  if (sent.parameters.stream && refusesStream) return 'stream';
  return UNKNOWN_FIELD.test(words) ? optionalIn(sent) : null;
}

/** What nobody but a prompt cache misses. */
function optionalIn(sent: ChatRequest): Quirk | null {
  if (sent.marks !== undefined) return 'cache_marks';
  return sent.parameters.prompt_cache_key === undefined ? null : 'prompt_cache_key';
}

/**
 * Before the general wordings of refused tools, which fit it too. First the Responses API is tried, then no reasoning,
 * and only then there are no tools.
 */
function refusedReasoning(sent: ChatRequest, { param, words }: ServerErrorDetails): Quirk | null {
  const effort = sent.parameters.reasoning_effort;
  if (param !== 'reasoning_effort' && !/\breasoning_effort\b/.test(words)) return null;
  const isAboutTools = sent.tools.length > 0 && /\b(tool|function)s?\b/i.test(words);
  if (isAboutTools && effort !== 'none') return sent.isToolsOrReasoning ? 'tools' : 'reasoning_with_tools';
  return effort === undefined ? null : 'reasoning_effort';
}

/** Words about the whole of it: there is no such path, or not for this model, or not all that we need of it. */
const NO_RESPONSES =
  /\bresponses\b[^.]*\b(not|un)[ -]?(support|availab|enabl|found|implement|allow)|\b(not|un)[ -]?(support|availab|enabl)[^.]*\bresponses\b/i;
const OURS = ['include', 'store', 'input'];
const OPTIONAL = ['temperature', 'prompt_cache_key'] as const;
const THEIR_ITEMS = /\bencrypted[ _]content\b|\bitem\b[^.]*\b(rs|fc|msg)_/i;

function refusedByResponses(sent: ChatRequest, { status, param, words }: ServerErrorDetails): Quirk | null {
  if (status === 404 || status === 405 || status === 501) return 'responses';
  if (status !== 400 && status !== 422) return null;
  if (refusesChoice(sent, { param, words })) return 'tool_choice';
  const isEchoed = sent.messages.some((message) => echoFor(message, sent.echoesTo)?.items !== undefined);
  if (isEchoed && THEIR_ITEMS.test(words)) return 'echo';
  if (sent.marks !== undefined && CACHE_MARK.test(`${param} ${words}`)) return 'cache_marks';
  const named = OPTIONAL.find((name) => name === param && sent.parameters[name] !== undefined);
  if (named) return named;
  return NO_RESPONSES.test(words) || OURS.includes(param ?? '') ? 'responses' : null;
}

/** Before the wordings of refused tools: it is not they that are refused. */
function refusesChoice(
  sent: ChatRequest,
  { param, words }: Pick<ServerErrorDetails, 'param' | 'words'>,
): boolean {
  return sent.parameters.tool_choice !== undefined && /\btool[_ ]choice\b/i.test(`${param} ${words}`);
}

/** The names of what DeepSeek, Kimi, Gemini, OpenRouter and Anthropic's models behind a proxy want back. */
const ECHOED =
  /\breasoning_(content|details)\b|\bthought_?signatures?\b|\b(redacted_)?thinking\b[^.]*\bblocks?\b/i;
const WANTED = /\b(missing|must|requires?d?|expected|passed back)\b/i;
const ORDER = /\bunexpected role '?user'? after role '?tool\b/i;

/** What goes back with the answers of the history: demanded where it is not there, not taken where it is. */
function refusedEcho(sent: ChatRequest, words: string): Quirk | null {
  if (ORDER.test(words) && isOutOfOrder(sent.messages)) return 'user_after_tool';
  const isUnechoed = sent.messages.some((message) => callsUnechoed(message, sent.echoesTo));
  if (isUnechoed && ECHOED.test(words) && WANTED.test(words)) return 'calls_without_echo';
  const names = [...echoedNames(sent.messages, sent.echoesTo)];
  if (names.length === 0) return null;
  const isNamed = names.some((name) => words.split(/[^\w-]+/).includes(name));
  return isNamed || ECHOED.test(words) ? 'echo' : null;
}

function refusesTools(param: string | undefined, words: string): boolean {
  // Our own description of a tool is wrong: leaving all tools out would hide it.
  if (/invalid (schema|['"`]?tools\b)/i.test(words)) return false;
  if (param === 'tools' || param === 'functions' || param === 'tool_choice') return true;
  return NO_TOOLS.some((wording) => wording.test(words));
}

function hasCalls(sent: ChatRequest): boolean {
  return sent.messages.some((message) => message.role === 'assistant' && message.calls.length > 0);
}

/** This model takes no pictures; or it takes some, but not all that were sent. */
export type PictureRefusal = 'none taken' | 'these not taken';

/** OpenAI, OpenRouter, vLLM, llama.cpp, LM Studio, Mistral, DeepSeek, Groq and what pydantic says of a list of parts. */
const NONE_TAKEN = [
  /\bimage_url is only supported by certain models\b/i,
  /\bsupports? (image|vision|multimodal) inputs?\b/i,
  /(not|n't|no|without) (support|accept|allow|have|take)\w*[^.]*\b(images?|image_urls?|vision|multi-?modal|pictures?)\b/i,
  /\b(images?|image_urls?|vision|multi-?modal)( (input|content|part)s?)?\b[`'"]* (is|are) (not|un)[ -]?(support|enabl|allow|accept|availab|permit)/i,
  /\bnot a (multi-?modal|vision)\b/i,
  /\bat most 0 image/i,
  /\bunknown variant\b[^.]*\bimage/i,
  /\bcontent\b[^.]*\b(must be|should be|expected|is not)\b[^.]*\bstring\b/i,
  /\bmmproj\b|\bmissing data required for image input\b/i,
];

/** Words about what a picture is, not about pictures. */
const THEIR_FORM =
  /\b(image|picture|media)[ _-]?(format|size|type|file|dimension)s?\b|\bimage\/\w|\bunsupported image\b/i;

const ABOUT_PICTURES = /\b(images?|image_url|picture|vision|multi-?modal|base64|data url|media[ _]type)\b/i;

/**
 * null where the pictures are not the reason, or there are none. Apart from the other parameters, because pictures can be
 * refused for what they are themselves: then the next ones may be taken.
 */
export function refusedPictures(sent: ChatRequest, refusal: ServerErrorDetails): PictureRefusal | null {
  const { status, words, code = '', param = '' } = refusal;
  if (status === undefined || !hasPictures(sent)) return null;
  // A body of many megabytes is one because of them.
  if (status === 413) return 'these not taken';
  const all = `${words} ${code} ${param}`;
  const noneTaken = !THEIR_FORM.test(words) && NONE_TAKEN.some((wording) => wording.test(words));
  // llama.cpp says so with 500, OpenRouter with 404: there only plain words count.
  if ([400, 404, 415, 422, 500, 501].includes(status) && noneTaken) return 'none taken';
  return [400, 415, 422].includes(status) && ABOUT_PICTURES.test(all) ? 'these not taken' : null;
}

function hasPictures(sent: ChatRequest): boolean {
  return (
    sent.sendsImages && sent.messages.some((message) => message.role === 'user' && message.images?.length)
  );
}
