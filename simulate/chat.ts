/** One place on one platform, as everybody there sees it: what stands there, numbered, and what has changed. */
import { type Place, type Platform, type Shown, seenBy } from '../test/harness/platform.js';
import type { Sought, Which } from './lines.js';

export interface Line {
  number: number;
  id: string;
  /** The name it stands under: the platform's, or the one it begins with. */
  who: string;
  /** The account whose message it is, where it only begins with that name; else null. */
  via: string | null;
  text: string;
  files: string[];
  /** The labels of the buttons below it. */
  buttons: string[];
  replyTo: number | null;
  ours: boolean;
  gone: boolean;
}

export type Sight =
  | { kind: 'new' | 'gone' | 'decided'; line: Line }
  | { kind: 'changed'; line: Line; before: string }
  /** Our account has put a sign to a message. */
  | { kind: 'sign'; on: Line; emoji: string }
  /** Something is being written that is no message yet. */
  | { kind: 'preview'; text: string }
  | { kind: 'typing' };

export interface Chat {
  platform: Platform;
  place: Place;
  /** What a person has said here. */
  said(who: string, saying: { id: string; text: string; replyTo: string | null; files?: string[] }): Line;
  /** A person has changed a message. */
  changed(line: Line, text: string): Sight;
  /** What there is to be seen since it was looked at last. */
  look(): Sight[];
  find(which: Which): Line | undefined;
  /** The newest with buttons. */
  asked(): Line | undefined;
  /** The first of ours that fits, behind what was expected last. */
  meets(sought: Sought): Line | undefined;
  /** Any of ours that fits. */
  holds(sought: Sought): Line | undefined;
}

/** What our account is called everywhere. */
export const ACCOUNT = 'Coterie';

export function openChat(platform: Platform, place: Place): Chat {
  const lines: Line[] = [];
  let typing = platform.typing(place);
  let preview: string | null = null;
  const signs = new Set<string>();
  let met = 0;

  const byId = (id: string | null) => (id === null ? undefined : lines.findLast((line) => line.id === id));

  function add(line: Omit<Line, 'number' | 'gone' | 'replyTo'>, replyTo: string | null): Line {
    const added = { ...line, number: lines.length + 1, gone: false, replyTo: byId(replyTo)?.number ?? null };
    lines.push(added);
    return added;
  }

  function sightOf(shown: Shown): Sight | null {
    const { id, files, replyTo, buttons = [] } = shown;
    const known = lines.find((line) => line.ours && line.id === id);
    const text = textOf(shown);
    if (known === undefined) {
      const via = shown.speaker === null && shown.heading !== null ? ACCOUNT : null;
      const line = add({ id, who: seenBy(shown) ?? ACCOUNT, via, text, files, buttons, ours: true }, replyTo);
      return { kind: 'new', line };
    }
    const isDecided = known.buttons.length > 0 && buttons.length === 0;
    known.buttons = buttons;
    if (known.text === text) return isDecided ? { kind: 'decided', line: known } : null;
    const before = known.text;
    known.text = text;
    return { kind: 'changed', line: known, before };
  }

  const fits = (sought: Sought) => (line: Line) => line.ours && !line.gone && isMet(sought, line);

  return {
    platform,
    place,
    said: (who, { id, text, replyTo, files = [] }) =>
      add({ id, who, via: null, text, files, buttons: [], ours: false }, replyTo),
    changed(line, text) {
      const before = line.text;
      line.text = text;
      return { kind: 'changed', line, before };
    },
    look() {
      const shown = platform.shown(place);
      const sights: Sight[] = shown.map(sightOf).filter((sight) => sight !== null);
      const there = new Set(shown.map(({ id }) => id));
      for (const line of lines) {
        if (!line.ours || line.gone || there.has(line.id)) continue;
        line.gone = true;
        sights.push({ kind: 'gone', line });
      }
      for (const { on, emoji } of platform.signs(place)) {
        const line = byId(on);
        if (line === undefined || signs.has(`${on} ${emoji}`)) continue;
        signs.add(`${on} ${emoji}`);
        sights.push({ kind: 'sign', on: line, emoji });
      }
      const draft = platform.preview?.(place) ?? null;
      if (draft !== preview && draft !== null) sights.push({ kind: 'preview', text: draft });
      preview = draft;
      const times = platform.typing(place);
      if (times > typing && sights.length === 0) sights.push({ kind: 'typing' });
      typing = times;
      return sights;
    },
    find(which) {
      if (which === 'last') return lines.findLast(({ gone }) => !gone);
      if (typeof which === 'number') return lines[which - 1];
      return lines.findLast(({ who, gone }) => !gone && isName(who, which.by));
    },
    asked: () => lines.findLast(({ buttons, gone }) => buttons.length > 0 && !gone),
    meets(sought) {
      const found = lines.slice(met).find(fits(sought));
      if (found !== undefined) met = found.number;
      return found;
    },
    holds: (sought) => lines.find(fits(sought)),
  };
}

/** Without the name it begins with: that is shown as who says it. */
function textOf({ text, heading, speaker }: Shown): string {
  return heading === null || speaker !== null ? text : text.slice(text.indexOf('\n') + 1);
}

function isMet({ by, words }: Sought, { who, text, files }: Line): boolean {
  if (by !== null && !isName(who, by)) return false;
  const all = [text, ...files].join('\n');
  return words instanceof RegExp ? words.test(all) : all.toLowerCase().includes(words.toLowerCase());
}

function isName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}
