/** Reads of the place: the list, the steps of a search, one conversation, a turn. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type {
  ConversationItem,
  ConversationPage,
  FoundPage,
  FoundRow,
  RowPage,
  TurnDetails,
} from '../../../src/board/protocol.ts';
import { Refusal, read, sentenceOf } from '../api.ts';
import { usePages } from '../kit/follow.ts';

export function useConversations() {
  return usePages(['conversations'], conversations);
}

function conversations(before: string | null, signal: AbortSignal): Promise<ConversationPage> {
  const query = new URLSearchParams(before === null ? {} : { before });
  return read(`api/board/conversations?${query}`, signal);
}

/** So many results at a time. */
const WANTED = 25;

export function useSearch(query: string) {
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
      setFault(sentenceOf(error));
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

export function conversation(room: string, signal: AbortSignal): Promise<ConversationItem> {
  return read(`api/board/conversations/one?${new URLSearchParams({ room })}`, signal);
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
        setOpened({ kind: 'none', fault: sentenceOf(error), why });
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
