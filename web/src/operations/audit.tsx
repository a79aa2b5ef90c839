/** The newest entries of the audit log, and older ones on demand. */
import { useEffect, useState } from 'preact/hooks';
import type { AuditPage } from '../../../src/board/protocol-operations.ts';
import { Refusal, read } from '../api.ts';
import { useTexts } from '../app.ts';
import { filled } from '../texts/texts.ts';
import { Box, useReading, When } from './parts.tsx';
import { visible } from './symbols.ts';

type Entry = AuditPage['entries'][number];
const PATH = 'api/board/operations/audit';

export function Audit() {
  const { operations, frame } = useTexts();
  const { answer } = useReading<AuditPage>(PATH);
  const [entries, setEntries] = useState<Entry[]>([]);
  const [isEnd, setEnd] = useState(true);
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState('');
  useEffect(() => {
    if (answer === null) return;
    setEntries((known) => (known.length === 0 ? answer.entries : joined(answer.entries, known)));
    setEnd((was) => (entries.length === 0 ? answer.isEnd : was));
  }, [answer]);
  async function more(): Promise<void> {
    setBusy(true);
    setFault('');
    try {
      const page = await read<AuditPage>(`${PATH}?before=${entries.at(-1)?.n ?? 1}`);
      setEntries((known) => joined(known, page.entries));
      setEnd(page.isEnd);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      setFault(error.message || frame.failed);
    } finally {
      setBusy(false);
    }
  }
  const strange = answer?.strange ?? 0;
  return (
    <Box
      title={operations.audit}
      level={strange > 0 ? 'bad' : 'good'}
      line={strange > 0 ? filled(operations.auditStrange, { n: strange }) : operations.auditLine}
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for those without a mouse. */}
      <div class="window" tabIndex={0}>
        <ol class="list">
          {entries.map((entry) => (
            <AuditEntry key={entry.n} entry={entry} />
          ))}
        </ol>
      </div>
      {fault !== '' && <p role="alert">{fault}</p>}
      {!isEnd && (
        <div>
          <button type="button" disabled={isBusy} onClick={() => void more()}>
            {operations.older}
          </button>
        </div>
      )}
    </Box>
  );
}

function AuditEntry({ entry: { at, kind, who, where, what, details } }: { entry: Entry }) {
  const { operations } = useTexts();
  const time = Date.parse(at);
  return (
    <li class="stack tight">
      <p class="words small">
        <span class="soft">{Number.isNaN(time) ? visible(at, true) : <When at={time} />}</span>{' '}
        <span class="tag">{kind}</span> <b>{visible(who, true)}</b>
        {where !== null && <span class="soft"> · {visible(where, true)}</span>}: {visible(what, true)}
      </p>
      {details.length > 0 && (
        <details class="small">
          <summary>{filled(operations.detailsOf, { n: details.length })}</summary>
          <dl class="facts">
            {details.map(([name, value]) => (
              <div key={name}>
                <dt>{visible(name, true)}</dt>
                <dd class="words">{visible(value, true)}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </li>
  );
}

/** Newest first. If there is a gap between them, the older ones go: they come again on demand. */
function joined(newer: Entry[], older: Entry[]): Entry[] {
  const last = newer.at(-1)?.n ?? Number.POSITIVE_INFINITY;
  const rest = older.filter(({ n }) => n < last);
  return (rest[0]?.n ?? last - 1) < last - 1 ? newer : [...newer, ...rest];
}
