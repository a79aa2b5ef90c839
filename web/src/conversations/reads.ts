/** Reads of the place: pages of the list, which follow the live line, and the steps of a search. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type {
  ConversationItem,
  ConversationPage,
  FoundPage,
  FoundRow,
  RowPage,
  TurnDetails,
} from '../../../src/board/protocol.ts';
import { Refusal, read } from '../api.ts';
import { useTexts } from '../app.ts';
import { onChange } from '../live.ts';

/** Of all that comes: a busy gateway changes the list many times a second. */
const AT_MOST_EVERY_MS = 1_000;

interface Listed {
  items: ConversationItem[];
  next: string | null;
}

export function useConversations() {
  const { frame } = useTexts();
  const [listed, setListed] = useState<Listed | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const told = (error: unknown) => setFault(sentenceOf(error, frame.failed));

  useEffect(() => {
    let isOver = false;
    let isRead = false;
    let isStale = false;
    async function reread(): Promise<void> {
      isStale = true;
      if (isRead) return;
      isRead = true;
      while (isStale && !isOver) {
        isStale = false;
        await read<ConversationPage>('api/board/conversations').then((page) => {
          setFault(null);
          setListed((last) => withNewest(last, page));
        }, told);
        await new Promise((resolve) => setTimeout(resolve, AT_MOST_EVERY_MS));
      }
      isRead = false;
    }
    void reread();
    const stop = onChange('conversations', () => void reread());
    return () => {
      isOver = true;
      stop();
    };
  }, []);

  async function more(): Promise<void> {
    if (listed?.next == null) return;
    const query = new URLSearchParams({ before: listed.next });
    await read<ConversationPage>(`api/board/conversations?${query}`).then(
      (page) => setListed((last) => withOlder(last, page)),
      told,
    );
  }

  return { items: listed?.items ?? null, next: listed?.next ?? null, more, fault };
}

/** Whatever was said since stands on the first page; the rest stays in its order. */
function withNewest(last: Listed | null, page: ConversationPage): Listed {
  if (last === null || page.next === null) return page;
  const fresh = new Set(page.items.map(({ room }) => room));
  const rest = last.items.filter(({ room }) => !fresh.has(room));
  // A long absence: between the page and the rest there may be others.
  const meets = page.items.some(({ room }) => last.items.some((item) => item.room === room));
  if (!meets || rest.length === 0) return page;
  return {
    items: [...page.items, ...rest],
    next: last.items.length > page.items.length ? last.next : page.next,
  };
}

function withOlder(last: Listed | null, page: ConversationPage): Listed {
  const known = new Set(last?.items.map(({ room }) => room));
  const added = page.items.filter(({ room }) => !known.has(room));
  return { items: [...(last?.items ?? []), ...added], next: page.next };
}

/** So many results at a time. */
const WANTED = 25;

export function useSearch(query: string) {
  const { frame } = useTexts();
  const [rows, setRows] = useState<FoundRow[]>([]);
  const [state, setState] = useState<'runs' | 'waits' | 'over'>('runs');
  const [backTo, setBackTo] = useState<number | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const before = useRef<number | null>(null);
  const over = useRef(new AbortController());

  async function run(): Promise<void> {
    const { signal } = over.current;
    setState('runs');
    setFault(null);
    try {
      for (let found = 0; found < WANTED; ) {
        const from = before.current === null ? {} : { before: String(before.current) };
        const values = new URLSearchParams({ q: query, ...from });
        const page = await read<FoundPage>(`api/board/conversations/search?${values}`, signal);
        found += page.rows.length;
        setRows((last) => [...last, ...page.rows]);
        setBackTo(page.next?.at ?? null);
        before.current = page.next?.before ?? null;
        if (page.next === null) return setState('over');
      }
      setState('waits');
    } catch (error) {
      if (signal.aborted) return;
      setFault(sentenceOf(error, frame.failed));
      setState('waits');
    }
  }

  useEffect(() => {
    over.current = new AbortController();
    void run();
    return () => over.current.abort();
  }, [query]);

  return { rows, state, backTo, more: () => void run(), fault };
}

export function conversation(room: string): Promise<ConversationItem> {
  return read(`api/board/conversations/one?${new URLSearchParams({ room })}`);
}

/** The key of the first row said at or after this time, or of the last one before it; null: there are none. */
export async function rowAt(room: string, at: number): Promise<string | null> {
  const { around } = await read<{ around: string | null }>(`api/board/conversations/at?at=${at}`);
  const values = around === null ? { room } : { room, around };
  const { rows } = await read<RowPage>(`api/board/rows?${new URLSearchParams(values)}`);
  return (rows.find((row) => row.at >= at) ?? rows.at(-1))?.key ?? null;
}

export type OpenedTurn = { kind: 'read'; turn: TurnDetails } | { kind: 'none'; fault: string; why: unknown };

const AGAIN_MS = 1_500;
/** So long after its end a turn's record may still be written. */
const WRITTEN_WITHIN_MS = 10_000;

/** null while it is read. A turn under way is read again until it has ended and is recorded. */
export function useTurn(id: string): OpenedTurn | null {
  const { frame } = useTexts();
  const [opened, setOpened] = useState<OpenedTurn | null>(null);
  useEffect(() => {
    const over = new AbortController();
    let later: ReturnType<typeof setTimeout> | null = null;
    async function look(): Promise<void> {
      try {
        const turn = await read<TurnDetails>(`api/board/turn?${new URLSearchParams({ id })}`, over.signal);
        setOpened({ kind: 'read', turn });
        if (mayChange(turn)) later = setTimeout(look, AGAIN_MS);
      } catch (error) {
        if (over.signal.aborted) return;
        const why = error instanceof Refusal ? error.body.why : null;
        setOpened({ kind: 'none', fault: sentenceOf(error, frame.failed), why });
      }
    }
    setOpened(null);
    void look();
    return () => {
      over.abort();
      if (later !== null) clearTimeout(later);
    };
  }, [id]);
  return opened;
}

function mayChange({ finishedAt, prompt, state }: TurnDetails): boolean {
  if (finishedAt === null) return state === 'running' || state === 'ready' || state === 'suspended';
  return prompt.length === 0 && Date.now() - finishedAt < WRITTEN_WITHIN_MS;
}

function sentenceOf(error: unknown, otherwise: string): string {
  if (!(error instanceof Refusal)) throw error;
  return error.message || otherwise;
}
