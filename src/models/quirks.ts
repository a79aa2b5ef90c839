/**
 * What a model server does not take, recognised by the words of its refusal: words that can mean nothing else, because what
 * is learnt from them holds for a week. Pure; `quirk-store.ts` remembers it.
 */

import { callsUnechoed, echoedNames, echoFor } from './echo.js';
import { isBadCall } from './failures.js';
import type { Quirk } from './quirk-store.js';
import type { ChatRequest } from './request.js';
import { isOutOfOrder, takesTurns } from './retold.js';
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
  /\b(unknown|unrecogni[sz]ed|unexpected|unsupported|extra|additional)\b[^.]{0,200}\b(field|parameter|argument|propert(y|ies)|input|key|name)s?\b/i;

/** Beside the name of a field: it is this that is not taken, and not what it holds this time. */
const NOT_TAKEN =
  /\b(unknown|unrecogni[sz]ed|unexpected|unsupported|extra|deprecated)\b|(\bnot|n't|\bun)[ -]?(support|permit|allow|enabl|accept)/i;

/** A temperature is also a word of conversations. */
const TEMPERATURE =
  /\btemperature\b[^.]{0,80}(\b(deprecated|must be|only|unsupported)\b|(\bnot|n't) (support|allow|permit))|\b(unsupported|unknown|unrecogni[sz]ed|unexpected|invalid|bad|extra)\b[^.]{0,60}\btemperature\b|\bno temperature\b/i;

/** Tools in general, never one of them; calls at the same time are another matter. */
const TOOLS = String.raw`(?<!parallel )['"\x60]?(?:tools|tool[ _-](?:use|calls?|calling)|functions|function[ _-]call(?:s|ing)?)\b['"\x60]?`;
/** What follows where they are not taken only together with something else. */
const ONLY_TOGETHER = String.raw`(?!['"\x60]?[\s,]+(?:in|with|when|while|together|alongside)\b(?! (?:this|the|that|your|any) (?:model|endpoint|deployment|server|version|api)))`;

/** OpenAI, Ollama, xAI, Novita, OpenRouter, Gemini, Bedrock, vLLM, llama.cpp, and what validators say of an unknown field. */
const NO_TOOLS = [
  new RegExp(
    `(?:not|n't|no) support(?:s|ed|ing)?(?: for)?(?: the)?(?: use of)? (?:native )?${TOOLS}${ONLY_TOGETHER}`,
    'i',
  ),
  new RegExp(
    String.raw`${TOOLS}(?: (?:is|are))? (?:not (?:support\w*|enabled|available|allowed|permitted|implemented)|unsupported|disabled)\b${ONLY_TOGETHER}`,
    'i',
  ),
  new RegExp(String.raw`\bno [\w ]{1,40}\bsupports? ${TOOLS}`, 'i'),
  /\btool choice requires\b/i,
  /\btools param requires\b/i,
  /\b(unknown|unrecogni[sz]ed|unexpected|unsupported|extra)( \w+)? (parameter|argument|field|key|property|input)s?\b[^.]{0,40}[\s`'"](tools|functions)\b(?![.[])/i,
  /(^|[\s`'"])(tools|functions)[`'"]?: (extra|unknown|unrecogni[sz]ed|unexpected|unsupported|not (permit|allow|support))/i,
];

/** Anthropic's models behind LiteLLM and Bedrock: calls in the history want the tools beside them. */
const TOOLS_WANTED =
  /\btools=?[`'"]? (param|field)[^.]{0,200}\b(passed in|defined)|\btoolConfig field must be defined\b/i;

/** Bedrock: a model may take tools, and stream, but not both. */
const NO_STREAM =
  /\bstream(ing)?\b[^.]{0,200}\b(un|not )support|(\bnot|n't) support[^.]{0,200}\bstream(ing)?\b|\bstream(ing)?\b[^.]{0,200}\bnot (enabled|available|allowed)/i;

/** Which part of `sent` this refusal is about; null when it is about something else. */
export function refusedParameter(sent: ChatRequest, refusal: ServerErrorDetails): Quirk | null {
  const { status, param, words } = refusal;
  // Sampling: the next answer may be another.
  if (isBadCall(refusal)) return null;
  const role = refusedRole(sent, words);
  if (role !== null) return role;
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
  const refusesStream = param === 'stream' || NO_STREAM.test(words);
  if (unprocessable && sent.parameters.stream && refusesStream) return 'stream';

  // OpenRouter has no endpoint with tools (404); llama.cpp was started without templates for them (500).
  if (unprocessable || status === 404 || status === 500 || status === 501) {
    const offered = sent.tools.length > 0;
    if (offered && refusesTools(refusal)) return 'tools';
    if (!offered && hasCalls(sent) && (refusesTools(refusal) || TOOLS_WANTED.test(words))) {
      return 'calls_without_tools';
    }
  }
  if (!unprocessable) return null;
  const mentioned = NAMED.find(
    (name) =>
      sent.parameters[name] !== undefined &&
      (name === 'temperature' ? TEMPERATURE : new RegExp(`\\b${name}\\b`)).test(words),
  );
  if (mentioned) return mentioned;
  return UNKNOWN_FIELD.test(words) ? optionalIn(sent) : null;
}

/** What nobody but a prompt cache misses. */
function optionalIn(sent: ChatRequest): Quirk | null {
  if (sent.marks !== undefined) return 'cache_marks';
  return sent.parameters.prompt_cache_key === undefined ? null : 'prompt_cache_key';
}

/**
 * Gemma's template behind vLLM, llama.cpp, LM Studio, TGI and others; Mistral's first and newer ones; Gemini's API for Gemma;
 * OpenAI's o1-mini; Anthropic; what a validator says of a role.
 */
const NO_SYSTEM = [
  /\bsystem (role|message|prompt|instruction)s?( is| are)? (not|un)[ -]?(support|allow|enabl|permit|accept)/i,
  /\brole:? ?['"`]?system['"`]?( is)? (not|un)[ -]?(support|allow|permit|recogni)/i,
  /\bsupport\w*( the| a)? (['"`]system['"`]|system (role|message|prompt|instruction))/i,
  /\bdeveloper instruction is not enabled\b/i,
  /\bonly (?:(?!system)[\w, ]){1,100} roles are supported\b/i,
  /\brole['"`]?\]?: input should be 'user' or 'assistant'/i,
  /\b(unexpected|unknown|invalid|unsupported) (message )?role:? ?['"`]?system\b/i,
  /['"`]system['"`]? (role|message)s?( is| are)? (not|un)[ -]?(support|allow|enabl|permit|accept|recogni)/i,
  /['"`]system['"`] is not (a|an|one of)\b[^.]{0,40}(\brole\b|['"`]user\b)/i,
  /\bsupport\w* role:? ?['"`]?system\b/i,
  /\binvalid value: ['"`]system['"`]/i,
  /\binput tag ['"`]system['"`] found using ['"`]role\b/i,
];
/** Templates that know no results of tools. */
const NO_RESULTS =
  /\bonly [\w, ]{0,100}\bsystem\b[\w, ]{0,100} roles are supported\b|\brole:? ?['"`]?tool['"`]?( is)? (not|un)[ -]?(support|allow|permit|recogni)/i;
const IN_TURNS = /\broles must alternate\b|\bmust alternate between\b[^.]{0,200}\buser\b/i;

/** Whatever the status: llama.cpp says so with 500, LM Studio within a stream. */
function refusedRole(sent: ChatRequest, words: string): Quirk | null {
  const hasSystem = sent.messages.some(({ role }) => role === 'system');
  if (hasSystem && NO_SYSTEM.some((wording) => wording.test(words))) return 'system_role';
  if (hasCalls(sent) && NO_RESULTS.test(words)) return 'tool_results';
  if (!IN_TURNS.test(words)) return null;
  if (!takesTurns(sent.messages)) return 'role_order';
  if (hasCalls(sent)) return 'tool_results';
  return hasSystem && !/\boptional system\b/i.test(words) ? 'system_role' : null;
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
const RESPONSES = String.raw`(?:/responses\b|\bresponses (?:api|endpoint|path|route)\b)`;
const NO_RESPONSES = new RegExp(
  String.raw`${RESPONSES}[^.]{0,200}\b(?:not|un)[ -]?(?:support|availab|enabl|found|implement|allow)|\b(?:not|un)[ -]?(?:support|availab|enabl)[^.]{0,200}${RESPONSES}`,
  'i',
);
const OURS = ['include', 'store'];
/** A stand-in of the API that takes one text. */
const ONE_TEXT = /\binput\b['"`]?:? (should|must) be a (valid )?string\b/i;
const OPTIONAL = ['temperature', 'prompt_cache_key'] as const;
const THEIR_ITEMS = /\bencrypted[ _]content\b|\bitem\b[^.]{0,200}\b(rs|fc|msg)_/i;

function refusedByResponses(sent: ChatRequest, { status, param, words }: ServerErrorDetails): Quirk | null {
  const isEchoed = sent.messages.some((message) => echoFor(message, sent.echoesTo)?.items !== undefined);
  const isAnswer = status === 400 || status === 404 || status === 422;
  if (isAnswer && isEchoed && THEIR_ITEMS.test(words)) return 'echo';
  if (status === 404 || status === 405 || status === 501) return 'responses';
  if (status !== 400 && status !== 422) return null;
  if (refusesChoice(sent, { param, words })) return 'tool_choice';
  if (sent.marks !== undefined && CACHE_MARK.test(`${param} ${words}`)) return 'cache_marks';
  const named = OPTIONAL.find((name) => name === param && sent.parameters[name] !== undefined);
  if (named) return named;
  // Where it names the parameter itself, such a word is one of a conversation.
  const isOurs = OURS.some(
    (name) => name === param || (param === undefined && new RegExp(`['"\`]${name}['"\`]`).test(words)),
  );
  if (isOurs && NOT_TAKEN.test(words)) return 'responses';
  const isOneText = (param ?? 'input') === 'input' && ONE_TEXT.test(words);
  return isOneText || NO_RESPONSES.test(words) ? 'responses' : null;
}

/** Before the wordings of refused tools: it is not they that are refused. */
function refusesChoice(
  sent: ChatRequest,
  { param, words }: Pick<ServerErrorDetails, 'param' | 'words'>,
): boolean {
  if (sent.parameters.tool_choice === undefined) return false;
  return (
    param === 'tool_choice' ||
    (/\btool[_ ]choice\b/i.test(words) && (NOT_TAKEN.test(words) || /\binvalid value\b/i.test(words)))
  );
}

/** The names of what DeepSeek, Kimi, Gemini, OpenRouter and Anthropic's models behind a proxy want back. */
const ECHOED =
  /\breasoning_(content|details)\b|\bthought_?signatures?\b|\b(redacted_)?thinking\b[^.]{0,200}\bblocks?\b/i;
const WANTED = /\b(missing|must|requires?d?|expected|passed back)\b/i;
const ORDER = /\bunexpected role '?user'? after role '?tool\b/i;

/** What goes back with the answers of the history: demanded where it is not there, not taken where it is. */
function refusedEcho(sent: ChatRequest, words: string): Quirk | null {
  if (ORDER.test(words) && isOutOfOrder(sent.messages)) return 'user_after_tool';
  const isUnechoed = sent.messages.some((message) => callsUnechoed(message, sent.echoesTo));
  if (isUnechoed && ECHOED.test(words) && WANTED.test(words)) return 'calls_without_echo';
  const names = [...echoedNames(sent.messages, sent.echoesTo)];
  if (names.length === 0) return null;
  const isNamed = NOT_TAKEN.test(words) && names.some((name) => words.split(/[^\w-]+/).includes(name));
  return isNamed || ECHOED.test(words) ? 'echo' : null;
}

/** Where our own description of a tool is wrong, or there are too many, leaving all of them out would hide it. */
function refusesTools({ param, words }: ServerErrorDetails): boolean {
  const isNamed = param === 'tools' || param === 'functions';
  if (isNamed && NOT_TAKEN.test(words) && !/\b(schema|array|too (long|many)|at most|maximum)\b/i.test(words))
    return true;
  return NO_TOOLS.some((wording) => wording.test(words));
}

function hasCalls(sent: ChatRequest): boolean {
  return sent.messages.some((message) => message.role === 'assistant' && message.calls.length > 0);
}

/** This model takes no pictures; or it takes some, but not all that were sent. */
export type PictureRefusal = 'none taken' | 'these not taken';

const PICTURES = String.raw`['"\x60]?\b(?:images?|image_urls?|vision|multi-?modal|pictures?)(?:[ _](?:inputs?|content|parts?|data|understanding))*\b['"\x60]?`;
/** What follows where only some pictures are not taken, or not everywhere. */
const ONLY_SOME = String.raw`(?![/\s]+(?:larger|bigger|smaller|over|above|below|of|that|which|whose|containing|from|exceeding|more|beyond|formats?|types?|sizes?|files?|dimensions?|urls?|(?:in|with)(?! (?:this|the|that|your) (?:model|endpoint|request)))\b)`;

/** OpenAI, OpenRouter, vLLM, llama.cpp, LM Studio, Mistral, DeepSeek, Groq and what pydantic says of a list of parts. */
const NONE_TAKEN = [
  /\bimage_url is only supported by certain models\b/i,
  /\bno [\w ]{1,40}\bsupports? (image|vision|multimodal) inputs?\b/i,
  new RegExp(
    String.raw`(?:not|n't|no|without) (?:support|accept|take)\w*(?: for)?(?: any)? ${PICTURES}${ONLY_SOME}`,
    'i',
  ),
  new RegExp(
    String.raw`${PICTURES}(?: (?:is|are)) (?:not |un)(?:support\w*|enabled|accepted|available)\b${ONLY_SOME}`,
    'i',
  ),
  /\bnot a (multi-?modal|vision)\b/i,
  /\bat most 0 image/i,
  /\bunknown variant\b[^.]{0,200}\bimage/i,
  /\bcontent\b[^.]{0,200}\b(must be|should be|expected|is not)\b[^.]{0,200}\bstring\b/i,
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
