/**
 * Step 3 of the route: whether a text calls the bot by the name under which people see it. Pure. That name may be any
 * word ("Assistant"), and people talk about it as well as to it, so only what is said to somebody counts: `@Nova`,
 * `Nova, …`, `hey Nova`, `…, Nova?`, or nothing but the name; aloud, where nobody hears a comma, also the first word.
 */
import { begins, fold, occurrences, plainCall, vocative } from './addressing.js';

/** What people say before a name when they call somebody; in small letters. */
const GREETING_WORDS = [
  'hey|hi|hello|hiya|yo|ok|okay|dear|good (?:morning|afternoon|evening|night)',
  'hallo|moin|servus|guten (?:morgen|tag|abend)|salut|coucou|bonjour|bonsoir|dis|hola|oye|buen(?:os|as) \\p{L}+',
  'oi|olá|ola|bo[ma] (?:dia|tarde|noite)|ciao|ehi|buongiorno|buonasera|hoi|hej|hei|cześć|ahoj|szia|selam|merhaba',
  'привет|эй|слушай|добр\\p{L}+ (?:утро|день|вечер)|привіт|здравей|γεια(?: σου)?|هاي|مرحبا|يا|היי|הי|नमस्ते|हे',
  'halo|hai|xin chào|chào|สวัสดี|嘿|嗨|喂|你好|您好|早上好|哈喽|哈囉|ねえ|ねぇ|やあ|おい|おはよう|こんにちは|안녕|저기',
].join('|');
const GREETING = new RegExp(
  `(?:^|[\\s\\p{P}])(?:${GREETING_WORDS.normalize('NFKC')})(?: there)?[\\s,，、،!！]*$`,
  'u',
);
/** Longer than any greeting. */
const GREETING_CHARS = 40;
/** What polite people put behind a name, as a part of it. */
const HONORIFIC = '\\s?(?:さん|ちゃん|くん|君|様|さま|先生|님|씨|아|야|जी)|-(?:san|chan|kun|ji)';

/** `aloud`: the words are a transcript of speech. */
export function callsBot(words: string, names: readonly string[], aloud?: 'aloud'): boolean {
  const said = fold(words);
  return callable(names).some((name) => {
    const text = said.replaceAll(honorificsAfter(name), '');
    if (plainCall(text, name) >= 0 || vocative(text, name) >= 0 || isNothingBut(text, name)) return true;
    return occurrences(text, name).some((at) => isGreeted(text, at) || (aloud && isFirst(text, at)));
  });
}

function isGreeted(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - GREETING_CHARS), at);
  const greeting = GREETING.exec(before);
  if (greeting === null) return false;
  const earlier = before.slice(0, greeting.index + 1);
  return greeting.index === 0 || begins(earlier.trimEnd(), earlier.at(-1));
}

/** Signs and spaces may stand before it. */
function isFirst(text: string, at: number): boolean {
  return !/[\p{L}\p{N}]/u.test(text.slice(0, at));
}

function isNothingBut(text: string, name: string): boolean {
  const most = name.length + GREETING_CHARS;
  return text.length <= most && withoutSigns(text) === withoutSigns(name);
}

/** As people say them: without emoji and brackets, and without what only says that it is a bot. */
function callable(names: readonly string[]): string[] {
  const found = names.flatMap((each) => {
    const plain = withoutSigns(each.replaceAll(/\([^()]*\)|\[[^[\]]*\]/gu, ' '));
    const short = plain.replace(/(?<=\p{Ll})Bot$/u, '').replace(/(?<![\s_-])[\s_-]+(?:bot|ai)$/iu, '');
    return [each.trim(), plain, short].map(fold);
  });
  return [...new Set(found)].filter((name) => /[\p{L}\p{N}]/u.test(name));
}

/** Without what is no letter around it. */
function withoutSigns(text: string): string {
  return text.replace(/^[^\p{L}\p{N}]+/u, '').replace(/[^\p{L}\p{N}\p{M}]+$/u, '');
}

function honorificsAfter(name: string): RegExp {
  const exact = name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<=${exact})(?:${HONORIFIC})(?![\\p{L}\\p{M}])`, 'gu');
}
