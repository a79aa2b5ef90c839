/** Recognises by its words what a server refuses. Patterns must be unambiguous: what is learnt applies to all chats. Pure. */
import { isBadCall, type ServerErrorDetails } from './failures.js';
import { callsUnechoed, echoedNames, echoFor, isOutOfOrder, takesTurns } from './history.js';
import { type ChatRequest, picturesIn } from './request.js';
import type { Quirk } from './server-ways.js';

/** A refusal, and the request that it answers. */
interface Refused {
  sent: ChatRequest;
  words: string;
  param: string;
  /** The words, and the parameter that the server names. */
  all: string;
}

const UNPROCESSABLE = [400, 422];
/** OpenRouter has no endpoint with tools (404); llama.cpp was started without tool templates (500). */
const NOT_THERE = [...UNPROCESSABLE, 404, 500, 501];

/** A quirk that a refusal is about, if it fits and has one of these statuses. Default: 400 and 422. */
type Rule = [quirk: Quirk, fits: (refused: Refused) => boolean, statuses?: readonly number[]];

function anyOf(...wordings: (RegExp | string)[]): RegExp {
  const sources = wordings.map((wording) => (typeof wording === 'string' ? wording : wording.source));
  return new RegExp(sources.join('|'), 'i');
}

/** Parameters recognised by their name in the server's words. */
const NAMED = [
  'max_completion_tokens',
  'max_tokens',
  'stream_options',
  'temperature',
  'prompt_cache_key',
] as const;

const CACHE_MARK = /\bprompt_cache_breakpoint\b|\bcache_control\b/;

/** A server that rejects unknown fields without naming them. */
const UNKNOWN_FIELD =
  /\b(unknown|unrecogni[sz]ed|unexpected|unsupported|extra|additional)\b[^.]{0,200}\b(field|parameter|argument|propert(y|ies)|input|key|name)s?\b/i;

