/** Finds what chat templates leave in an answer: reasoning, control tokens and channels; and code, in which all of it may stay. Pure. */

/** Blocks at the very start; one that is never closed: the model ran out of tokens while reasoning. */
const REASONING = /^(?:\s*<(think(?:ing)?)>(?:[\s\S]*?<\/\1>|[\s\S]*))+\s*/i;

/** The visible part of an unfinished text; empty while it may begin with a tag. */
export function visibleSoFar(text: string): string {
  const visible = withoutReasoning(text);
  const start = visible.trimStart().toLowerCase();
  return start !== '' && '<thinking>'.startsWith(start) ? '' : visible;
}

/** Cuts `<think>` blocks at the very start. Tags in the middle of a text or in code stay. */
export function withoutReasoning(text: string): string {
  const rest = text.replace(REASONING, '');
  return rest === text ? afterLoneClosing(text) : rest;
}

/** Some templates open the tag, so only `</think>` arrives, on its own line. In code or after an opening tag it means nothing. */
function afterLoneClosing(text: string): string {
  if (!text.includes('</think>')) return text;
  let isFenced = false;
  let offset = 0;
  for (const line of text.split('\n')) {
    offset += line.length + 1;
    if (/^\s*(```|~~~)/.test(line)) isFenced = !isFenced;
    if (line.includes('<think>')) return text;
    if (!isFenced && line.trim() === '</think>') return text.slice(offset).trimStart();
  }
  return text;
}

/** `<|im_end|>`, `<｜end▁of▁sentence｜>`, `<turn|>`, `</s>`, `<end_of_turn>`, `[INST]`. */
const TOKEN =
  /<(?:[|｜]([^\s<>|｜]{1,40})[|｜]?|([a-z_]{2,30})\||(\/?s|bos|eos|\/?pad|unk|(?:start|end)_of_turn|(?:start|end)_of_image))>|\[(\/?INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]/iuy;
const ENDS =
  /^(?:im_end|endoftext|eo[tm]_id|eo[tsdm]|end_of_text|end|return|call|end_?of_?turn(?:_token)?|end_of_sentence|end_response|\/s|turn|fim_.*)$/;
const BEGINS =
  /^(?:im_start|start_header_id|start|start_of_turn|start_of_role|start_of_turn_token|user|assistant|system|observation|human|tool|\/?inst|tool_results|available_tools|.*_token)$/;

export function tokenAt(text: string, at: number): { kind: 'end' | 'begin' | 'other'; end: number } | null {
  TOKEN.lastIndex = at;
  const match = TOKEN.exec(text);
  if (match === null) return null;
  const name = (match[1] ?? match[2] ?? match[3] ?? match[4] ?? '').toLowerCase().replaceAll('▁', '_');
  const kind = ENDS.test(name) ? 'end' : BEGINS.test(name) ? 'begin' : 'other';
  return { kind, end: TOKEN.lastIndex };
}

const OWN_HEAD =
  /(?:<\|im_start\|>(?:assistant|model)[ \t]*\n?|<\|start_header_id\|>(?:assistant|model)<\|end_header_id\|>\s{0,4}|<start_of_turn>model[ \t]*\n?|<\|turn>model[ \t]*\n?|<[|｜]assistant[|｜]>[ \t]*\n?|<\|start_of_role\|>assistant<\|end_of_role\|>|<\|start\|>assistant(?!<\|channel\|>| to=))/iuy;

/** The end of the head of the model's own turn; null if there is none, or another's turn begins. */
export function ownHeadEnd(text: string, at: number): number | null {
  OWN_HEAD.lastIndex = at;
  return OWN_HEAD.test(text) ? OWN_HEAD.lastIndex : null;
}

/** The head of a message in OpenAI's harmony format (openai/harmony), used by gpt-oss. */
const CHANNEL =
  /(<\|start\|>(?:assistant)?(?:\s{0,4}to=([^\s<>]{1,200}))?)?\s{0,4}<\|channel\|>\s{0,4}(analysis|commentary|final)\b(?:\s{0,4}to=([^\s<>]{1,200}))?[^<]{0,100}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>/uy;
const CHANNEL_BEGUN = /<\|(?:start\|>(?:assistant|$|[^<]{0,200}$|[^<]{0,200}<\|channel)|channel\|>)/uy;
const CHANNEL_ENDS = /<\|(?:end|return|call|start|channel)\|>|$/gu;

/** A message: its channel, the tool that it calls, whether it begins a turn, and where its words begin and end. */
export function channelAt(text: string, at: number) {
  CHANNEL.lastIndex = at;
  const match = CHANNEL.exec(text);
  if (match === null) return null;
  const [head, turn, to, name = '', toTool = to] = match;
  const from = at + head.length;
  CHANNEL_ENDS.lastIndex = from;
  return { name, to: toTool, isTurn: turn !== undefined, from, end: CHANNEL_ENDS.exec(text)?.index ?? from };
}

export function mayBeChannel(text: string, at: number): boolean {
  CHANNEL_BEGUN.lastIndex = at;
  return CHANNEL_BEGUN.test(text);
}

const FENCE = /(`{3,}|~{3,})([^\n]*)(\n?)/uy;
/** Also in a list or quotation. */
const CLOSING = /^[ \t>]{0,20}(`{3,}|~{3,})[ \t]*$/gmu;

/** Its contents, and its end: after the closing line, or the end of the text if it is not closed. `isBegun`: its first line is whole. */
interface Fence {
  isBegun: boolean;
  inside: string;
  end: number;
}

/** `at`: the start of a line, after blanks. null if no fence opens there. */
export function fenceAt(text: string, at: number): Fence | null {
  FENCE.lastIndex = at;
  const [, run = '', info = '', lineEnd] = FENCE.exec(text) ?? [];
  if (run === '' || (run.startsWith('`') && info.includes('`'))) return null;
  const isBegun = lineEnd !== '';
  const from = FENCE.lastIndex;
  CLOSING.lastIndex = from;
  for (let line = CLOSING.exec(text); line !== null; line = CLOSING.exec(text)) {
    if (line[1]?.startsWith(run)) {
      return { isBegun, inside: text.slice(from, line.index), end: CLOSING.lastIndex };
    }
  }
  return { isBegun, inside: text.slice(from), end: text.length };
}

const TICKS_OR_BREAK = /`+|\n[ \t]*\n/gu;
/** Longer runs are not treated as code, which bounds the search: each length is looked for once per paragraph. */
const MOST_TICKS = 8;

/** Finds the end of the inline code that begins with `run` at a position; null if its paragraph does not close it. */
export function createInlineCode(text: string): (at: number, run: string) => number | null {
  /** By run length: no closing run before this position. */
  const noneBefore = new Map<number, number>();
  return (at, { length }) => {
    if (length > MOST_TICKS || at < (noneBefore.get(length) ?? 0)) return null;
    TICKS_OR_BREAK.lastIndex = at + length;
    let match = TICKS_OR_BREAK.exec(text);
    while (match?.[0].startsWith('`')) {
      if (match[0].length === length) return TICKS_OR_BREAK.lastIndex;
      match = TICKS_OR_BREAK.exec(text);
    }
    noneBefore.set(length, match?.index ?? text.length);
    return null;
  };
}
