/**
 * What one line means, typed by a person or standing in a script: the same language for both. What begins with `:` is
 * for the simulator; `/` belongs to the product; everything else is said. Pure.
 */
import { isPlatformName, type PlatformName } from './platforms.js';

/** A message by its number, the newest one, or somebody's newest one. */
export type Which = number | 'last' | { by: string };

export type Act =
  | { kind: 'nothing' | 'kill' | 'settle' | 'log' | 'help' | 'quit' }
  | Say
  | { kind: 'command'; text: string }
  | { kind: 'edit'; which: Which; text: string }
  | { kind: 'delete'; which: Which }
  | { kind: 'react'; which: Which; sign: string }
  | { kind: 'platform'; name: PlatformName }
  /** null: one's own chat with the account. */
  | { kind: 'go'; group: number | null }
  | { kind: 'as'; name: string }
  | { kind: 'expect' | 'never'; sought: Sought }
  | { kind: 'wrong'; why: string };

export interface Say {
  kind: 'say';
  text: string;
  mention: boolean;
  replyTo: Which | null;
  /** Files; several are an album. */
  photos: string[];
  /** Who said it elsewhere, where it is passed on. */
  forwardedFrom: string | null;
}

/** What is looked for in what the gateway says. */
export interface Sought {
  /** Whose words; null for anybody's. */
  by: string | null;
  words: string | RegExp;
}

const SIMPLE = ['kill', 'settle', 'log', 'help', 'quit'] as const;

export function actOf(line: string): Act {
  const text = line.trim();
  if (text === '' || text.startsWith('#')) return { kind: 'nothing' };
  if (text.startsWith('/')) return { kind: 'command', text };
  if (!text.startsWith(':')) return said(text);
  const [, word = '', rest = ''] = /^:(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
  return SIMPLE.find((each) => each === word)
    ? { kind: word as (typeof SIMPLE)[number] }
    : actWith(word, rest);
}

function actWith(word: string, rest: string): Act {
  switch (word) {
    case 'platform':
      return isPlatformName(rest)
        ? { kind: 'platform', name: rest }
        : wrong(`:platform telegram, discord or whatsapp, not ${rest || 'nothing'}`);
    case 'group':
      return /^\d+$/.test(rest) ? { kind: 'go', group: Number(rest) } : wrong(':group NUMBER');
    case 'direct':
      return { kind: 'go', group: null };
    case 'as':
      return rest === '' ? wrong(':as NAME') : { kind: 'as', name: rest };
    case 'say':
      return rest === '' ? wrong(':say TEXT') : said(rest);
    case 'mention':
      return rest === '' ? wrong(':mention TEXT') : saidAlso(rest, { mention: true });
    case 'photo': {
      const [photo = '', text] = split(rest);
      return photo === '' ? wrong(':photo FILE TEXT') : { ...said(text), photos: [photo] };
    }
    case 'album':
      return album(rest);
    case 'forward': {
      const [author = '', text] = split(rest);
      return text === '' ? wrong(':forward NAME TEXT') : { ...said(text), forwardedFrom: author };
    }
    case 'reply':
    case 'edit':
    case 'react':
    case 'delete':
      return about(word, rest);
    case 'expect':
    case 'never': {
      const sought = soughtIn(rest);
      return sought === null
        ? wrong(`:${word} TEXT, :${word} /PATTERN/ or :${word} @NAME TEXT`)
        : { kind: word, sought };
    }
    default:
      return wrong(`there is no :${word}; :help lists what there is`);
  }
}

function about(kind: 'reply' | 'edit' | 'react' | 'delete', rest: string): Act {
  const [first = '', text] = split(rest);
  const which = whichOf(first);
  const needsText = kind !== 'delete';
  if (which === null || needsText === (text === '')) {
    const more = kind === 'react' ? ' EMOJI' : needsText ? ' TEXT' : '';
    return wrong(`:${kind} NUMBER${more}; instead of a number also last, or @NAME`);
  }
  if (kind === 'delete') return { kind, which };
  if (kind === 'react') return { kind, which, sign: text };
  return kind === 'edit' ? { kind, which, text } : saidAlso(text, { replyTo: which });
}

function whichOf(word: string): Which | null {
  if (word === 'last') return 'last';
  if (/^@./.test(word)) return { by: word.slice(1) };
  return /^\d+$/.test(word) ? Number(word) : null;
}

function soughtIn(rest: string): Sought | null {
  const [, by = null, words = ''] = /^(?:@(\S+)(?:\s+|$))?([\s\S]*)$/.exec(rest) ?? [];
  const pattern = /^\/(.+)\/$/.exec(words)?.[1];
  if (pattern !== undefined) return withPattern(by, pattern);
  return words === '' && by === null ? null : { by, words };
}

function withPattern(by: string | null, pattern: string): Sought | null {
  try {
    return { by, words: new RegExp(pattern, 'iu') };
  } catch {
    return null;
  }
}

/** The files are the words at the beginning that are names of pictures. */
function album(rest: string): Act {
  const [, files = '', text = ''] =
    /^((?:\S+\.(?:png|jpe?g|gif|webp)(?:\s+|$))*)([\s\S]*)$/i.exec(rest) ?? [];
  const photos = files.trim().split(/\s+/);
  return photos.length < 2 ? wrong(':album FILE FILE TEXT') : { ...said(text), photos };
}

function said(text: string): Say {
  return { kind: 'say', text, mention: false, replyTo: null, photos: [], forwardedFrom: null };
}

/** What is said may itself be a line that says something: with a picture, or with a mention. */
function saidAlso(text: string, more: Partial<Say>): Act {
  const [, word, rest = ''] = /^:(mention|photo|album|say)(?:\s+([\s\S]*))?$/.exec(text) ?? [];
  const act = word === undefined ? said(text) : actWith(word, rest);
  return act.kind === 'say' ? { ...act, ...more } : act;
}

function split(rest: string): [string | undefined, string] {
  const [, first, text = ''] = /^(\S+)\s*([\s\S]*)$/.exec(rest) ?? [];
  return [first, text];
}

function wrong(why: string): Act {
  return { kind: 'wrong', why };
}
