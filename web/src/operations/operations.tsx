/** The place Operations: short boxes, the worst first. */
import { useEffect } from 'preact/hooks';
import type { OperationsNow } from '../../../src/board/protocol-operations.ts';
import { useTexts } from '../app.ts';
import { onChange } from '../live.ts';
import { Audit } from './audit.tsx';
import { Channels } from './channels.tsx';
import { Configuration } from './configuration.tsx';
import { Embedding } from './embedding.tsx';
import { LogBox } from './log.tsx';
import './operations.css';
import { Pairings } from './pairings.tsx';
import { useReading } from './parts.tsx';
import { Schedules } from './schedules.tsx';
import { Usage } from './usage.tsx';
import { ORDER, worstOf } from './worst.ts';

export default function Operations() {
  const { frame } = useTexts();
  const { answer, isAway, again } = useReading<OperationsNow>('api/board/operations');
  useEffect(() => onChange('operations', () => void again()), [again]);
  return (
    <div class="place operations">
      <h1>{frame.operations}</h1>
      {isAway && answer === null && <p role="alert">{frame.failed}</p>}
      {answer !== null && boxesOf(answer, () => void again())}
      {answer !== null && (
        <>
          <Usage />
          <Audit />
          <LogBox />
          <Configuration />
        </>
      )}
    </div>
  );
}

/** In their usual order, unless something is wrong. */
function boxesOf({ channels, pairings, schedules, embedding }: OperationsNow, again: () => void) {
  const isStuck = schedules.items.some(({ state }) => state === 'parked');
  const boxes = [
    {
      level: worstOf(channels.map(({ level }) => level)),
      box: <Channels key="channels" channels={channels} />,
    },
    {
      level: pairings.waiting.length > 0 ? ('warn' as const) : ('good' as const),
      box: <Pairings key="pairings" pairings={pairings} again={again} />,
    },
    {
      level: isStuck ? ('warn' as const) : ('good' as const),
      box: <Schedules key="schedules" schedules={schedules} again={again} />,
    },
    { level: embedding.level, box: <Embedding key="embedding" embedding={embedding} /> },
  ];
  return boxes.sort((a, b) => ORDER[a.level] - ORDER[b.level]).map(({ box }) => box);
}
