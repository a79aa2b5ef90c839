/**
 * What became of every message of one conversation, found out from outside: from the requests that the fake model
 * recorded, what it answered and whether all of the answer was sent, and the files on disk. Never from a table of
 * the product.
 *
 * A flush has finished when its last answer, one without tool calls, was sent completely: everything that it
 * wanted saved had been saved by then, for the results of its calls came back in the requests before.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ChatBody, ChatBodyMessage, FakeModelRequest } from '../fakes/model.js';
import type { ModelScript } from '../fakes/model-script.js';

type Kind = 'turn' | 'flush' | 'summary';

/** A message as a request shows it. Its key is `m7` for the seventh of the person, `re m7` for the answer to it. */
interface Shown {
  key: string;
  /** Word for word, to its end. */
  whole: boolean;
}

export interface Entry {
  kind: Kind;
  body: ChatBody;
  request: FakeModelRequest;
  answer: ModelScript | null;
  shown: Shown[];
  keys: Set<string>;
  /** Of what the window has left behind, as a turn's request gives it. */
  summary: string | null;
}

export interface ArchiveOnDisk {
  file: string;
  flushed: boolean;
  /** Made by `/archive`. */
  copy: boolean;
  keys: string[];
}

/** Where the messages are; one that was flushed and is still in the window counts as in the window. */
export interface Account {
  window: number;
  flushed: number;
  owed: number;
}

export interface Ledger {
  entries: Entry[];
  /** What the person says: its key, and the text. */
  say(number: number, text: string): string;
  /** The answer to a turn's request; the same each time it is asked. */
  replyTo(body: ChatBody): string;
  /** A request has come in; null for another chat's. */
  open(body: ChatBody, request: FakeModelRequest): Entry | null;
  /** Fails where anything is not as it was promised. `sent`: what was delivered to the chat so far. */
  account(sent: string[], all: boolean): Promise<Account>;
  /** How often a request showed a window that began later than the one before. */
  moves(): number;
  archives(): Promise<ArchiveOnDisk[]>;
}

const NOTE = /\(\d+ messages before this are not summed up; they stand in the archive (\S+)\.\)/g;

const TOOLS = [
  ...['read_tiered_memory', 'write_tiered_memory', 'read_memory', 'write_memory'],
  ...['search_memory', 'manage_clipboard', 'schedule_task', 'list_scheduled_tasks', 'pause_scheduled_task'],
  ...['resume_scheduled_task', 'cancel_scheduled_task', 'send_message'],
];

