/** The newest lines of the gateway's log, followed while they are seen. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { LogLines } from '../../../src/board/protocol-operations.ts';
import { Refusal, read } from '../api.ts';
import { useTexts } from '../app.ts';
import { languageOfPage } from '../kit/words.ts';
import { onChange } from '../live.ts';
import { filled } from '../texts/texts.ts';
import { Box } from './parts.tsx';
import { visible } from './symbols.ts';

type Line = LogLines['lines'][number];
const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];

const FOLLOW_MS = 2_000;
const MOST_LINES = 500;
/** As far from the end as one may have scrolled and still follow. */
const NEAR_PX = 60;

export function LogBox() {
  const { operations } = useTexts();
  const [lines, setLines] = useState<Line[]>([]);
  const [configured, setConfigured] = useState('info');
  const [least, setLeast] = useState<Level>('debug');
  const frame = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  useEffect(
    () =>
      followLog(
        (add, level) => {
          setConfigured(level);
          if (add.length > 0) setLines((known) => [...known, ...add].slice(-MOST_LINES));
        },
        () => setLines([]),
      ),
    [],
  );
  const shown = lines.filter(({ level }) => LEVELS.indexOf(level) >= LEVELS.indexOf(least));
  useLayoutEffect(() => {
    const element = frame.current;
    if (element !== null && isFollowing.current) element.scrollTop = element.scrollHeight;
  }, [lines, least]);
  const errors = lines.filter(({ level }) => level === 'error').length;
  return (
    <Box
      title={operations.log}
      line={
        configured === 'silent'
          ? operations.logSilent
          : filled(operations.logLine, { n: lines.length, errors, level: configured })
      }
    >
      <label class="unit">
        {operations.level}
        <select value={least} onChange={(event) => setLeast(event.currentTarget.value as Level)}>
          {LEVELS.map((each) => (
            <option key={each} value={each}>
              {operations.levels[each]}
            </option>
          ))}
        </select>
      </label>
      <div
        class="window log-lines"
        ref={frame}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for those without a mouse.
        tabIndex={0}
        role="log"
        // A screen reader that spoke each line would never be silent.
        aria-live="off"
        aria-label={operations.logLines}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          isFollowing.current = scrollHeight - clientHeight - scrollTop < NEAR_PX;
        }}
      >
        {shown.map((line) => (
          <LogLine key={line.n} line={line} />
        ))}
        {shown.length === 0 && <p class="soft small">{operations.noLines}</p>}
      </div>
    </Box>
  );
}

function LogLine({ line: { at, level, text, more } }: { line: Line }) {
  const { operations } = useTexts();
  const time = new Intl.DateTimeFormat(languageOfPage(), { timeStyle: 'medium' }).format(at);
  return (
    <div class={`log-line ${level}`}>
      <span class="soft">{Number.isNaN(at) ? '' : time}</span> <b>{operations.levels[level]}</b>{' '}
      {visible(text, true)}
      {more !== '' && <pre class="wraps">{visible(more)}</pre>}
    </div>
  );
}

/** Asks for what came since; after a restart of the gateway, from the beginning. Returns the function that ends it. */
function followLog(add: (lines: Line[], level: string) => void, forget: () => void): () => void {
  let after = 0;
  let isAsking = false;
  let isOver = false;
  async function look(): Promise<void> {
    if (isAsking || isOver || document.visibilityState !== 'visible') return;
    isAsking = true;
    try {
      const { lines, newest, level } = await read<LogLines>(`api/board/operations/log?after=${after}`);
      if (isOver) return;
      if (newest < after) forget();
      after = newest;
      add(lines, level);
    } catch (error) {
      // The next look may find the gateway again.
      if (!(error instanceof Refusal)) throw error;
    } finally {
      isAsking = false;
    }
  }
  void look();
  const timer = setInterval(() => void look(), FOLLOW_MS);
  const unlisten = onChange('operations', () => void look());
  return () => {
    isOver = true;
    clearInterval(timer);
    unlisten();
  };
}