/** Next to a field's name: the field itself is refused, not its value. */
const NOT_TAKEN =
  /\b(unknown|unrecogni[sz]ed|unexpected|unsupported|extra|deprecated)\b|(\bnot|n't|\bun)[ -]?(support|permit|allow|enabl|accept)/i;

/** Stricter than the name alone, because conversations also mention temperatures. */
const TEMPERATURE =
  /\btemperature\b[^.]{0,80}(\b(deprecated|must be|only|unsupported)\b|(\bnot|n't) (support|allow|permit))|\b(unsupported|unknown|unrecogni[sz]ed|unexpected|invalid|bad|extra)\b[^.]{0,60}\btemperature\b|\bno temperature\b/i;

/** Tools in general, never a single one; parallel calls do not count. */
const TOOLS = String.raw`(?<!parallel )['"\x60]?(?:tools|tool[ _-](?:use|calls?|calling)|functions|function[ _-]call(?:s|ing)?)\b['"\x60]?`;
/** Not followed by words that say tools are refused only in combination with something else. */
const ONLY_TOGETHER = String.raw`(?!['"\x60]?[\s,]+(?:in|with|when|while|together|alongside)\b(?! (?:this|the|that|your|any) (?:model|endpoint|deployment|server|version|api)))`;

/** OpenAI, Ollama, xAI, Novita, OpenRouter, Gemini, Bedrock, vLLM, llama.cpp, and validators on an unknown field. */
const NO_TOOLS = anyOf(
  `(?:not|n't|no) support(?:s|ed|ing)?(?: for)?(?: the)?(?: use of)? (?:native )?${TOOLS}${ONLY_TOGETHER}`,
  String.raw`${TOOLS}(?: (?:is|are))? (?:not (?:support\w*|enabled|available|allowed|permitted|implemented)|unsupported|disabled)\b${ONLY_TOGETHER}`,
  String.raw`\bno [\w ]{1,40}\bsupports? ${TOOLS}`,
  /\b(tool choice|tools param) requires\b/i,
  /\b(unknown|unrecogni[sz]ed|unexpected|unsupported|extra)( \w+)? (parameter|argument|field|key|property|input)s?\b[^.]{0,40}[\s`'"](tools|functions)\b(?![.[])/i,
  /(^|[\s`'"])(tools|functions)[`'"]?: (extra|unknown|unrecogni[sz]ed|unexpected|unsupported|not (permit|allow|support))/i,
);

/** Anthropic's models behind LiteLLM and Bedrock: calls in the history require the tools in the request. */
const TOOLS_WANTED =
  /\btools=?[`'"]? (param|field)[^.]{0,200}\b(passed in|defined)|\btoolConfig field must be defined\b/i;

/** Bedrock: a model may take tools and may stream, but not both at once. */
const NO_STREAM =
  /\bstream(ing)?\b[^.]{0,200}\b(un|not )support|(\bnot|n't) support[^.]{0,200}\bstream(ing)?\b|\bstream(ing)?\b[^.]{0,200}\bnot (enabled|available|allowed)/i;

/** Gemma's template on various servers, Mistral, Gemini's API for Gemma, OpenAI's o1-mini, Anthropic, and validators on a role. */
const NO_SYSTEM = anyOf(
  /\bsystem['"`]? (role|message|prompt|instruction)s?( is| are)? (not|un)[ -]?(support|allow|enabl|permit|accept|recogni)/i,
  /\brole:? ?['"`]?system['"`]?( is)? (not|un)[ -]?(support|allow|permit|recogni)/i,
  /\bsupport\w*( the| a)? (['"`]system['"`]|system (role|message|prompt|instruction))/i,
  /\bdeveloper instruction is not enabled\b/i,
  /\bonly (?:(?!system)[\w, ]){1,100} roles are supported\b/i,
  /\brole['"`]?\]?: input should be 'user' or 'assistant'/i,
  /\b(support\w*|unexpected|unknown|invalid|unsupported) (message )?role:? ?['"`]?system\b/i,
  /['"`]system['"`] is not (a|an|one of)\b[^.]{0,40}(\brole\b|['"`]user\b)/i,
  /\binvalid value: ['"`]system['"`]/i,
  /\binput tag ['"`]system['"`] found using ['"`]role\b/i,
);
/** Templates without a role for tool results. */
const NO_RESULTS =
  /\bonly [\w, ]{0,100}\bsystem\b[\w, ]{0,100} roles are supported\b|\brole:? ?['"`]?tool['"`]?( is)? (not|un)[ -]?(support|allow|permit|recogni)/i;
const IN_TURNS = /\broles must alternate\b|\bmust alternate between\b[^.]{0,200}\buser\b/i;

/** The API as a whole: the path is missing, or unavailable for this model, or lacks something we need. */
const RESPONSES = String.raw`(?:/responses\b|\bresponses (?:api|endpoint|path|route)\b)`;
const NO_RESPONSES = anyOf(
  String.raw`${RESPONSES}[^.]{0,200}\b(?:not|un)[ -]?(?:support|availab|enabl|found|implement|allow)`,
  String.raw`\b(?:not|un)[ -]?(?:support|availab|enabl)[^.]{0,200}${RESPONSES}`,
);
const OURS = ['include', 'store'];
/** An imitation of the API that takes only a string. */
const ONE_TEXT = /\binput\b['"`]?:? (should|must) be a (valid )?string\b/i;
const THEIR_ITEMS = /\bencrypted[ _]content\b|\bitem\b[^.]{0,200}\b(rs|fc|msg)_/i;

/** Names of the fields that DeepSeek, Kimi, Gemini, OpenRouter and Anthropic's models behind a proxy want returned. */
const ECHOED =
  /\breasoning_(content|details)\b|\bthought_?signatures?\b|\b(redacted_)?thinking\b[^.]{0,200}\bblocks?\b/i;
const WANTED = /\b(missing|must|requires?d?|expected|passed back)\b/i;
const ORDER = /\bunexpected role '?user'? after role '?tool\b/i;

const has = ({ parameters }: ChatRequest, name: keyof ChatRequest['parameters']) =>
  parameters[name] !== undefined;
const hasSystem = (sent: ChatRequest) => sent.messages.some(({ role }) => role === 'system');
const hasCalls = (sent: ChatRequest) =>
  sent.messages.some((message) => message.role === 'assistant' && message.calls.length > 0);

/** With any status: llama.cpp sends 500, LM Studio an error within the stream. */
const ROLES: Rule[] = [
  ['system_role', ({ sent, words }) => hasSystem(sent) && NO_SYSTEM.test(words)],
  ['tool_results', ({ sent, words }) => hasCalls(sent) && NO_RESULTS.test(words)],
  ['role_order', ({ sent, words }) => IN_TURNS.test(words) && !takesTurns(sent.messages)],
  ['tool_results', ({ sent, words }) => IN_TURNS.test(words) && hasCalls(sent)],
  [
    'system_role',
    ({ sent, words }) => IN_TURNS.test(words) && hasSystem(sent) && !/\boptional system\b/i.test(words),
  ],
];

const EFFORT = /\breasoning_effort\b/;
const isToolsOrEffort = ({ sent, all }: Refused) =>
  EFFORT.test(all) &&
  sent.tools.length > 0 &&
  sent.parameters.reasoning_effort !== 'none' &&
  /\b(tool|function)s?\b/i.test(all);

/** A wrong schema of ours, or too many tools, must not count: dropping all tools would hide the mistake. */
function isTools({ param, words }: Refused): boolean {
  const isNamed = param === 'tools' || param === 'functions';
  const isOne = /\b(schema|array|too (long|many)|at most|maximum)\b/i.test(words);
  return (isNamed && NOT_TAKEN.test(words) && !isOne) || NO_TOOLS.test(words);
}

/** Fields that were returned with the answers of the history. */
function isEcho({ sent, all }: Refused): boolean {
  const names = echoedNames(sent.messages, sent.echoesTo);
  const isNamed = NOT_TAKEN.test(all) && names.some((name) => all.split(/[^\w-]+/).includes(name));
  return names.length > 0 && (isNamed || ECHOED.test(all));
}

const isCallsAlone = (refused: Refused) =>
  refused.sent.tools.length === 0 &&
  hasCalls(refused.sent) &&
  (isTools(refused) || TOOLS_WANTED.test(refused.words));

const isUnechoed = ({ sent, all }: Refused) =>
  ECHOED.test(all) &&
  WANTED.test(all) &&
  sent.messages.some((message) => callsUnechoed(message, sent.echoesTo));

const CHOICE: Rule = [
  'tool_choice',
  ({ sent, param, words }) =>
    has(sent, 'tool_choice') &&
    (param === 'tool_choice' ||
      (/\btool[_ ]choice\b/i.test(words) && (NOT_TAKEN.test(words) || /\binvalid value\b/i.test(words)))),
];
const MARKS: Rule = ['cache_marks', ({ sent, all }) => sent.marks !== undefined && CACHE_MARK.test(all)];

const byName = (name: (typeof NAMED)[number]): Rule => [
  name,
  ({ sent, param }) => param === name && has(sent, name),
];
const byWords = (name: (typeof NAMED)[number]): Rule => {
  const wording = name === 'temperature' ? TEMPERATURE : new RegExp(`\\b${name}\\b`);
  return [name, ({ sent, words }) => has(sent, name) && wording.test(words)];
};

/** The order matters: the Responses API first, then no reasoning, and only then no tools. */
const CHAT: Rule[] = [
  ['reasoning_with_tools', (refused) => isToolsOrEffort(refused) && !refused.sent.isToolsOrReasoning],
  ['tools', isToolsOrEffort],
  ['reasoning_effort', ({ sent, all }) => EFFORT.test(all) && has(sent, 'reasoning_effort')],
  ['user_after_tool', ({ sent, words }) => ORDER.test(words) && isOutOfOrder(sent.messages)],
  ['calls_without_echo', isUnechoed],
  ['echo', isEcho],
  CHOICE,
  MARKS,
  ...NAMED.map(byName),
  [
    'stream',
    ({ sent, param, words }) =>
      sent.parameters.stream === true && (param === 'stream' || NO_STREAM.test(words)),
  ],
  ['tools', (refused) => refused.sent.tools.length > 0 && isTools(refused), NOT_THERE],
  ['calls_without_tools', isCallsAlone, NOT_THERE],
  ...NAMED.map(byWords),
  // Unnamed unknown field: give up first what only a prompt cache needs.
  ['cache_marks', ({ sent, words }) => UNKNOWN_FIELD.test(words) && sent.marks !== undefined],
  ['prompt_cache_key', ({ sent, words }) => UNKNOWN_FIELD.test(words) && has(sent, 'prompt_cache_key')],
];

/** Where the server names the parameter itself, words about another may come from a conversation. */
function isResponses({ param, words }: Refused): boolean {
  const isOurs = OURS.some(
    (name) => name === param || (param === '' && new RegExp(`['"\`]${name}['"\`]`).test(words)),
  );
  const isOneText = (param === '' || param === 'input') && ONE_TEXT.test(words);
  return (isOurs && NOT_TAKEN.test(words)) || isOneText || NO_RESPONSES.test(words);
}

const RESPONSES_RULES: Rule[] = [
  [
    'echo',
    ({ sent, words }) =>
      THEIR_ITEMS.test(words) &&
      sent.messages.some((message) => echoFor(message, sent.echoesTo)?.items !== undefined),
    [400, 404, 422],
  ],
  ['responses', () => true, [404, 405, 501]],
  CHOICE,
  MARKS,
  byName('temperature'),
  byName('prompt_cache_key'),
  ['responses', isResponses],
];

/** The part of `sent` that the refusal is about; null if it is about something else. */
export function refusedParameter(sent: ChatRequest, refusal: ServerErrorDetails): Quirk | null {
  // Caused by sampling; the next answer may differ.
  if (isBadCall(refusal)) return null;
  const { status = 0, words, param = '' } = refusal;
  const refused = { sent, words, param, all: `${words} ${param}` };
  const role = ROLES.find(([, fits]) => fits(refused));
  if (role) return role[0];
  // The model reasoned until its limit: the parameter is fine, its value was too small.
  if (sent.api === 'chat' && /\bhigher max_/i.test(words)) return null;
  const rules = sent.api === 'chat' ? CHAT : RESPONSES_RULES;
  const found = rules.find(([, fits, of = UNPROCESSABLE]) => of.includes(status) && fits(refused));
  return found?.[0] ?? null;
}

/** The model takes no pictures at all, or not these. */
type PictureRefusal = 'none taken' | 'these not taken';

const PICTURES = String.raw`['"\x60]?\b(?:images?|image_urls?|vision|multi-?modal|pictures?)(?:[ _](?:inputs?|content|parts?|data|understanding))*\b['"\x60]?`;
/** Not followed by words that limit the refusal to some pictures or places. */
const ONLY_SOME = String.raw`(?![/\s]+(?:larger|bigger|smaller|over|above|below|of|that|which|whose|containing|from|exceeding|more|beyond|formats?|types?|sizes?|files?|dimensions?|urls?|(?:in|with)(?! (?:this|the|that|your) (?:model|endpoint|request)))\b)`;

/** OpenAI, OpenRouter, vLLM, llama.cpp, LM Studio, Mistral, DeepSeek, Groq, and pydantic on a list of parts. */
const NONE_TAKEN = anyOf(
  /\bimage_url is only supported by certain models\b/i,
  /\bno [\w ]{1,40}\bsupports? (image|vision|multimodal) inputs?\b/i,
  String.raw`(?:not|n't|no|without) (?:support|accept|take)\w*(?: for)?(?: any)? ${PICTURES}${ONLY_SOME}`,
  String.raw`${PICTURES} (?:is|are) (?:not |un)(?:support\w*|enabled|accepted|available)\b${ONLY_SOME}`,
  /\bnot a (multi-?modal|vision)\b/i,
  /\bat most 0 image/i,
  /\bunknown variant\b[^.]{0,200}\bimage/i,
  /\bcontent\b[^.]{0,200}\b(must be|should be|expected|is not)\b[^.]{0,200}\bstring\b/i,
  /\bmmproj\b|\bmissing data required for image input\b/i,
);

/** About the form of a picture, not about pictures in general. */
const THEIR_FORM =
  /\b(image|picture|media)[ _-]?(format|size|type|file|dimension)s?\b|\bimage\/\w|\bunsupported image\b/i;

const ABOUT_PICTURES = /\b(images?|image_url|picture|vision|multi-?modal|base64|data url|media[ _]type)\b/i;

/** null if pictures are not the reason or none were sent. A separate function, because only these pictures may be refused. */
export function refusedPictures(sent: ChatRequest, refusal: ServerErrorDetails): PictureRefusal | null {
  const { status, words, code = '', param = '' } = refusal;
  if (status === undefined || picturesIn(sent).length === 0) return null;
  // Pictures are what makes a body so large.
  if (status === 413) return 'these not taken';
  const all = `${words} ${code} ${param}`;
  const noneTaken = !THEIR_FORM.test(words) && NONE_TAKEN.test(words);
  // llama.cpp sends 500 and OpenRouter 404; for these, only unambiguous words count.
  if ([400, 404, 415, 422, 500, 501].includes(status) && noneTaken) return 'none taken';
  return [400, 415, 422].includes(status) && ABOUT_PICTURES.test(all) ? 'these not taken' : null;
}

/** About tools as a whole, which the server may also name as the parameter `tools`. */
const ABOUT_TOOLS = /\b(?:tools|functions|function declarations|tool (?:count|limit))\b/i;
/** About a single tool, its contents, or another limit. */
const ABOUT_ELSE =
  /\btools?['"`]?(?:\[|\.\d)|\b(?:names?|descriptions?|characters?|strings?|tokens?|schemas?|propert(?:y|ies)|parameters|enum|calls?|requests per|minutes?|seconds?|images?|messages)\b/i;
/**
 * OpenAI: "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 383 instead."
 * (julep-ai/julep#330); validators: "should have at most 64 items", "maximum number of items is 64".
 */
const MOST =
  /(?:\b(?:max(?:imum|items)?|limit(?:ed)?|at most|up to|more than|only|exceed(?:s|ed)?|greater than|longer than|less than or equal to)\b|<=|>)[^\d]{0,40}\b(\d{1,4})\b/gi;
const TOO_MANY = /\btoo many (?:tools|functions)\b(?! (?:were |are )?(?:call|us|invok|execut|run))/i;
/** If the server gives no number, fewer tools than this are not believed to be too many. */
const LEAST_GUESSED = 8;

/** The most tools the server takes, or half of those sent if it gives no number; null if it refuses something else. */
export function toolLimitIn(
  sent: ChatRequest,
  { status, words, param = '', code = '' }: ServerErrorDetails,
): number | null {
  if (status !== undefined && status !== 400 && status !== 413 && status !== 422) return null;
  const isNamed = param === 'tools' || param === 'functions';
  if ((!isNamed && !ABOUT_TOOLS.test(words)) || ABOUT_ELSE.test(words)) return null;
  const said = [...words.matchAll(MOST)].map(([, most]) => Number(most));
  const isTooMany = TOO_MANY.test(words) || (isNamed && code === 'array_above_max_length');
  if (said.length === 0 && isTooMany) {
    const half = Math.floor(sent.tools.length / 2);
    return half < LEAST_GUESSED ? null : half;
  }
  return said.find((most) => most > 0 && most < sent.tools.length) ?? null;
}