export function createLedger(chat: { id: string; folder: string; why: string }): Ledger {
  const entries: Entry[] = [];
  /** Every message, as it was said. */
  const texts = new Map<string, string>();
  const archiveFolder = join(chat.folder, 'archive');
  const read = new Map<string, { text: string; archive: ArchiveOnDisk }>();
  /** Which entries were looked at for what can be wrong in one alone. */
  let checked = 0;

  const turns = () => entries.filter(({ kind }) => kind === 'turn');

  function open(body: ChatBody, request: FakeModelRequest): Entry | null {
    const kind = kindOf(body);
    const system = body.messages[0]?.content ?? '';
    // Of chats that are here only to be answered meanwhile, nothing ever becomes a summary.
    if (kind !== 'summary' && !system.includes(`The current chat_id is ${chat.id} `)) return null;
    const shown = kind === 'summary' ? summedUp(body) : shownIn(body.messages, texts);
    const summary = /<summary>\n([\s\S]*?)\n<\/summary>/.exec(
      body.messages.find(({ role }) => role === 'user')?.content ?? '',
    );
    const entry: Entry = {
      ...{ kind, body, request, answer: null, shown },
      keys: new Set(shown.map(({ key }) => key)),
      summary: summary?.[1] ?? null,
    };
    entries.push(entry);
    return entry;
  }

  async function archives(): Promise<ArchiveOnDisk[]> {
    const names = (await readdir(archiveFolder).catch(() => [])).filter((name) => name.endsWith('.md'));
    return Promise.all(
      names.sort().map(async (file) => {
        const text = await readFile(join(archiveFolder, file), 'utf8');
        const known = read.get(file);
        if (known?.text === text) return known.archive;
        const archive = readArchive(file, text);
        read.set(file, { text, archive });
        return archive;
      }),
    );
  }

  function readArchive(file: string, text: string): ArchiveOnDisk {
    const [, matter = '', body = ''] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text) ?? [];
    const words = body.split(/^## .* · \d{4}-\d\d-\d\d \d\d:\d\d <!-- m\d+ -->$/m).slice(1);
    expect(/^messages: (\d+)$/m.exec(matter)?.[1], `${file} is whole`).toBe(String(words.length));
    const said = words.map((word) => word.replace(/^\n\n|\n\n?$/g, ''));
    const keys = said.map((word) => keyOf(word) ?? '');
    const changed = said.filter((word, n) => texts.get(keys[n] ?? '') !== word);
    expect(changed, `what does not stand in ${file} word for word`).toEqual([]);
    return {
      ...{ file, keys },
      flushed: /^flushed: true$/m.test(matter),
      copy: /^reason: somebody asked for a copy$/m.test(matter),
    };
  }

  function checkForms(): void {
    for (; checked < entries.length; checked++) {
      const { kind, body, shown, keys } = entries[checked] as Entry;
      const what = `request ${checked} (${kind}) of ${chat.why}`;
      expect(
        [...keys].filter((key) => !texts.has(key)),
        `${what}: nothing that nobody said`,
      ).toEqual([]);
      expect(shown.length, `${what}: no message twice`).toBe(keys.size);
      expect(outOfOrder(shown), `${what}: in order, each reply right behind what it answers`).toEqual([]);
      expect(brokenPairs(body.messages), `${what}: every call with its result`).toEqual([]);
      if (kind === 'summary') continue;
      const offered = body.tools?.map((tool) => tool.function.name) ?? [];
      expect(offered, `${what}: the tools of every request, so that a prompt cache holds`).toEqual(TOOLS);
    }
  }

  /** The first time that a flush which finished was shown a message: whole, and at least in part. */
  function seenByFlushes(): { whole: Map<string, number>; part: Map<string, number> } {
    const whole = new Map<string, number>();
    const part = new Map<string, number>();
    for (const { kind, answer, request, shown } of entries) {
      if (kind !== 'flush' || !isLastWord(answer) || request.answeredAt === null) continue;
      for (const message of shown) {
        const first = message.whole ? whole : part;
        if (!first.has(message.key)) first.set(message.key, request.answeredAt);
      }
    }
    return { whole, part };
  }

  /** When the first request came in whose window did not show a message any more. */
  function lefts(): Map<string, Entry> {
    const left = new Map<string, Entry>();
    const back: string[] = [];
    let before: Entry | null = null;
    for (const turn of turns()) {
      for (const key of turn.keys) if (left.has(key)) back.push(key);
      for (const key of before?.keys ?? []) if (!turn.keys.has(key)) left.set(key, turn);
      before = turn;
    }
    expect(back, `messages that come back into the window (${chat.why})`).toEqual([]);
    return left;
  }

  /** A summary of all that left, or a note that names the archive of it, is in every request since. */
  function checkSummaries(left: Map<string, Entry>, onDisk: ArchiveOnDisk[]): void {
    const made = entries.filter(
      ({ kind, answer, request }) => kind === 'summary' && isLastWord(answer) && request.answeredAt !== null,
    );
    const words = new Set(['', ...made.map(({ answer }) => answer?.text ?? '')]);
    const files = new Set(onDisk.map(({ file }) => file));
    const since = new Set(left.values());
    const [first = turns().length] = turns().flatMap((turn, n) => (since.has(turn) ? [n] : []));
    const wrong = turns()
      .slice(first)
      .map(({ summary }) => summary)
      .filter((summary) => {
        const named = [...(summary ?? '').matchAll(NOTE)].map(([, file = '']) => file);
        const made = words.has((summary ?? '').replaceAll(NOTE, '').trim());
        return !summary || !made || named.some((file) => !files.has(file));
      });
    expect(wrong, `summaries that are missing, made up, or name no archive (${chat.why})`).toEqual([]);
    const held = new Set(onDisk.flatMap(({ copy, keys }) => (copy ? [] : keys)));
    const summed = new Map<string, number>();
    for (const { keys, request } of made) {
      for (const key of keys) if (!summed.has(key)) summed.set(key, request.at);
    }
    const dropped = [...left].filter(
      ([key, turn]) => !held.has(key) && (summed.get(key) ?? Number.POSITIVE_INFINITY) > turn.request.at,
    );
    expect(
      dropped.map(([key]) => key),
      `messages that left into neither a summary nor an archive (${chat.why})`,
    ).toEqual([]);
  }

  return {
    entries,
    open,
    archives,

    say(number, text) {
      const said = `m${number} ${text}`;
      texts.set(`m${number}`, said);
      return said;
    },

    replyTo(body) {
      const key = `re ${batchOf(body).join(' ')}`;
      const text = `${key}: as you say, *quite* so.`;
      texts.set(key, text);
      return text;
    },

    async account(sent, all) {
      checkForms();
      const onDisk = await archives();
      const { whole, part } = seenByFlushes();
      const left = lefts();
      const last = turns().at(-1);
      const replies = sent.map(keyOf).filter((key) => key?.startsWith('re ') === true);
      const existing = new Set([...turns().flatMap((turn) => [...turn.keys]), ...(replies as string[])]);
      const unheard = [...texts.keys()].filter((key) => key.startsWith('m') && !existing.has(key));
      if (all) expect(unheard, `messages that no turn has heard (${chat.why})`).toEqual([]);

      const held = new Map<string, ArchiveOnDisk[]>();
      for (const archive of onDisk.filter(({ copy }) => !copy)) {
        for (const key of archive.keys) held.set(key, [...(held.get(key) ?? []), archive]);
      }
      const account: Account = { window: 0, flushed: 0, owed: 0 };
      const nowhere: string[] = [];
      const answer = last ? `re ${batchOf(last.body).join(' ')}` : '';
      for (const key of existing) {
        const isHeld = held.has(key);
        if (last?.keys.has(key) || key === answer) account.window++;
        else if (whole.has(key) || (part.has(key) && isHeld)) account.flushed++;
        else if (held.get(key)?.some(({ flushed }) => !flushed)) account.owed++;
        else nowhere.push(key);
      }
      expect(nowhere, `messages that are nowhere (${chat.why})`).toEqual([]);

      // At the very time when it left, it had been seen or was held; and what says that it was seen was seen.
      const early = [...left].filter(
        ([key, turn]) => !held.has(key) && (whole.get(key) ?? Number.POSITIVE_INFINITY) > turn.request.at,
      );
      expect(
        early.map(([key]) => key),
        `messages that left the window before a flush (${chat.why})`,
      ).toEqual([]);
      const lies = onDisk.flatMap(({ file, flushed, copy, keys }) =>
        flushed && !copy
          ? keys.filter((key) => !whole.has(key) && !part.has(key)).map((key) => [file, key])
          : [],
      );
      expect(lies, `archives that say flushed of what no flush has seen (${chat.why})`).toEqual([]);
      checkSummaries(left, onDisk);
      if (all) {
        const twice = [...held].filter(([, files]) => files.length > 1).map(([key]) => key);
        expect(twice, `messages that stand in two archives (${chat.why})`).toEqual([]);
      }
      return account;
    },

    moves() {
      const left = lefts();
      return new Set(left.values()).size;
    },
  };
}

