/** Recognises by its words what a server refuses. Patterns must be unambiguous: what is learnt applies to all chats. Pure. */
import { isBadCall, type ServerErrorDetails } from './failures.js';
import { callsUnechoed, echoedNames, echoFor, isOutOfOrder, takesTurns } from './history.js';
import { type ChatRequest, picturesIn } from './request.js';
import type { Quirk } from './server-ways.js';

type Refusal = { status: ServerErrorDetails['status']; words: string; param: string };

/** One rule: the quirk a refusal is about. Default: both APIs, any status. */
interface Rule {
  quirk: Quirk;
  api?: ChatRequest['api'];
  status?: readonly number[];
  fits(sent: ChatRequest, refusal: Refusal): boolean;
}

const UNPROCESSABLE = [400, 422];
/** OpenRouter has no endpoint with tools (404); llama.cpp was started without tool templates (500). */
const NOT_THERE = [...UNPROCESSABLE, 404, 500, 501];

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

/** Anthropic's models behind LiteLLM and Bedrock: calls in the history require the tools in the request. */
const TOOLS_WANTED =
  /\btools=?[`'"]? (param|field)[^.]{0,200}\b(passed in|defined)|\btoolConfig field must be defined\b/i;

/** Bedrock: a model may take tools and may stream, but not both at once. */
const NO_STREAM =
  /\bstream(ing)?\b[^.]{0,200}\b(un|not )support|(\bnot|n't) support[^.]{0,200}\bstream(ing)?\b|\bstream(ing)?\b[^.]{0,200}\bnot (enabled|available|allowed)/i;

/** Gemma's template on various servers, Mistral, Gemini's API for Gemma, OpenAI's o1-mini, Anthropic, and validators on a role. */
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
/** Templates without a role for tool results. */
const NO_RESULTS =
  /\bonly [\w, ]{0,100}\bsystem\b[\w, ]{0,100} roles are supported\b|\brole:? ?['"`]?tool['"`]?( is)? (not|un)[ -]?(support|allow|permit|recogni)/i;
const IN_TURNS = /\broles must alternate\b|\bmust alternate between\b[^.]{0,200}\buser\b/i;

/** The API as a whole: the path is missing, or unavailable for this model, or lacks something we need. */
const RESPONSES = String.raw`(?:/responses\b|\bresponses (?:api|endpoint|path|route)\b)`;
const NO_RESPONSES = new RegExp(
  String.raw`${RESPONSES}[^.]{0,200}\b(?:not|un)[ -]?(?:support|availab|enabl|found|implement|allow)|\b(?:not|un)[ -]?(?:support|availab|enabl)[^.]{0,200}${RESPONSES}`,
  'i',
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

const hasSystem = (sent: ChatRequest) => sent.messages.some(({ role }) => role === 'system');
const hasCalls = (sent: ChatRequest) =>
  sent.messages.some((message) => message.role === 'assistant' && message.calls.length > 0);
const isAnyOf = (wordings: readonly RegExp[], words: string) =>
  wordings.some((wording) => wording.test(words));

/** Any status: llama.cpp sends 500, LM Studio an error within the stream. */
const ROLES: Rule[] = [
  { quirk: 'system_role', fits: (sent, { words }) => hasSystem(sent) && isAnyOf(NO_SYSTEM, words) },
  { quirk: 'tool_results', fits: (sent, { words }) => hasCalls(sent) && NO_RESULTS.test(words) },
  { quirk: 'role_order', fits: (sent, { words }) => IN_TURNS.test(words) && !takesTurns(sent.messages) },
  { quirk: 'tool_results', fits: (sent, { words }) => IN_TURNS.test(words) && hasCalls(sent) },
  {
    quirk: 'system_role',
    fits: (sent, { words }) => IN_TURNS.test(words) && hasSystem(sent) && !/\boptional system\b/i.test(words),
  },
];

const isAboutEffort = ({ param, words }: Refusal) =>
  param === 'reasoning_effort' || /\breasoning_effort\b/.test(words);
const isToolsOrEffort = (sent: ChatRequest, refusal: Refusal) =>
  isAboutEffort(refusal) &&
  sent.tools.length > 0 &&
  sent.parameters.reasoning_effort !== 'none' &&
  /\b(tool|function)s?\b/i.test(refusal.words);

const isChoice = ({ parameters }: ChatRequest, { param, words }: Refusal) =>
  parameters.tool_choice !== undefined &&
  (param === 'tool_choice' ||
    (/\btool[_ ]choice\b/i.test(words) && (NOT_TAKEN.test(words) || /\binvalid value\b/i.test(words))));

/** A wrong schema of ours, or too many tools, must not count: dropping all tools would hide the mistake. */
function refusesTools({ param, words }: Refusal): boolean {
  const isNamed = param === 'tools' || param === 'functions';
  const isOne = /\b(schema|array|too (long|many)|at most|maximum)\b/i.test(words);
  return (isNamed && NOT_TAKEN.test(words) && !isOne) || isAnyOf(NO_TOOLS, words);
}

/** Refused fields that were returned with the answers of the history. */
function refusesEcho(sent: ChatRequest, { words, param }: Refusal): boolean {
  const names = echoedNames(sent.messages, sent.echoesTo);
  const said = `${words} ${param}`;
  const isNamed = NOT_TAKEN.test(said) && names.some((name) => said.split(/[^\w-]+/).includes(name));
  return names.length > 0 && (isNamed || ECHOED.test(said));
}

const chat = (quirk: Quirk, fits: Rule['fits'], status = UNPROCESSABLE): Rule => ({
  quirk,
  api: 'chat',
  status,
  fits,
});

/** The order matters: the Responses API first, then no reasoning, and only then no tools. */
const CHAT: Rule[] = [
  chat('reasoning_with_tools', (sent, refusal) => isToolsOrEffort(sent, refusal) && !sent.isToolsOrReasoning),
  chat('tools', isToolsOrEffort),
  chat(
    'reasoning_effort',
    (sent, refusal) => isAboutEffort(refusal) && sent.parameters.reasoning_effort !== undefined,
  ),
  chat('user_after_tool', (sent, { words }) => ORDER.test(words) && isOutOfOrder(sent.messages)),
  chat('calls_without_echo', (sent, { words, param }) => {
    const isUnechoed = sent.messages.some((message) => callsUnechoed(message, sent.echoesTo));
    return isUnechoed && ECHOED.test(`${words} ${param}`) && WANTED.test(`${words} ${param}`);
  }),
  chat('echo', refusesEcho),
  chat('tool_choice', isChoice),
  chat('cache_marks', isMark),
  ...NAMED.map((name) =>
    chat(name, (sent, { param }) => param === name && sent.parameters[name] !== undefined),
  ),
  chat(
    'stream',
    ({ parameters }, { param, words }) =>
      parameters.stream === true && (param === 'stream' || NO_STREAM.test(words)),
  ),
  chat('tools', (sent, refusal) => sent.tools.length > 0 && refusesTools(refusal), NOT_THERE),
  chat(
    'calls_without_tools',
    (sent, refusal) =>
      sent.tools.length === 0 &&
      hasCalls(sent) &&
      (refusesTools(refusal) || TOOLS_WANTED.test(refusal.words)),
    NOT_THERE,
  ),
  ...NAMED.map((name) => {
    const wording = name === 'temperature' ? TEMPERATURE : new RegExp(`\\b${name}\\b`);
    return chat(name, (sent, { words }) => sent.parameters[name] !== undefined && wording.test(words));
  }),
  // Unnamed unknown field: give up first what only a prompt cache needs.
  chat('cache_marks', (sent, { words }) => UNKNOWN_FIELD.test(words) && sent.marks !== undefined),
  chat(
    'prompt_cache_key',
    (sent, { words }) => UNKNOWN_FIELD.test(words) && sent.parameters.prompt_cache_key !== undefined,
  ),
];

function isMark(sent: ChatRequest, { param, words }: Refusal): boolean {
  return sent.marks !== undefined && CACHE_MARK.test(`${param} ${words}`);
}

const there = (quirk: Quirk, fits: Rule['fits'], status = UNPROCESSABLE): Rule => ({
  quirk,
  api: 'responses',
  status,
  fits,
});

const RESPONSES_RULES: Rule[] = [
  there(
    'echo',
    (sent, { words }) =>
      THEIR_ITEMS.test(words) &&
      sent.messages.some((message) => echoFor(message, sent.echoesTo)?.items !== undefined),
    [400, 404, 422],
  ),
  there('responses', () => true, [404, 405, 501]),
  there('tool_choice', isChoice),
  there('cache_marks', isMark),
  ...(['temperature', 'prompt_cache_key'] as const).map((name) =>
    there(name, (sent, { param }) => param === name && sent.parameters[name] !== undefined),
  ),
  there('responses', (_sent, { param, words }) => {
    // Where the server names the parameter itself, these words may come from a conversation.
    const isOurs = OURS.some(
      (name) => name === param || (param === '' && new RegExp(`['"\`]${name}['"\`]`).test(words)),
    );
    const isOneText = (param === '' || param === 'input') && ONE_TEXT.test(words);
    return (isOurs && NOT_TAKEN.test(words)) || isOneText || NO_RESPONSES.test(words);
  }),
];

const RULES = [...ROLES, ...CHAT, ...RESPONSES_RULES];

/** The part of `sent` that the refusal is about; null if it is about something else. */
export function refusedParameter(sent: ChatRequest, refusal: ServerErrorDetails): Quirk | null {
  // Caused by sampling; the next answer may differ.
  if (isBadCall(refusal)) return null;
  const { status = 0, words, param = '' } = refusal;
  // The model reasoned until its limit: the parameter is fine, its value was too small.
  const rules = /\bhigher max_/i.test(words) && sent.api === 'chat' ? ROLES : RULES;
  const found = rules.find(
    (rule) =>
      (rule.api === undefined || rule.api === sent.api) &&
      (rule.status === undefined || rule.status.includes(status)) &&
      rule.fits(sent, { status, words, param }),
  );
  return found?.quirk ?? null;
}

/** The model takes no pictures at all, or not these. */
type PictureRefusal = 'none taken' | 'these not taken';

const PICTURES = String.raw`['"\x60]?\b(?:images?|image_urls?|vision|multi-?modal|pictures?)(?:[ _](?:inputs?|content|parts?|data|understanding))*\b['"\x60]?`;
/** Not followed by words that limit the refusal to some pictures or places. */
const ONLY_SOME = String.raw`(?![/\s]+(?:larger|bigger|smaller|over|above|below|of|that|which|whose|containing|from|exceeding|more|beyond|formats?|types?|sizes?|files?|dimensions?|urls?|(?:in|with)(?! (?:this|the|that|your) (?:model|endpoint|request)))\b)`;

/** OpenAI, OpenRouter, vLLM, llama.cpp, LM Studio, Mistral, DeepSeek, Groq, and pydantic on a list of parts. */
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
  const noneTaken = !THEIR_FORM.test(words) && NONE_TAKEN.some((wording) => wording.test(words));
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
