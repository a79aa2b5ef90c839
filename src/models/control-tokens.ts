/**
 * Step 5, inside the model client: tokens of chat templates that stand in an answer as text, because its server has let them
 * through: ends of turns, heads of turns, channels. Pure.
 */

/** `<|im_end|>`, `<｜end▁of▁sentence｜>`, `<turn|>`, `</s>`, `<end_of_turn>`, `[INST]`. */
const TOKEN =
  /<(?:[|｜]([^\s<>|｜]{1,40})[|｜]?|([a-z_]{2,30})\||(\/?s|bos|eos|\/?pad|unk|(?:start|end)_of_turn|(?:start|end)_of_image))>|\[(\/?INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]/iuy;

const ENDS =
  /^(?:im_end|endoftext|eo[tm]_id|eo[tsdm]|end_of_text|end|return|call|end_?of_?turn(?:_token)?|end_of_sentence|end_response|\/s|turn|fim_.*)$/;
const BEGINS =
  /^(?:im_start|start_header_id|start|start_of_turn|start_of_role|start_of_turn_token|user|assistant|system|observation|human|tool|\/?inst|tool_results|available_tools|.*_token)$/;

/** The head of a turn of the model itself, behind or with its first token. */
const OWN_HEAD =
  /(?:<\|im_start\|>(?:assistant|model)[ \t]*\n?|<\|start_header_id\|>(?:assistant|model)<\|end_header_id\|>\s{0,4}|<start_of_turn>model[ \t]*\n?|<\|turn>model[ \t]*\n?|<[|｜]assistant[|｜]>[ \t]*\n?|<\|start_of_role\|>assistant<\|end_of_role\|>|<\|start\|>assistant(?!<\|channel\|>| to=))/iuy;

export interface Token {
  kind: 'end' | 'begin' | 'other';
  end: number;
}

export function tokenAt(text: string, at: number): Token | null {
  TOKEN.lastIndex = at;
  const match = TOKEN.exec(text);
  if (match === null) return null;
  const name = (match[1] ?? match[2] ?? match[3] ?? match[4] ?? '').toLowerCase().replaceAll('▁', '_');
  const kind = ENDS.test(name) ? 'end' : BEGINS.test(name) ? 'begin' : 'other';
  return { kind, end: TOKEN.lastIndex };
}

/** Behind the head of a turn of the model's own; null: another begins there, or none. */
export function ownHeadEnd(text: string, at: number): number | null {
  OWN_HEAD.lastIndex = at;
  return OWN_HEAD.test(text) ? OWN_HEAD.lastIndex : null;
}

export interface Channel {
  name: 'analysis' | 'commentary' | 'final';
  /** The tool that it calls; null: it calls none. */
  to: string | null;
  /** It begins with a turn of its own. */
  isTurn: boolean;
  /** Where its words begin. */
  end: number;
}

/** The head of a message in OpenAI's harmony format (openai/harmony), in which gpt-oss writes. */
const CHANNEL =
  /(<\|start\|>(?:assistant)?(?:\s{0,4}to=([^\s<>]{1,200}))?)?\s{0,4}<\|channel\|>\s{0,4}(analysis|commentary|final)\b(?:\s{0,4}to=([^\s<>]{1,200}))?[^<]{0,100}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>/uy;
const CHANNEL_BEGUN = /<\|(?:start\|>(?:assistant|$|[^<]{0,200}$|[^<]{0,200}<\|channel)|channel\|>)/uy;
const CHANNEL_ENDS = /<\|(?:end|return|call|start|channel)\|>/gu;

export function channelAt(text: string, at: number): Channel | null {
  CHANNEL.lastIndex = at;
  const match = CHANNEL.exec(text);
  if (match === null) return null;
  const name = match[3] as Channel['name'];
  return { name, to: match[2] ?? match[4] ?? null, isTurn: match[1] !== undefined, end: CHANNEL.lastIndex };
}

/** Whether the head of such a message may be only half written. */
export function mayBeChannel(text: string, at: number): boolean {
  CHANNEL_BEGUN.lastIndex = at;
  return CHANNEL_BEGUN.test(text);
}

/** Where the words of a message end; the end of the text where it does not say. */
export function channelEnd(text: string, from: number): number {
  CHANNEL_ENDS.lastIndex = from;
  return CHANNEL_ENDS.exec(text)?.index ?? text.length;
}