function kindOf({ messages }: ChatBody): Kind {
  if (flushAt(messages) >= 0) return 'flush';
  return messages.at(-1)?.content?.endsWith('Conversation summary: write the new one.') ? 'summary' : 'turn';
}

/** Where in a flush the conversation ends and the flush begins; -1 where it is none. */
export function flushAt(messages: ChatBodyMessage[]): number {
  return messages.findIndex(({ role, content }) => role === 'user' && content?.startsWith('Memory flush.'));
}

function isLastWord(answer: ModelScript | null): boolean {
  return answer !== null && answer.status === undefined && (answer.calls ?? []).length === 0;
}

function shownIn(messages: ChatBodyMessage[], texts: Map<string, string>): Shown[] {
  const flush = flushAt(messages);
  const conversation = flush < 0 ? messages : messages.slice(0, flush);
  return conversation.flatMap(({ role, content, tool_calls }) => {
    if (role === 'user') {
      return (content ?? '')
        .split(/<user_message\b[^>]*>/)
        .slice(1)
        .map((piece) => shownAs(piece.split('</user_message>')[0] ?? '', texts));
    }
    const isReply = role === 'assistant' && tool_calls === undefined && content?.startsWith('re m');
    return isReply ? [shownAs(content ?? '', texts)] : [];
  });
}

function shownAs(text: string, texts: Map<string, string>): Shown {
  const key = keyOf(text) ?? `? ${text.slice(0, 80)}`;
  return { key, whole: texts.get(key) === text };
}

function keyOf(text: string): string | null {
  return /^(m\d+|re(?: m\d+)+)\b/.exec(text)?.[0] ?? null;
}

/** What a request for a summary asks to be summed up. */
function summedUp({ messages }: ChatBody): Shown[] {
  const conversation = messages.at(-1)?.content?.split('<conversation>')[1] ?? '';
  return [...conversation.matchAll(/(?:">|\): )(m\d+|re(?: m\d+)+)\b/g)].map(([, key = '']) => ({
    key,
    whole: true,
  }));
}

/** The keys of what a turn is to answer. */
function batchOf({ messages }: ChatBody): string[] {
  const last = messages.findLast(({ role }) => role === 'user')?.content ?? '';
  return last
    .split(/<user_message\b[^>]*>/)
    .slice(1)
    .map((piece) => keyOf(piece) ?? '');
}

function outOfOrder(shown: Shown[]): string[] {
  const wrong: string[] = [];
  let highest = 0;
  const before: string[] = [];
  for (const { key } of shown) {
    if (key.startsWith('re ')) {
      const answered = key.slice(3).split(' ');
      if (before.slice(-answered.length).join(' ') !== answered.join(' ')) wrong.push(key);
    } else {
      const number = Number(key.slice(1));
      if (number <= highest) wrong.push(key);
      highest = Math.max(highest, number);
    }
    before.push(key);
  }
  return wrong;
}

/** Calls without a result right behind them, and results without a call. */
function brokenPairs(messages: ChatBodyMessage[]): string[] {
  const broken: string[] = [];
  let open: string[] = [];
  for (const { role, tool_calls, tool_call_id = '' } of messages) {
    if (role === 'tool') {
      if (!open.includes(tool_call_id)) broken.push(tool_call_id);
      open = open.filter((id) => id !== tool_call_id);
      continue;
    }
    broken.push(...open);
    open = (tool_calls ?? []).map(({ id }) => id);
  }
  return [...broken, ...open];
}
